import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { ReplayTurn } from "./replay-turn.ts";

/** A message of Ollama's chat API. Assignable to the SDK's `Message`. */
export interface OllamaMessage {
  /** Who wrote the message. */
  readonly role: "system" | "user" | "assistant" | "tool";
  /** The text of the message, empty for a reply that only calls tools. */
  readonly content: string;
  /** The model's thinking. */
  readonly thinking?: string;
  /** Base64 without a prefix. */
  readonly images?: string[];
  /** The tool calls of a reply. They have no ids. */
  readonly tool_calls?: {
    /** What is called. */
    readonly function: {
      /** The name of the tool. */
      readonly name: string;
      /** The arguments of the call. */
      readonly arguments: Readonly<Record<string, unknown>>;
    };
  }[];
  /** Results are distinguished by the tool's name and their order. */
  readonly tool_name?: string;
}

export const ollamaMapping: ProviderMapping<OllamaMessage> = {
  rules: {
    ...usualRules,
    apis: new Set(["ollama", "ollama-chat"]),
    callIds: providerLimits.ollama.callId,
    toolNames: providerLimits.ollama.toolName,
    imageTypes: new Set(["image/jpeg", "image/png", "image/webp"]),
    fileTypes: new Set(),
    resultsInCallOrder: true,
    carryThinking: ({ thinking, redacted }) => (!redacted && thinking.trim() !== "" ? { itemId: null } : null),
  },
  turn: (turn) => messagesOf(turn),
  system: (system) => ({ field: null, first: [{ role: "system", content: system }] }),
};

/**
 * The messages for Ollama's chat API. Results carry no ids there, so those of one reply stand in the order of its calls.
 */
export function renderOllama(context: Context, options: RenderOptions = {}): Rendering<OllamaMessage> {
  assertRenderOptions("renderOllama", options);
  return renderWith(context, ollamaMapping, options);
}

function messagesOf(turn: ReplayTurn): readonly OllamaMessage[] {
  if (turn.role === "system") return [{ role: "system", content: turn.text }];
  if (turn.role === "user") {
    const answers = turn.results.map(({ name, content, isError }): OllamaMessage => {
      const text = textOf(content);
      return { role: "tool", content: isError ? `[error] ${text}` : text, tool_name: name };
    });
    if (turn.blocks.length === 0) return answers;
    const images = turn.blocks.flatMap((block) =>
      block.type === "image" && block.source.type === "base64" ? [block.source.data] : [],
    );
    return [...answers, { role: "user", content: textOf(turn.blocks), ...(images.length === 0 ? {} : { images }) }];
  }
  const thinking = turn.blocks.flatMap((block) => (block.type === "thinking" ? [block.thinking] : [])).join("\n\n");
  const calls = turn.blocks.flatMap((block) =>
    block.type === "toolCall" ? [{ function: { name: block.name, arguments: block.arguments } }] : [],
  );
  return [
    {
      role: "assistant",
      content: textOf(turn.blocks),
      ...(thinking === "" ? {} : { thinking }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ];
}

import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { ReplayTurn } from "./replay-turn.ts";

/** Holds a message of Ollama's chat API. It is assignable to the SDK's `Message`. */
export interface OllamaMessage {
  /** States who wrote the message. */
  readonly role: "system" | "user" | "assistant" | "tool";
  /** Holds the text of the message; empty for a reply that only calls tools. */
  readonly content: string;
  /** Holds the model's thinking; absent without thinking. */
  readonly thinking?: string;
  /** Holds images as base64 without a prefix; absent without images. */
  readonly images?: string[];
  /** Holds the tool calls of a reply; absent without calls. Calls have no ids in this API. */
  readonly tool_calls?: {
    /** Holds the name and the arguments of the call. */
    readonly function: {
      /** Names the tool. */
      readonly name: string;
      /** Holds the arguments of the call. */
      readonly arguments: Readonly<Record<string, unknown>>;
    };
  }[];
  /** Names the tool of a result. Ollama distinguishes results by this name and their order. */
  readonly tool_name?: string;
}

export const ollamaMapping: ProviderMapping<OllamaMessage> = {
  rules: {
    ...usualRules,
    maxFileBytes: providerLimits.ollama.maxFileBytes,
    maxRequestBytes: providerLimits.ollama.maxRequestBytes,
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
 * Renders a context as messages for Ollama's chat API. Results have no ids in this API, so they follow the order of the
 * calls.
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

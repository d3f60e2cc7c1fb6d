import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { dataUrl, textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** Holds a message of Mistral's chat API. */
export type MistralMessage =
  /** Holds the system prompt. */
  | {
      readonly role: "system";
      /** Holds the instructions. */
      readonly content: string;
    }
  /** Holds a message of the user. */
  | {
      readonly role: "user";
      /** Holds a text, or chunks of text, images and documents. */
      readonly content: string | readonly MistralChunk[];
    }
  /** Holds a reply of the model. */
  | {
      readonly role: "assistant";
      /** Holds a text, or chunks of text and thinking. */
      readonly content: string | readonly MistralChunk[];
      /** Holds the tool calls of the reply; absent without calls. */
      readonly tool_calls?: readonly MistralCall[];
    }
  /** Holds the result of a tool call. */
  | {
      readonly role: "tool";
      /** States the id of the call that it answers. */
      readonly tool_call_id: string;
      /** Names the tool. */
      readonly name: string;
      /** Holds the content that the model reads. */
      readonly content: string | readonly MistralChunk[];
    };

/** Holds a piece of a message. */
type MistralChunk =
  /** Holds a piece of text. */
  | {
      readonly type: "text";
      /** Holds the text. */
      readonly text: string;
    }
  /** Holds a piece of the model's thinking. */
  | {
      readonly type: "thinking";
      /** Holds the thinking as pieces of text. */
      readonly thinking: readonly { readonly type: "text"; readonly text: string }[];
    }
  /** Holds an image as a data URL or a link. */
  | {
      readonly type: "image_url";
      /** Holds the data URL or the link. */
      readonly image_url: string;
    }
  /** Holds a document as a data URL or a link. */
  | {
      readonly type: "document_url";
      /** Holds the data URL or the link. */
      readonly document_url: string;
      /** States the name of the document; absent without a name. */
      readonly document_name?: string;
    };

/** Holds a tool call of the model. */
interface MistralCall {
  /** States the id of the call, which has nine letters and digits. */
  readonly id: string;
  readonly type: "function";
  /** Holds the name and the arguments of the call. */
  readonly function: {
    /** Names the tool. */
    readonly name: string;
    /** Holds the arguments as JSON text. */
    readonly arguments: string;
  };
}

export const mistralMapping: ProviderMapping<MistralMessage> = {
  rules: {
    ...usualRules,
    maxFileBytes: providerLimits.mistral.maxFileBytes,
    maxRequestBytes: providerLimits.mistral.maxRequestBytes,
    apis: new Set(["mistral-conversations", "mistral-chat", "mistral"]),
    callIds: { ...providerLimits.mistral.callId, isExact: true },
    toolNames: providerLimits.mistral.toolName,
    imageLinks: true,
    fileLinks: true,
    resultImages: "inside",
    beginsWithUser: true,
    repliesAfterResults: true,
    // A system message may follow user messages and replies, but never tool results. User text in tags may stand
    // anywhere, so this mapping uses it.
    systemMessages: "user",
    trailingAssistant: () => "continue",
    carryThinking: ({ thinking, redacted }) => (!redacted && thinking.trim() !== "" ? { itemId: null } : null),
  },
  turn: (turn) => messagesOf(turn),
  system: (system) => ({ field: null, first: [{ role: "system", content: system }] }),
};

/** Renders a context as messages for Mistral's chat API. */
export function renderMistral(context: Context, options: RenderOptions = {}): Rendering<MistralMessage> {
  assertRenderOptions("renderMistral", options);
  return renderWith(context, mistralMapping, options);
}

function messagesOf(turn: ReplayTurn): readonly MistralMessage[] {
  if (turn.role === "system") return [{ role: "system", content: turn.text }];
  if (turn.role === "assistant") return [assistantMessage(turn)];
  const answers = turn.results.map(({ callId, name, content, isError }): MistralMessage => {
    const hasMedia = content.some((block) => block.type !== "text");
    const said = hasMedia ? content.map(chunk) : textOf(content);
    return { role: "tool", tool_call_id: callId, name, content: isError ? inError(said) : said };
  });
  return turn.blocks.length === 0 ? answers : [...answers, { role: "user", content: userContent(turn.blocks) }];
}

function inError(content: string | readonly MistralChunk[]): string | readonly MistralChunk[] {
  return typeof content === "string" ? `[error] ${content}` : [{ type: "text", text: "[error]" }, ...content];
}

function userContent(blocks: readonly ReplayUserBlock[]): string | readonly MistralChunk[] {
  const [only] = blocks;
  return blocks.length === 1 && only?.type === "text" ? only.text : blocks.map(chunk);
}

function chunk(block: ReplayUserBlock): MistralChunk {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
      return { type: "image_url", image_url: dataUrl(block.source) };
    case "file":
      return {
        type: "document_url",
        document_url: dataUrl(block.source),
        ...(block.name === null ? {} : { document_name: block.name }),
      };
    case "raw":
      // The caller asked for this type, and the provider wrote the block, so the cast is safe.
      return block.block as MistralChunk;
  }
}

function assistantMessage(turn: AssistantTurn): MistralMessage {
  const hasThinking = turn.blocks.some((block) => block.type === "thinking");
  const content = hasThinking
    ? turn.blocks.flatMap((block): readonly MistralChunk[] => {
        if (block.type === "text") return [{ type: "text", text: block.text }];
        if (block.type === "thinking") {
          return [{ type: "thinking", thinking: [{ type: "text", text: block.thinking }] }];
        }
        return [];
      })
    : textOf(turn.blocks);
  const calls = turn.blocks.flatMap((block): readonly MistralCall[] => {
    if (block.type !== "toolCall") return [];
    return [
      { id: block.id, type: "function", function: { name: block.name, arguments: JSON.stringify(block.arguments) } },
    ];
  });
  return { role: "assistant", content, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
}

import { withoutTypeOfOurs } from "./wire-values.ts";
import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayResult, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/**
 * Holds a message of Amazon Bedrock's Converse API in its JSON form, in which bytes are base64. The SDK expects decoded
 * bytes.
 */
export interface BedrockMessage {
  /** States who wrote the message. */
  readonly role: "user" | "assistant";
  /** Holds the blocks of the message. */
  readonly content: readonly BedrockBlock[];
}

/** Holds the bytes of an image or a document. */
interface BedrockSource {
  /** Holds the bytes as base64. */
  readonly bytes: string;
}

/** Holds a content block of Converse. Each block has exactly one of these fields. */
type BedrockBlock =
  | {
      /** Holds a piece of text. */
      readonly text: string;
    }
  | {
      /** Holds an image. */
      readonly image: {
        /** States the format, such as `png`. */
        readonly format: string;
        /** Holds the bytes of the image. */
        readonly source: BedrockSource;
      };
    }
  | {
      /** Holds a document. */
      readonly document: {
        /** States the format, such as `pdf`. */
        readonly format: string;
        /** States the name of the document, limited to the characters that Bedrock allows. */
        readonly name: string;
        /** Holds the bytes of the document. */
        readonly source: BedrockSource;
      };
    }
  | {
      /** Holds a block of the model's thinking, signed or encrypted. */
      readonly reasoningContent:
        | {
            /** Holds thinking in plain text. */
            readonly reasoningText: {
              /** Holds the text of the thinking. */
              readonly text: string;
              /** Holds the provider's signature, unchanged. */
              readonly signature: string;
            };
          }
        | {
            /** Holds encrypted thinking as base64. */
            readonly redactedContent: string;
          };
    }
  | {
      /** Holds a tool call of the model. */
      readonly toolUse: {
        /** States the id of the call. */
        readonly toolUseId: string;
        /** Names the tool. */
        readonly name: string;
        /** Holds the arguments of the call. */
        readonly input: Readonly<Record<string, unknown>>;
      };
    }
  | {
      /** Holds the result of a tool call. */
      readonly toolResult: {
        /** States the id of the call that it answers. */
        readonly toolUseId: string;
        /** Holds the blocks that the model reads. */
        readonly content: readonly BedrockBlock[];
        /** Is `error` when the call failed; absent otherwise. */
        readonly status?: "error";
      };
    };

export const bedrockMapping: ProviderMapping<BedrockMessage> = {
  rules: {
    ...usualRules,
    maxFileBytes: providerLimits.bedrock.maxFileBytes,
    maxRequestBytes: providerLimits.bedrock.maxRequestBytes,
    apis: new Set(["bedrock-converse-stream", "bedrock-converse"]),
    callIds: providerLimits.bedrock.callId,
    toolNames: providerLimits.bedrock.toolName,
    maxImageLength: providerLimits.bedrock.maxImageBytes,
    resultImages: "inside-unless-error",
    mergesUsers: true,
    mergesReplies: true,
    beginsWithUser: true,
    emptyResults: "never",
    systemMessages: "user",
    trailingAssistant: () => "continue",
    carryThinking: ({ signature }) => (signature !== null && signature.trim() !== "" ? { itemId: null } : null),
    bindsThinking: true,
  },
  turn: (turn) => [messageOf(turn)],
  system: (system) => ({ field: system, first: [] }),
};

/** Renders a context as messages for Bedrock's Converse API. `system` belongs into the request's own field. */
export function renderBedrock(context: Context, options: RenderOptions = {}): Rendering<BedrockMessage> {
  assertRenderOptions("renderBedrock", options);
  return renderWith(context, bedrockMapping, options);
}

function messageOf(turn: ReplayTurn): BedrockMessage {
  if (turn.role === "system") return { role: "user", content: [{ text: turn.text }] };
  if (turn.role === "assistant") return { role: "assistant", content: turn.blocks.map(assistantBlock) };
  const blocks = turn.blocks.map(userBlock);
  // Bedrock accepts a document only beside a text.
  const isWordless =
    turn.blocks.some(({ type }) => type === "file") && turn.blocks.every(({ type }) => type !== "text");
  return {
    role: "user",
    content: [...turn.results.map(resultBlock), ...blocks, ...(isWordless ? [{ text: "(See the document.)" }] : [])],
  };
}

function assistantBlock(block: AssistantTurn["blocks"][number]): BedrockBlock {
  switch (block.type) {
    case "text":
      return { text: block.text };
    case "thinking": {
      const signature = block.signature ?? "";
      return {
        reasoningContent: block.redacted
          ? { redactedContent: signature }
          : { reasoningText: { text: block.thinking, signature } },
      };
    }
    case "toolCall":
      return { toolUse: { toolUseId: block.id, name: block.name, input: block.arguments } };
    case "raw":
      // The caller asked for this type, and the provider wrote the block, so the cast is safe.
      return withoutTypeOfOurs(block.block) as BedrockBlock;
  }
}

function userBlock(block: ReplayUserBlock): BedrockBlock {
  if (block.type === "text") return { text: block.text };
  // The caller asked for this type, and the provider wrote the block, so the cast is safe.
  if (block.type === "raw") return withoutTypeOfOurs(block.block) as BedrockBlock;
  const { source } = block;
  if (source.type === "url") return { text: `[${block.type}] ${source.url}` };
  const format = source.media_type.slice(source.media_type.indexOf("/") + 1);
  const bytes = { bytes: source.data };
  if (block.type === "image") return { image: { format, source: bytes } };
  return { document: { format, name: documentName(block.name), source: bytes } };
}

/** Bedrock allows letters, digits, single spaces, hyphens and brackets in names. */
function documentName(name: string | null): string {
  const clean = (name ?? "document")
    .replace(/[^A-Za-z0-9\s()[\]-]/g, "-")
    .replace(/\s+/g, " ")
    .trim();
  return clean.slice(0, 200) || "document";
}

function resultBlock({ callId, content, isError }: ReplayResult): BedrockBlock {
  return {
    toolResult: { toolUseId: callId, content: content.map(userBlock), ...(isError ? { status: "error" } : {}) },
  };
}

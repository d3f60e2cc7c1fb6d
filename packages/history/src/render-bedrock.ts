import { withoutTypeOfOurs } from "./wire-values.ts";
import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayResult, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** A message of Amazon Bedrock's Converse, as its JSON has it: bytes are base64. The SDK wants them decoded. */
export interface BedrockMessage {
  /** Who wrote the message. */
  readonly role: "user" | "assistant";
  /** The blocks of the message. */
  readonly content: readonly BedrockBlock[];
}

/** The bytes of an image or a document. */
interface BedrockSource {
  /** The bytes as base64. */
  readonly bytes: string;
}

/** A content block of Converse. Each has one of these fields. */
type BedrockBlock =
  | {
      /** A piece of text. */
      readonly text: string;
    }
  | {
      /** An image. */
      readonly image: {
        /** The format, such as `png`. */
        readonly format: string;
        /** The bytes of the image. */
        readonly source: BedrockSource;
      };
    }
  | {
      /** A document. */
      readonly document: {
        /** The format, such as `pdf`. */
        readonly format: string;
        /** The document's name, in the characters that Bedrock allows. */
        readonly name: string;
        /** The bytes of the document. */
        readonly source: BedrockSource;
      };
    }
  | {
      /** A block of the model's thinking, signed or encrypted. */
      readonly reasoningContent:
        | {
            /** Thinking in plain text. */
            readonly reasoningText: {
              /** The text of the thinking. */
              readonly text: string;
              /** The provider's signature, as it was received. */
              readonly signature: string;
            };
          }
        | {
            /** Encrypted thinking as base64. */
            readonly redactedContent: string;
          };
    }
  | {
      /** A tool call of the model. */
      readonly toolUse: {
        /** The id of the call. */
        readonly toolUseId: string;
        /** The name of the tool. */
        readonly name: string;
        /** The arguments of the call. */
        readonly input: Readonly<Record<string, unknown>>;
      };
    }
  | {
      /** The result of a tool call. */
      readonly toolResult: {
        /** The id of the call that it answers. */
        readonly toolUseId: string;
        /** What the model reads. */
        readonly content: readonly BedrockBlock[];
        /** `error` when the call failed. */
        readonly status?: "error";
      };
    };

export const bedrockMapping: ProviderMapping<BedrockMessage> = {
  rules: {
    ...usualRules,
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

/** The messages for Bedrock's Converse; `system` is for the request's own field. */
export function renderBedrock(context: Context, options: RenderOptions = {}): Rendering<BedrockMessage> {
  assertRenderOptions("renderBedrock", options);
  return renderWith(context, bedrockMapping, options);
}

function messageOf(turn: ReplayTurn): BedrockMessage {
  if (turn.role === "system") return { role: "user", content: [{ text: turn.text }] };
  if (turn.role === "assistant") return { role: "assistant", content: turn.blocks.map(assistantBlock) };
  const blocks = turn.blocks.map(userBlock);
  // A document is only taken beside words.
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
      // As its provider wrote it, of a type that the caller asked for.
      return withoutTypeOfOurs(block.block) as BedrockBlock;
  }
}

function userBlock(block: ReplayUserBlock): BedrockBlock {
  if (block.type === "text") return { text: block.text };
  // As its provider wrote it, of a type that the caller asked for.
  if (block.type === "raw") return withoutTypeOfOurs(block.block) as BedrockBlock;
  const { source } = block;
  if (source.type === "url") return { text: `[${block.type}] ${source.url}` };
  const format = source.media_type.slice(source.media_type.indexOf("/") + 1);
  const bytes = { bytes: source.data };
  if (block.type === "image") return { image: { format, source: bytes } };
  return { document: { format, name: documentName(block.name), source: bytes } };
}

/** Names hold letters, digits, single spaces, hyphens and brackets. */
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

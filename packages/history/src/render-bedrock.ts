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
  readonly role: "user" | "assistant";
  readonly content: readonly BedrockBlock[];
}

interface BedrockSource {
  readonly bytes: string;
}

type BedrockBlock =
  | { readonly text: string }
  | { readonly image: { readonly format: string; readonly source: BedrockSource } }
  | { readonly document: { readonly format: string; readonly name: string; readonly source: BedrockSource } }
  | {
      readonly reasoningContent:
        | { readonly reasoningText: { readonly text: string; readonly signature: string } }
        | { readonly redactedContent: string };
    }
  | {
      readonly toolUse: {
        readonly toolUseId: string;
        readonly name: string;
        readonly input: Readonly<Record<string, unknown>>;
      };
    }
  | {
      readonly toolResult: {
        readonly toolUseId: string;
        readonly content: readonly BedrockBlock[];
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

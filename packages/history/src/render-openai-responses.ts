import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import type { NeutralThinking } from "./neutral-message.ts";
import { dataUrl, textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { carriesNothing, usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayResult, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** Holds an input item of the Responses API. It is assignable to the SDK's `ResponseInputItem`. */
export type OpenAiResponsesItem =
  /** Holds a message of the user, or instructions. */
  | {
      readonly type: "message";
      /** States who wrote the message. */
      readonly role: "user" | "system" | "developer";
      /** Holds the parts of the message. */
      readonly content: OpenAiResponsesPart[];
    }
  /** Holds a reply as plain text. The form with parts requires the id of an item, and items are sent without ids. */
  | {
      readonly type: "message";
      readonly role: "assistant";
      /** Holds the text of the reply. */
      readonly content: string;
    }
  /** Holds a tool call of the model. */
  | {
      readonly type: "function_call";
      /** States the id of the call, to which its result refers. */
      readonly call_id: string;
      /** Names the tool. */
      readonly name: string;
      /** Holds the arguments as JSON text. */
      readonly arguments: string;
    }
  /** Holds the result of a tool call. */
  | {
      readonly type: "function_call_output";
      /** States the id of the call that it answers. */
      readonly call_id: string;
      /** Holds the content that the model reads: a text, or parts of text, images and files. */
      readonly output: string | OpenAiResponsesPart[];
    }
  /** Holds the model's encrypted thinking. */
  | {
      readonly type: "reasoning";
      /** States the provider's id of the item. */
      readonly id: string;
      /** Holds the summary of the thinking, unchanged. */
      readonly summary: {
        readonly type: "summary_text";
        /** Holds one piece of the summary. */
        readonly text: string;
      }[];
      /** Holds the encrypted thinking, unchanged. */
      readonly encrypted_content: string;
    };

/** Holds a part of a message or of a result. */
type OpenAiResponsesPart =
  /** Holds a piece of text. */
  | {
      readonly type: "input_text";
      /** Holds the text. */
      readonly text: string;
    }
  /** Holds an image as a data URL or a link. */
  | {
      readonly type: "input_image";
      /** Holds the data URL or the link. */
      readonly image_url: string;
      readonly detail: "auto";
    }
  /** Holds a file as bytes. */
  | {
      readonly type: "input_file";
      /** States the name of the file. */
      readonly filename: string;
      /** Holds the bytes as a data URL. */
      readonly file_data: string;
    }
  /** Holds a file as a link. */
  | {
      readonly type: "input_file";
      /** Holds the link to the file. */
      readonly file_url: string;
    };

/**
 * Reasoning is sent back with its encrypted content, so that the provider need not store it. Other items are sent
 * without ids. With an id, the service requires the reasoning that it associates with the item, and a history may no
 * longer hold that reasoning.
 */
export const openAiResponsesMapping: ProviderMapping<OpenAiResponsesItem> = {
  rules: {
    ...usualRules,
    maxFileBytes: providerLimits["openai-responses"].maxFileBytes,
    maxRequestBytes: providerLimits["openai-responses"].maxRequestBytes,
    apis: new Set(["openai-responses", "openai-codex-responses", "azure-openai-responses"]),
    callIds: { ...providerLimits["openai-responses"].callId, separator: "|" },
    toolNames: providerLimits["openai-responses"].toolName,
    imageLinks: true,
    fileLinks: true,
    resultImages: "inside",
    carryThinking: (thinking) => {
      const item = reasoningItem(thinking);
      return item === null ? null : { itemId: item.id };
    },
    bindsThinking: true,
    signsParts: false,
    callSignature: () => null,
    carriedBlocks: { ...carriesNothing, reply: new Set(["compaction"]) },
    // Anthropic's compaction block has a text and no encrypted content, so this API cannot read it.
    canCarry: ({ type, encrypted_content: content }) => type !== "compaction" || typeof content === "string",
  },
  turn: (turn) => itemsOf(turn),
  system: (system) => ({ field: system, first: [] }),
};

/** Renders a context as input items for OpenAI's Responses API. `system` belongs into `instructions`. */
export function renderOpenAiResponses(context: Context, options: RenderOptions = {}): Rendering<OpenAiResponsesItem> {
  assertRenderOptions("renderOpenAiResponses", options);
  return renderWith(context, openAiResponsesMapping, options);
}

type ReasoningItem = Extract<OpenAiResponsesItem, { readonly type: "reasoning" }>;

/** pi stores the reasoning item as JSON in place of the signature. */
function reasoningItem({ signature }: Pick<NeutralThinking, "signature">): ReasoningItem | null {
  if (signature === null || !signature.startsWith("{")) return null;
  try {
    const { type, id, summary, encrypted_content: content } = JSON.parse(signature) as Record<string, unknown>;
    if (type !== "reasoning" || typeof id !== "string" || !id.startsWith("rs")) return null;
    if (!Array.isArray(summary) || typeof content !== "string" || content === "" || !signature.isWellFormed())
      return null;
    return { type, id, summary, encrypted_content: content };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function itemsOf(turn: ReplayTurn): readonly OpenAiResponsesItem[] {
  if (turn.role === "system") {
    return [{ type: "message", role: "system", content: [{ type: "input_text", text: turn.text }] }];
  }
  if (turn.role === "assistant") return assistantItems(turn);
  const outputs = turn.results.map(outputItem);
  if (turn.blocks.length === 0) return outputs;
  return [...outputs, { type: "message", role: "user", content: turn.blocks.map(inputPart) }];
}

function assistantItems(turn: AssistantTurn): readonly OpenAiResponsesItem[] {
  return turn.blocks.flatMap((block): readonly OpenAiResponsesItem[] => {
    switch (block.type) {
      case "text":
        return [{ type: "message", role: "assistant", content: block.text }];
      case "toolCall":
        return [
          { type: "function_call", call_id: block.id, name: block.name, arguments: JSON.stringify(block.arguments) },
        ];
      case "thinking": {
        const item = reasoningItem(block);
        return item === null ? [] : [item];
      }
      case "raw":
        // The caller asked for this type, and the provider wrote the block, so the cast is safe.
        return [block.block as OpenAiResponsesItem];
    }
  });
}

function outputItem({ callId, content, isError }: ReplayResult): OpenAiResponsesItem {
  const isText = content.every((block) => block.type === "text");
  const error: OpenAiResponsesPart[] = isError ? [{ type: "input_text", text: "[error]" }] : [];
  const text = textOf(content);
  const output = isText ? (isError ? `[error] ${text}` : text) : [...error, ...content.map(inputPart)];
  return { type: "function_call_output", call_id: callId, output };
}

function inputPart(block: ReplayUserBlock): OpenAiResponsesPart {
  switch (block.type) {
    case "text":
      return { type: "input_text", text: block.text };
    case "image":
      return { type: "input_image", image_url: dataUrl(block.source), detail: "auto" };
    case "file":
      return block.source.type === "url"
        ? { type: "input_file", file_url: block.source.url }
        : { type: "input_file", filename: block.name ?? "file.pdf", file_data: dataUrl(block.source) };
    case "raw":
      // The caller asked for this type, and the provider wrote the block, so the cast is safe.
      return block.block as OpenAiResponsesPart;
  }
}

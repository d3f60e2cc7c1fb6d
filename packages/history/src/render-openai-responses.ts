import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import type { NeutralThinking } from "./neutral-message.ts";
import { dataUrl, textOf } from "./render-openai-chat.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { carriesNothing } from "./replay-rules.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayResult, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** An input item of the Responses API. Assignable to the SDK's `ResponseInputItem`. */
export type OpenAiResponsesItem =
  /** A message of the user, or instructions. */
  | {
      readonly type: "message";
      /** Who wrote the message. */
      readonly role: "user" | "system" | "developer";
      /** The parts of the message. */
      readonly content: OpenAiResponsesPart[];
    }
  /** A reply goes as plain text: the form with parts wants the id of an item, and items go without. */
  | {
      readonly type: "message";
      readonly role: "assistant";
      /** The text of the reply. */
      readonly content: string;
    }
  /** A tool call of the model. */
  | {
      readonly type: "function_call";
      /** The id of the call, which its result names. */
      readonly call_id: string;
      /** The name of the tool. */
      readonly name: string;
      /** The arguments as JSON text. */
      readonly arguments: string;
    }
  /** The result of a tool call. */
  | {
      readonly type: "function_call_output";
      /** The id of the call that it answers. */
      readonly call_id: string;
      /** What the model reads: text, or parts of text, images and files. */
      readonly output: string | OpenAiResponsesPart[];
    }
  /** The model's thinking, encrypted. */
  | {
      readonly type: "reasoning";
      /** The provider's id of the item. */
      readonly id: string;
      /** The summary of the thinking, as it was received. */
      readonly summary: {
        readonly type: "summary_text";
        /** One piece of the summary. */
        readonly text: string;
      }[];
      /** The encrypted thinking, as it was received. */
      readonly encrypted_content: string;
    };

/** A part of a message or of a result. */
type OpenAiResponsesPart =
  /** A piece of text. */
  | {
      readonly type: "input_text";
      /** The text. */
      readonly text: string;
    }
  /** An image, as a data URL or a link. */
  | {
      readonly type: "input_image";
      /** The data URL or the link. */
      readonly image_url: string;
      readonly detail: "auto";
    }
  /** A file, as bytes or as a link. */
  | {
      readonly type: "input_file";
      /** The file's name. */
      readonly filename: string;
      /** A data URL with the bytes. */
      readonly file_data: string;
    }
  /** A file, as bytes or as a link. */
  | {
      readonly type: "input_file";
      /** The link to the file. */
      readonly file_url: string;
    };

/**
 * Reasoning goes back with its encrypted content, so that nothing has to be stored at the provider. Items go without ids
 * of their own: with one, the service wants the reasoning it knows to belong to it, which a history may not hold any more.
 */
export const openAiResponsesMapping: ProviderMapping<OpenAiResponsesItem> = {
  rules: {
    ...usualRules,
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
    // Anthropic's compaction has words and no encrypted content.
    canCarry: ({ type, encrypted_content: content }) => type !== "compaction" || typeof content === "string",
  },
  turn: (turn) => itemsOf(turn),
  system: (system) => ({ field: system, first: [] }),
};

/** The input items for OpenAI's Responses API; `system` is for `instructions`. */
export function renderOpenAiResponses(context: Context, options: RenderOptions = {}): Rendering<OpenAiResponsesItem> {
  assertRenderOptions("renderOpenAiResponses", options);
  return renderWith(context, openAiResponsesMapping, options);
}

type ReasoningItem = Extract<OpenAiResponsesItem, { readonly type: "reasoning" }>;

/** The item as pi keeps it: JSON in the place of the signature. */
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
        // As its provider wrote it, of a type that the caller asked for.
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
      // As its provider wrote it, of a type that the caller asked for.
      return block.block as OpenAiResponsesPart;
  }
}

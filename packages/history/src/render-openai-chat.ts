import { assertKnownOptions, optionKinds, type OptionTable, providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { renderTable } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplaySource, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** A message of the Chat Completions API. Assignable to the SDK's `ChatCompletionMessageParam`. */
export type OpenAiChatMessage =
  /** The system prompt. */
  | {
      /** `developer` for models that take no system message. */
      readonly role: "system" | "developer";
      /** The instructions. */
      readonly content: string;
    }
  /** A message of the user. */
  | {
      readonly role: "user";
      /** Text, or parts of text, images and files. */
      readonly content: string | OpenAiChatPart[];
    }
  /** A reply of the model. */
  | {
      readonly role: "assistant";
      /** The text of the reply; null where it only calls tools. */
      readonly content: string | null;
      /** Thinking, for servers that want it back. */
      readonly reasoning_content?: string;
      /** The tool calls of the reply. Absent without calls. */
      readonly tool_calls?: OpenAiChatCall[];
    }
  /** The result of a tool call. */
  | {
      readonly role: "tool";
      /** The id of the call that it answers. */
      readonly tool_call_id: string;
      /** What the model reads. */
      readonly content: string;
    };

/** A part of a user message. */
type OpenAiChatPart =
  /** A piece of text. */
  | {
      readonly type: "text";
      /** The text. */
      readonly text: string;
    }
  /** An image, as a data URL or a link. */
  | {
      readonly type: "image_url";
      /** Where the image is. */
      readonly image_url: {
        /** The data URL or the link. */
        readonly url: string;
      };
    }
  /** A file, as bytes. */
  | {
      readonly type: "file";
      /** The file. */
      readonly file: {
        /** The file's name. */
        readonly filename: string;
        /** A data URL with the bytes. */
        readonly file_data: string;
      };
    };

/** A tool call of the model. */
interface OpenAiChatCall {
  /** The id of the call, which its result names. */
  readonly id: string;
  readonly type: "function";
  /** What is called. */
  readonly function: {
    /** The name of the tool. */
    readonly name: string;
    /** The arguments as JSON text. */
    readonly arguments: string;
  };
}

/** Options of `renderOpenAiChat`. */
export interface OpenAiChatOptions extends RenderOptions {
  /** The role of instructions; newer models of OpenAI call them `developer`. @default "system" */
  readonly systemRole?: "system" | "developer";
  /** Whether all thinking goes back as `reasoning_content`. @default false: what came so, to the model it came from */
  readonly reasoningContent?: boolean;
}

export const openAiChatTable: OptionTable<OpenAiChatOptions> = {
  ...renderTable,
  systemRole: optionKinds.oneOf(["system", "developer"]),
  reasoningContent: optionKinds.flag,
};

/** The mapping for one set of options. */
export function openAiChatMapping(options: OpenAiChatOptions = {}): ProviderMapping<OpenAiChatMessage> {
  const { systemRole = "system", reasoningContent = false } = options;
  return {
    rules: {
      ...usualRules,
      apis: new Set(["openai-completions"]),
      callIds: { ...providerLimits.openai.callId, separator: "|" },
      toolNames: providerLimits.openai.toolName,
      imageLinks: true,
      carryThinking: ({ thinking, redacted, signature }) => {
        const isWanted = reasoningContent || signature === "reasoning_content";
        return isWanted && !redacted && thinking.trim() !== "" ? { itemId: null } : null;
      },
    },
    turn: (turn) => messagesOf(turn, systemRole),
    system: (system) => ({ field: null, first: [{ role: systemRole, content: system }] }),
  };
}

/** The messages for OpenAI's Chat Completions API and the servers that speak it. */
export function renderOpenAiChat(context: Context, options: OpenAiChatOptions = {}): Rendering<OpenAiChatMessage> {
  assertKnownOptions<OpenAiChatOptions>("renderOpenAiChat", options, openAiChatTable);
  return renderWith(context, openAiChatMapping(options), options);
}

function messagesOf(turn: ReplayTurn, systemRole: "system" | "developer"): readonly OpenAiChatMessage[] {
  if (turn.role === "system") return [{ role: systemRole, content: turn.text }];
  if (turn.role === "assistant") return [assistantMessage(turn)];
  const answers = turn.results.map(({ callId, content, isError }): OpenAiChatMessage => {
    const text = textOf(content);
    return { role: "tool", tool_call_id: callId, content: isError ? `[error] ${text}` : text };
  });
  return turn.blocks.length === 0 ? answers : [...answers, { role: "user", content: userContent(turn.blocks) }];
}

/** Texts of one message, joined as paragraphs. */
export function textOf(blocks: readonly (ReplayUserBlock | AssistantTurn["blocks"][number])[]): string {
  let text: string | null = null;
  for (const block of blocks) {
    if (block.type === "text") text = text === null ? block.text : `${text}\n\n${block.text}`;
  }
  return text ?? "";
}

/** Thinking of one message, joined as paragraphs. */
function thinkingOf(blocks: AssistantTurn["blocks"]): string {
  let text: string | null = null;
  for (const block of blocks) {
    if (block.type === "thinking") text = text === null ? block.thinking : `${text}\n\n${block.thinking}`;
  }
  return text ?? "";
}

function userContent(blocks: readonly ReplayUserBlock[]): string | OpenAiChatPart[] {
  const [only] = blocks;
  if (blocks.length === 1 && only?.type === "text") return only.text;
  return blocks.flatMap((block): readonly OpenAiChatPart[] => {
    switch (block.type) {
      case "text":
        return [{ type: "text", text: block.text }];
      case "image":
        return [{ type: "image_url", image_url: { url: dataUrl(block.source) } }];
      case "file":
        return [{ type: "file", file: { filename: block.name ?? "file.pdf", file_data: dataUrl(block.source) } }];
      case "raw":
        // As its provider wrote it, of a type that the caller asked for.
        return [block.block as OpenAiChatPart];
    }
  });
}

/** The link, or the data as one. */
export function dataUrl(source: ReplaySource): string {
  return source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
}

function assistantMessage(turn: AssistantTurn): OpenAiChatMessage {
  const text = textOf(turn.blocks);
  const thinking = thinkingOf(turn.blocks);
  const calls: OpenAiChatCall[] = [];
  for (const block of turn.blocks) {
    if (block.type !== "toolCall") continue;
    const { id, name } = block;
    calls.push({ id, type: "function", function: { name, arguments: JSON.stringify(block.arguments) } });
  }
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(thinking === "" ? {} : { reasoning_content: thinking }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

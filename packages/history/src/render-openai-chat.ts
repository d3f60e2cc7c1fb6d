import { assertKnownOptions, optionKinds, type OptionTable, providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { renderTable } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { usualRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplaySource, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** Holds a message of the Chat Completions API. It is assignable to the SDK's `ChatCompletionMessageParam`. */
export type OpenAiChatMessage =
  /** Holds the system prompt. */
  | {
      /** States the role; `developer` suits models that reject system messages. */
      readonly role: "system" | "developer";
      /** Holds the instructions. */
      readonly content: string;
    }
  /** Holds a message of the user. */
  | {
      readonly role: "user";
      /** Holds a text, or parts of text, images and files. */
      readonly content: string | OpenAiChatPart[];
    }
  /** Holds a reply of the model. */
  | {
      readonly role: "assistant";
      /** Holds the text of the reply; null if the reply only calls tools. */
      readonly content: string | null;
      /** Holds thinking, for servers that require it back; absent without thinking. */
      readonly reasoning_content?: string;
      /** Holds the tool calls of the reply; absent without calls. */
      readonly tool_calls?: OpenAiChatCall[];
    }
  /** Holds the result of a tool call. */
  | {
      readonly role: "tool";
      /** States the id of the call that it answers. */
      readonly tool_call_id: string;
      /** Holds the text that the model reads. */
      readonly content: string;
    };

/** Holds a part of a user message. */
type OpenAiChatPart =
  /** Holds a piece of text. */
  | {
      readonly type: "text";
      /** Holds the text. */
      readonly text: string;
    }
  /** Holds an image as a data URL or a link. */
  | {
      readonly type: "image_url";
      /** Holds the location of the image. */
      readonly image_url: {
        /** Holds the data URL or the link. */
        readonly url: string;
      };
    }
  /** Holds a file as bytes. */
  | {
      readonly type: "file";
      /** Holds the name and the bytes of the file. */
      readonly file: {
        /** States the name of the file. */
        readonly filename: string;
        /** Holds the bytes as a data URL. */
        readonly file_data: string;
      };
    };

/** Holds a tool call of the model. */
interface OpenAiChatCall {
  /** States the id of the call, to which its result refers. */
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

/** Configures `renderOpenAiChat`. */
export interface OpenAiChatOptions extends RenderOptions {
  /** Sets the role of instructions. Newer models of OpenAI call it `developer`. @default "system" */
  readonly systemRole?: "system" | "developer" | undefined;
  /**
   * Sends all thinking back as `reasoning_content` if true. @default false: only thinking that arrived in this field,
   * to the model that wrote it
   */
  readonly reasoningContent?: boolean | undefined;
}

export const openAiChatTable: OptionTable<OpenAiChatOptions> = {
  ...renderTable,
  systemRole: optionKinds.oneOf(["system", "developer"]),
  reasoningContent: optionKinds.flag,
};

export function openAiChatMapping(options: OpenAiChatOptions = {}): ProviderMapping<OpenAiChatMessage> {
  const { systemRole = "system", reasoningContent = false } = options;
  return {
    rules: {
      ...usualRules,
      maxFileBytes: providerLimits.openai.maxFileBytes,
      maxRequestBytes: providerLimits.openai.maxRequestBytes,
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

/** Renders a context as messages for OpenAI's Chat Completions API and compatible servers. */
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

export function textOf(blocks: readonly (ReplayUserBlock | AssistantTurn["blocks"][number])[]): string {
  let text: string | null = null;
  for (const block of blocks) {
    if (block.type === "text") text = text === null ? block.text : `${text}\n\n${block.text}`;
  }
  return text ?? "";
}

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
        // The caller asked for this type, and the provider wrote the block, so the cast is safe.
        return [block.block as OpenAiChatPart];
    }
  });
}

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

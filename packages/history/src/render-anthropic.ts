import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { usualRules } from "./replay-rules.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import type { AssistantTurn, ReplayResult, ReplayText, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** Configures `renderAnthropic`. */
export type AnthropicRenderOptions = RenderOptions;

/** Holds messages for Anthropic, and states whether the request may ask for thinking. */
export interface AnthropicRendering extends Rendering<AnthropicMessage> {
  /**
   * Is false when the tool loop that the request continues no longer starts with thinking. The request must then not
   * enable thinking of type `enabled`.
   */
  readonly canThink: boolean;
}

/** Holds a message of the Messages API. It is assignable to the SDK's `MessageParam`, which requires mutable lists. */
export type AnthropicMessage =
  /** Holds a message of the user with tool results, or a reply. */
  | {
      /** States who wrote the message. */
      readonly role: "user" | "assistant";
      /** Holds the blocks of the message, at least one. */
      readonly content: AnthropicBlock[];
    }
  /** Holds inline instructions, which appear only if the caller asks for them. */
  | {
      readonly role: "system";
      /** Holds the instructions. */
      readonly content: AnthropicText[];
    };

/** Holds a block of text. */
interface AnthropicText {
  readonly type: "text";
  /** Holds the text, which is never empty. */
  readonly text: string;
}

/** Holds an image as bytes or as a link. */
interface AnthropicImage {
  readonly type: "image";
  /** Holds the bytes or the link of the image. */
  readonly source:
    /** Holds the bytes of the image. */
    | {
        /** States that the source holds the bytes. */
        readonly type: "base64";
        /** States the media type of the bytes. */
        readonly media_type: "image/jpeg" | "image/png" | "image/gif" | "image/webp";
        /** Holds the bytes as base64. */
        readonly data: string;
      }
    | AnthropicLink;
}

/** Holds a PDF as bytes or as a link. */
interface AnthropicDocument {
  readonly type: "document";
  /** Holds the bytes or the link of the document. */
  readonly source:
    /** Holds the bytes of the document. */
    | {
        /** States that the source holds the bytes. */
        readonly type: "base64";
        /** States the media type. The API accepts only PDF here. */
        readonly media_type: "application/pdf";
        /** Holds the bytes as base64. */
        readonly data: string;
      }
    | AnthropicLink;
  /** States the name of the document; absent without a name. */
  readonly title?: string;
}

/** Holds a link that the provider follows. */
interface AnthropicLink {
  readonly type: "url";
  /** Holds the http or https address. */
  readonly url: string;
}

/** Holds a content block in the format of the Messages API. */
export type AnthropicBlock =
  | AnthropicText
  | AnthropicImage
  | AnthropicDocument
  /** Holds a block of the model's thinking. */
  | {
      readonly type: "thinking";
      /** Holds the text of the thinking. */
      readonly thinking: string;
      /** Holds the provider's signature, unchanged. */
      readonly signature: string;
    }
  /** Holds thinking that the provider encrypted. */
  | {
      readonly type: "redacted_thinking";
      /** Holds the encrypted thinking, unchanged. */
      readonly data: string;
    }
  /** Holds a tool call of the model. */
  | {
      readonly type: "tool_use";
      /** States the id of the call. */
      readonly id: string;
      /** Names the tool. */
      readonly name: string;
      /** Holds the arguments of the call. */
      readonly input: Readonly<Record<string, unknown>>;
    }
  /** Holds the result of a tool call. */
  | {
      readonly type: "tool_result";
      /** States the id of the call that it answers. */
      readonly tool_use_id: string;
      /** Holds the blocks that the model reads; absent for an empty result. */
      readonly content?: AnthropicResultBlock[];
      /** Is true when the call failed; absent otherwise. */
      readonly is_error?: true;
    }
  | AnthropicOtherBlock;

/** Holds a block inside a tool result. */
export type AnthropicResultBlock =
  | AnthropicText
  | AnthropicImage
  | AnthropicDocument
  | AnthropicSearchResult
  /** Refers to a tool that a tool search found. */
  | {
      readonly type: "tool_reference";
      /** Names the tool. */
      readonly tool_name: string;
    };

/** Holds a passage that the model may cite. */
interface AnthropicSearchResult {
  readonly type: "search_result";
  /** States the origin of the passage. */
  readonly source: string;
  /** States the title of the source. */
  readonly title: string;
  /** Holds the text of the passage. */
  readonly content: AnthropicText[];
}

/** Holds a stored block of the provider's own types. Blocks behind a beta header (`carryBlocks`) have no type here. */
type AnthropicOtherBlock =
  | AnthropicSearchResult
  /** Refers to a file of the container in which the provider runs code. */
  | {
      readonly type: "container_upload";
      /** States the provider's id of the file. */
      readonly file_id: string;
    }
  /** Holds a call of a tool that the provider runs itself. */
  | {
      readonly type: "server_tool_use";
      /** States the id of the call. */
      readonly id: string;
      /** Names the provider's tool. */
      readonly name:
        | "web_search"
        | "web_fetch"
        | "code_execution"
        | "bash_code_execution"
        | "text_editor_code_execution"
        | "tool_search_tool_regex"
        | "tool_search_tool_bm25";
      /** Holds the arguments of the call. */
      readonly input: unknown;
    }
  /** Holds the result of a tool that the provider runs itself. */
  | {
      /** States the kind of result, which depends on the tool. */
      readonly type:
        | "web_search_tool_result"
        | "web_fetch_tool_result"
        | "code_execution_tool_result"
        | "bash_code_execution_tool_result"
        | "text_editor_code_execution_tool_result"
        | "tool_search_tool_result";
      /** States the id of the call that it answers. */
      readonly tool_use_id: string;
      // Each tool has its own result format, and this package does not read them.
      /** Holds the result, unchanged. */
      // oxlint-disable-next-line typescript/no-explicit-any
      readonly content: any;
    };

export const anthropicMapping: ProviderMapping<AnthropicMessage> = {
  rules: {
    ...usualRules,
    maxFileBytes: providerLimits.anthropic.maxFileBytes,
    maxRequestBytes: providerLimits.anthropic.maxRequestBytes,
    apis: new Set(["anthropic-messages"]),
    callIds: providerLimits.anthropic.callId,
    toolNames: providerLimits.anthropic.toolName,
    maxImageLength: providerLimits.anthropic.maxImageBytes,
    imageLinks: true,
    fileLinks: true,
    resultImages: "inside-unless-error",
    mergesUsers: true,
    mergesReplies: true,
    beginsWithUser: true,
    emptyResults: "not-in-errors",
    systemMessages: "user",
    trailingAssistant: (modelId) => (takesPrefill(modelId) ? "keep" : "continue"),
    // A genuine signature has no lone surrogate, and JSON cannot carry one.
    carryThinking: ({ signature }) =>
      signature !== null && signature.trim() !== "" && signature.isWellFormed() ? { itemId: null } : null,
    bindsThinking: true,
    carriedBlocks: {
      user: new Set(["document", "search_result", "container_upload"]),
      result: new Set(["document", "search_result", "tool_reference"]),
      reply: new Set([
        "container_upload",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
      ]),
    },
  },
  turn: (turn) => [messageOf(turn)],
  system: (system) => ({ field: system, first: [] }),
};

/**
 * Renders a context as messages for Anthropic's API. It repairs the history where the API would reject it, and
 * otherwise keeps the log's content.
 */
export function renderAnthropic(context: Context, options: AnthropicRenderOptions = {}): AnthropicRendering {
  assertRenderOptions("renderAnthropic", options);
  const rendering = renderWith(context, anthropicMapping, options);
  return { ...rendering, canThink: opensWithThinking(rendering.messages) };
}

/** Claude up to 4.5 continues its own text. An unknown version is assumed not to. */
function takesPrefill(modelId: string | null): boolean {
  const version = /claude-(?:[a-z]{1,20}-)?(\d{1,9})(?:[.-](\d{1,2})(?!\d))?/.exec(modelId ?? "");
  if (version === null) return false;
  return Number(version[1]) + Number(version[2] ?? 0) / 100 < 4.06;
}

/** The tool loop starts with the first reply after the last user message that holds no results. */
function opensWithThinking(messages: readonly AnthropicMessage[]): boolean {
  let start: AnthropicMessage | null = null;
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at] as AnthropicMessage;
    if (message.role === "assistant") start = message;
    else if (message.role === "user" && message.content.every(({ type }) => type !== "tool_result")) break;
  }
  const first = start?.content[0]?.type;
  return start === null || first === "thinking" || first === "redacted_thinking";
}

function messageOf(turn: ReplayTurn): AnthropicMessage {
  if (turn.role === "system") return { role: "system", content: [{ type: "text", text: turn.text }] };
  if (turn.role === "assistant") return { role: "assistant", content: turn.blocks.map(assistantBlock) };
  const [only] = turn.results;
  if (turn.blocks.length === 0)
    return {
      role: "user",
      content: turn.results.length === 1 && only !== undefined ? [resultBlock(only)] : turn.results.map(resultBlock),
    };
  return { role: "user", content: [...turn.results.map(resultBlock), ...turn.blocks.map(userBlock)] };
}

function assistantBlock(block: AssistantTurn["blocks"][number]): AnthropicBlock {
  switch (block.type) {
    case "text":
      return block;
    case "toolCall":
      return { type: "tool_use", id: block.id, name: block.name, input: block.arguments };
    case "thinking": {
      const signature = block.signature ?? "";
      return block.redacted
        ? { type: "redacted_thinking", data: signature }
        : { type: "thinking", thinking: block.thinking, signature };
    }
    case "raw":
      // The provider wrote this block, and the rules carry its type, so the cast is safe.
      return block.block as AnthropicOtherBlock;
  }
}

function userBlock(block: ReplayUserBlock): AnthropicText | AnthropicImage | AnthropicDocument | AnthropicSearchResult {
  switch (block.type) {
    case "text":
      return block;
    case "image":
      // The rules restrict the media types, so the cast is safe.
      return { type: "image", source: block.source as AnthropicImage["source"] };
    case "file":
      return {
        type: "document",
        source: block.source as AnthropicDocument["source"],
        ...(block.name === null ? {} : { title: block.name }),
      };
    case "raw":
      // The provider wrote this block, and the rules carry its type, so the cast is safe.
      return block.block as unknown as AnthropicSearchResult;
  }
}

function resultBlock(result: ReplayResult): AnthropicBlock {
  if (result.content.length > 0 && !result.isError) {
    // Most results hold a single text, which needs no conversion, so the list is reused.
    const [only] = result.content;
    const content =
      result.content.length === 1 && only?.type === "text"
        ? (result.content as ReplayText[])
        : result.content.map(userBlock);
    return { type: "tool_result", tool_use_id: result.callId, content };
  }
  return {
    type: "tool_result",
    tool_use_id: result.callId,
    ...(result.content.length > 0 ? { content: result.content.map(userBlock) } : {}),
    ...(result.isError ? { is_error: true } : {}),
  };
}

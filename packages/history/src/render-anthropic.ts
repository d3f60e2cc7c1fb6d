import { providerLimits } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { usualRules } from "./replay-rules.ts";
import { assertRenderOptions } from "./render-options.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import type { AssistantTurn, ReplayResult, ReplayText, ReplayTurn, ReplayUserBlock } from "./replay-turn.ts";

/** Options of `renderAnthropic`. */
export type AnthropicRenderOptions = RenderOptions;

/** Messages for Anthropic, and whether thinking may be asked for. */
export interface AnthropicRendering extends Rendering<AnthropicMessage> {
  /**
   * False when the tool loop that the request goes on from does not begin with its thinking any more: thinking of type
   * `enabled` has to be off for this call.
   */
  readonly canThink: boolean;
}

/** A message of the Messages API. Assignable to the SDK's `MessageParam`, which wants lists that may be changed. */
export type AnthropicMessage =
  /** A message of the user, with results of tools, or a reply. */
  | {
      /** Who wrote the message. */
      readonly role: "user" | "assistant";
      /** The blocks of the message, of which there is at least one. */
      readonly content: AnthropicBlock[];
    }
  /** Only where it was asked for. */
  | {
      readonly role: "system";
      /** The instructions. */
      readonly content: AnthropicText[];
    };

/** A block of text. */
interface AnthropicText {
  readonly type: "text";
  /** The text, never empty. */
  readonly text: string;
}

/** An image, as bytes or as a link. */
interface AnthropicImage {
  readonly type: "image";
  /** Where the image is. */
  readonly source:
    /** The bytes of the image. */
    | {
        /** The source holds the bytes themselves. */
        readonly type: "base64";
        /** The media type of the bytes. */
        readonly media_type: "image/jpeg" | "image/png" | "image/gif" | "image/webp";
        /** The bytes as base64. */
        readonly data: string;
      }
    | AnthropicLink;
}

/** A PDF, as bytes or as a link. */
interface AnthropicDocument {
  readonly type: "document";
  /** Where the document is. */
  readonly source:
    /** The bytes of the document. */
    | {
        /** The source holds the bytes themselves. */
        readonly type: "base64";
        /** PDF is the only type that the API takes here. */
        readonly media_type: "application/pdf";
        /** The bytes as base64. */
        readonly data: string;
      }
    | AnthropicLink;
  /** The document's name. */
  readonly title?: string;
}

/** A link that the provider follows. */
interface AnthropicLink {
  readonly type: "url";
  /** The address, http or https. */
  readonly url: string;
}

/** A content block as the Messages API writes it. */
export type AnthropicBlock =
  | AnthropicText
  | AnthropicImage
  | AnthropicDocument
  /** A block of the model's thinking. */
  | {
      readonly type: "thinking";
      /** The text of the thinking. */
      readonly thinking: string;
      /** The provider's signature, as it was received. */
      readonly signature: string;
    }
  /** Thinking that the provider encrypted. */
  | {
      readonly type: "redacted_thinking";
      /** The encrypted thinking, as it was received. */
      readonly data: string;
    }
  /** A tool call of the model. */
  | {
      readonly type: "tool_use";
      /** The id of the call. */
      readonly id: string;
      /** The name of the tool. */
      readonly name: string;
      /** The arguments of the call. */
      readonly input: Readonly<Record<string, unknown>>;
    }
  /** The result of a tool call. */
  | {
      readonly type: "tool_result";
      /** The id of the call that it answers. */
      readonly tool_use_id: string;
      /** What the model reads. Absent: an empty result. */
      readonly content?: AnthropicResultBlock[];
      /** True when the call failed. */
      readonly is_error?: true;
    }
  | AnthropicOtherBlock;

/** A block inside a tool result. */
export type AnthropicResultBlock =
  | AnthropicText
  | AnthropicImage
  | AnthropicDocument
  | AnthropicSearchResult
  /** A tool that a search for tools found. */
  | {
      readonly type: "tool_reference";
      /** The name of the tool. */
      readonly tool_name: string;
    };

/** A passage that the model may cite. */
interface AnthropicSearchResult {
  readonly type: "search_result";
  /** Where the passage is from. */
  readonly source: string;
  /** The title of the source. */
  readonly title: string;
  /** The text of the passage. */
  readonly content: AnthropicText[];
}

/** A block of the provider's own, as it was stored. Those behind a beta header (`carryBlocks`) have no type here. */
type AnthropicOtherBlock =
  | AnthropicSearchResult
  /** A file of the container in which the provider runs code. */
  | {
      readonly type: "container_upload";
      /** The provider's id of the file. */
      readonly file_id: string;
    }
  /** A call of a tool that the provider runs itself. */
  | {
      readonly type: "server_tool_use";
      /** The id of the call. */
      readonly id: string;
      /** The provider's tool. */
      readonly name:
        | "web_search"
        | "web_fetch"
        | "code_execution"
        | "bash_code_execution"
        | "text_editor_code_execution"
        | "tool_search_tool_regex"
        | "tool_search_tool_bm25";
      /** The arguments of the call. */
      readonly input: unknown;
    }
  /** The result of such a call. */
  | {
      /** The kind of result, by the tool. */
      readonly type:
        | "web_search_tool_result"
        | "web_fetch_tool_result"
        | "code_execution_tool_result"
        | "bash_code_execution_tool_result"
        | "text_editor_code_execution_tool_result"
        | "tool_search_tool_result";
      /** The id of the call that it answers. */
      readonly tool_use_id: string;
      // Each has its own shape, which nobody here looks into.
      /** The result, as it was received. */
      // oxlint-disable-next-line typescript/no-explicit-any
      readonly content: any;
    };

export const anthropicMapping: ProviderMapping<AnthropicMessage> = {
  rules: {
    ...usualRules,
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
    // Half a character is in no signature that the provider made, and no request may have it.
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

/** The messages for Anthropic's API: valid whatever the log holds, and otherwise as the log says. */
export function renderAnthropic(context: Context, options: AnthropicRenderOptions = {}): AnthropicRendering {
  assertRenderOptions("renderAnthropic", options);
  const rendering = renderWith(context, anthropicMapping, options);
  return { ...rendering, canThink: opensWithThinking(rendering.messages) };
}

/** Claude up to 4.5 continues its own text; for a model of an unknown version this is uncertain. */
function takesPrefill(modelId: string | null): boolean {
  const version = /claude-(?:[a-z]{1,20}-)?(\d{1,9})(?:[.-](\d{1,2})(?!\d))?/.exec(modelId ?? "");
  if (version === null) return false;
  return Number(version[1]) + Number(version[2] ?? 0) / 100 < 4.06;
}

/** The loop begins with the first reply after the last message that holds no results. */
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
      // As its provider wrote it, of a type that the rules carry.
      return block.block as AnthropicOtherBlock;
  }
}

function userBlock(block: ReplayUserBlock): AnthropicText | AnthropicImage | AnthropicDocument | AnthropicSearchResult {
  switch (block.type) {
    case "text":
      return block;
    case "image":
      // The rules name the media types.
      return { type: "image", source: block.source as AnthropicImage["source"] };
    case "file":
      return {
        type: "document",
        source: block.source as AnthropicDocument["source"],
        ...(block.name === null ? {} : { title: block.name }),
      };
    case "raw":
      // As its provider wrote it, of a type that the rules carry.
      return block.block as unknown as AnthropicSearchResult;
  }
}

function resultBlock(result: ReplayResult): AnthropicBlock {
  if (result.content.length > 0 && !result.isError) {
    // Texts go as they are, and nearly every result is nothing else.
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

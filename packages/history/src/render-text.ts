import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import type { NeutralBlock, NeutralMessage } from "./neutral-message.ts";

/** Configures `renderText`. */
export interface RenderTextOptions {
  /** Includes thinking. @default false */
  readonly thinking?: boolean | undefined;
  /**
   * Limits tool results, in UTF-16 code units. A longer result is cut in the middle and states the length of the cut.
   * @default no limit
   */
  readonly toolResultChars?: number | undefined;
}

const textTable: OptionTable<RenderTextOptions> = {
  thinking: optionKinds.flag,
  toolResultChars: optionKinds.number({ min: 0 }),
};

/**
 * Renders the context as plain text for people and summarizers: `[User]: …`, `[Assistant]: …`. Every line after the
 * first line of a message is indented. A `[` at the start of a line therefore always starts a message, regardless of
 * the content. Control characters are kept, so a caller that writes to a terminal must escape them.
 */
export function renderText(context: Context, options: RenderTextOptions = {}): string {
  assertKnownOptions<RenderTextOptions>("renderText", options, textTable);
  return [...textPieces(context, options)].join("");
}

/**
 * Renders like `renderText`, in pieces of at most one message. Use it for large contexts, because V8 limits a string to
 * half a gigabyte.
 */
export function renderTextPieces(
  context: Context,
  options: RenderTextOptions = {},
): Generator<string, void, undefined> {
  assertKnownOptions<RenderTextOptions>("renderTextPieces", options, textTable);
  return textPieces(context, options);
}

function* textPieces(context: Context, options: RenderTextOptions): Generator<string, void, undefined> {
  let separator = "";
  for (const message of context.messages) {
    for (const [label, body] of sections(message, options)) {
      yield `${separator}[${label}]: ${indent(body)}`;
      separator = "\n\n";
    }
  }
}

type Section = readonly [label: string, body: string];

function sections(message: NeutralMessage, options: RenderTextOptions): readonly Section[] {
  switch (message.role) {
    case "user":
      return [["User", plain(message.content)]];
    case "system":
      return [["System", plain(message.content)]];
    case "assistant":
      return assistantSections(message.content, message.stopReason, options);
    case "toolResult": {
      const label = message.toolName === null ? "Tool result" : `Tool result ${quoted(message.toolName)}`;
      return [
        [message.isError ? `${label}, failed` : label, shortened(plain(message.content), options.toolResultChars)],
      ];
    }
    case "bashExecution":
      return [["User ran a command", plain(message.content)]];
    case "custom":
      return [[message.customType === null ? "Note" : `Note ${quoted(message.customType)}`, plain(message.content)]];
    case "compactionSummary":
      return [["Summary of the earlier messages", plain(message.content)]];
    case "branchSummary":
      return [["Summary of another branch", plain(message.content)]];
    case "redacted":
      return [["Removed", plain(message.content)]];
    case "other":
      return [[`Message ${quoted(message.originalRole)}`, plain(message.content)]];
  }
}

function assistantSections(
  content: readonly NeutralBlock[],
  stopReason: string | null,
  options: RenderTextOptions,
): readonly Section[] {
  const found: Section[] = [];
  const isFailed = stopReason === "aborted" || stopReason === "error";
  for (const block of content) {
    if (block.type === "toolCall")
      found.push(["Assistant calls", `${quoted(block.name)} ${JSON.stringify(block.arguments)}`]);
    else if (block.type !== "thinking")
      found.push([isFailed ? `Assistant, ${stopReason}` : "Assistant", plain([block])]);
    else if (options.thinking === true && block.thinking !== "") found.push(["Assistant thinks", block.thinking]);
  }
  return found;
}

function plain(content: readonly NeutralBlock[]): string {
  return content.map(plainBlock).join("\n");
}

function plainBlock(block: NeutralBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return `[image${block.mimeType === null ? "" : ` ${quoted(block.mimeType)}`}]`;
    case "unknown":
      return `[block of type ${quoted(block.originalType)}]`;
    default:
      return "";
  }
}

/** A tool name from a log may hold any text. Quoting an ambiguous name keeps it from looking like a section. */
function quoted(name: string): string {
  return /^[A-Za-z0-9_.:/-]{1,128}$/.test(name) ? name : JSON.stringify(name).replaceAll(lineBreaks, " ");
}

const lineBreaks = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/g;

function indent(body: string): string {
  return body.replaceAll(lineBreaks, "\n  ");
}

function shortened(body: string, maxChars: number | undefined): string {
  if (maxChars === undefined || body.length <= maxChars) return body;
  const half = Math.floor(maxChars / 2);
  const left = body.length - 2 * half;
  return `${body.slice(0, half)}\n[… ${left} characters left out …]\n${body.slice(body.length - half)}`.toWellFormed();
}

import { isFields, type Fields } from "@throughline/core/internal";

/** A line, whichever version wrote it. */
export interface CodexLine {
  readonly type: unknown;
  readonly payload: Fields;
}

/** Types of items, which versions before 0.44 wrote without an envelope. */
const itemTypes: ReadonlySet<unknown> = new Set([
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "local_shell_call",
  "web_search_call",
]);

/** Reads a line as its envelope says; a line without one is an item, or the header of the file. */
export function codexLine(line: Fields): CodexLine {
  const { type, payload, timestamp: _timestamp, ordinal: _ordinal, ...fields } = line;
  if (isFields(payload)) return { type, payload };
  if (isBareHeader(line)) return { type: "session_meta", payload: line };
  if (itemTypes.has(type)) return { type: "response_item", payload: line };
  return { type, payload: { ...fields, ...(payload === undefined ? {} : { payload }) } };
}

/** The first line of a file without envelopes. */
export function isBareHeader({ type, id, timestamp, instructions, payload }: Fields): boolean {
  const isNamed = typeof id === "string" && typeof timestamp === "string" && instructions !== undefined;
  return isNamed && type === undefined && payload === undefined;
}

export function isBareItem({ type, payload, role, content }: Fields): boolean {
  if (payload !== undefined || !itemTypes.has(type)) return false;
  return type !== "message" || (typeof role === "string" && Array.isArray(content));
}

import { isFields, type Fields } from "@throughline/core/internal";

export interface CodexLine {
  readonly type: unknown;
  readonly payload: Fields;
}

/** Versions before 0.44 wrote items of these types without an envelope. */
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

/** A line without an envelope is an item or the header of the file. */
export function codexLine(line: Fields): CodexLine {
  const { type, payload, timestamp: _timestamp, ordinal: _ordinal, ...fields } = line;
  if (isFields(payload)) return { type, payload };
  if (isBareHeader(line)) return { type: "session_meta", payload: line };
  if (itemTypes.has(type)) return { type: "response_item", payload: line };
  return { type, payload: { ...fields, ...(payload === undefined ? {} : { payload }) } };
}

/** Only the first line of a file without envelopes has this form. */
export function isBareHeader({ type, id, timestamp, instructions, payload }: Fields): boolean {
  const isNamed = typeof id === "string" && typeof timestamp === "string" && instructions !== undefined;
  return isNamed && type === undefined && payload === undefined;
}

export function isBareItem({ type, payload, role, content }: Fields): boolean {
  if (payload !== undefined || !itemTypes.has(type)) return false;
  return type !== "message" || (typeof role === "string" && Array.isArray(content));
}

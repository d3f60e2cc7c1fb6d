import { isFields, type Fields } from "@throughline/core/internal";
import type { ListPlace } from "./document-units.ts";
import { fileOfLines, type FileLayout, type FormatMatch, type FormatSample } from "./foreign-format.ts";
import { firstObjects } from "./sample-lines.ts";
import { documentIn, type SampledDocument } from "./sample-units.ts";

/**
 * Programs store a provider's messages as a bare list, a request, a line of a batch, or a log of request and answer.
 */
export const messageLists: readonly ListPlace[] = [
  [],
  ["messages"],
  ["body", "messages"],
  ["input", "messages"],
  ["request", "messages"],
  ["request", "body", "messages"],
  ["params", "messages"],
];

/** The first lines decide whether a file holds messages, one message on each line, or one conversation on each line. */
export function messageLayout(sample: FormatSample, lists: readonly ListPlace[]): FileLayout {
  if (messageLines(sample) !== null) return fileOfLines;
  return { unit: "document", lists, sessions: areLines(sample) ? "lines" : null };
}

/**
 * Cline and Roo give this name to the messages of a task. No provider's format claims such a file, although its
 * messages may match.
 */
export const historyName = "api_conversation_history.json";

export function isHistoryName(path: string): boolean {
  return path.split(/[/\\]/).at(-1) === historyName;
}

/** A file with elements that are not objects is no conversation, so it gives null. */
export function firstConversation(sample: FormatSample, lists: readonly ListPlace[]): SampledDocument | null {
  if (isHistoryName(sample.path)) return null;
  const document = messageLines(sample) ?? documentIn(areLines(sample) ? firstLine(sample) : sample, lists);
  return document === null || document.elements.length === 0 || document.others > 0 ? null : document;
}

/**
 * Combines the matches of a list's elements. The first element must be a message of the format, and no later message
 * may have another form. Elements without a role are allowed, because later versions may add them.
 */
export function matchOfMessages(
  elements: readonly Fields[],
  matchOf: (element: Fields) => FormatMatch | null,
): FormatMatch | null {
  // Only Cline and Roo store a number as `ts`, so such a message excludes the other formats.
  const matches = elements.map((element) => ({
    match: typeof element["ts"] === "number" ? null : matchOf(element),
    isMessage: element["role"] !== undefined,
  }));
  if (matches[0]?.match == null || matches.some(({ match, isMessage }) => match === null && isMessage)) return null;
  return matches.some(({ match }) => match === "certain") ? "certain" : "likely";
}

/** Programs may log one message on each line. Null means that the file has another form. */
function messageLines(sample: FormatSample): SampledDocument | null {
  if (!areLines(sample)) return null;
  const elements = firstObjects(sample);
  const [first] = elements;
  const isMessage = first !== undefined && typeof first["role"] === "string" && first["type"] === undefined;
  return isMessage && !Array.isArray(first["messages"])
    ? { head: {}, tail: {}, elements, others: 0, isCut: false }
    : null;
}

/** The first line decides: it must be a JSON object by itself. */
function areLines(sample: FormatSample): boolean {
  const { head, isWhole } = firstLine(sample);
  const rest = sample.head.subarray(head.length);
  const isOnly = rest.every((byte) => byte <= 0x20);
  if (isOnly && !sample.path.endsWith(".jsonl")) return false;
  // A first line that is longer than the sample cannot be parsed, so the file's name decides.
  return isWhole ? isObject(head) : sample.path.endsWith(".jsonl");
}

function firstLine({ path, head, isWhole }: FormatSample): FormatSample {
  const start = head.findIndex((byte) => byte > 0x20);
  const end = start < 0 ? -1 : head.indexOf(0x0a, start);
  return end < 0 ? { path, head, isWhole } : { path, head: head.subarray(0, end), isWhole: true };
}

function isObject(bytes: Uint8Array): boolean {
  try {
    return isFields(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    // The document spans several lines, so its first line is incomplete JSON.
    return false;
  }
}

/** The list may lie in a request, whose fields count as well. */
export function fieldsAround({ head, tail }: SampledDocument): Fields {
  const around = { ...head, ...tail };
  const inner = ["request", "body", "params", "input"].map((name) => around[name]).filter(isFields);
  // Spread syntax defines a field named `__proto__`, while assignment would set the prototype.
  return [...inner, around].reduce<Fields>((all, fields) => ({ ...all, ...fields }), {});
}

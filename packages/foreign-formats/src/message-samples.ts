import { isFields, type Fields } from "@throughline/core/internal";
import type { ListPlace } from "./document-units.ts";
import { fileOfLines, type FileLayout, type FormatMatch, type FormatSample } from "./foreign-format.ts";
import { firstObjects } from "./sample-lines.ts";
import { documentIn, type SampledDocument } from "./sample-units.ts";

/** Where programs that talk to a provider have its messages: a list alone, a request, a line of a batch, a note of both. */
export const messageLists: readonly ListPlace[] = [
  [],
  ["messages"],
  ["body", "messages"],
  ["input", "messages"],
  ["request", "messages"],
  ["request", "body", "messages"],
  ["params", "messages"],
];

/** A file of messages, of lines that each are a message, or of lines that each are one conversation. */
export function messageLayout(sample: FormatSample, lists: readonly ListPlace[]): FileLayout {
  if (messageLines(sample) !== null) return fileOfLines;
  return { unit: "document", lists, sessions: areLines(sample) ? "lines" : null };
}

/** What Cline and Roo name the messages of a task. No format of a provider claims such a file, whose messages may be its own. */
export const historyName = "api_conversation_history.json";

export function isHistoryName(path: string): boolean {
  return path.split(/[/\\]/).at(-1) === historyName;
}

/** The first conversation of a file. */
export function firstConversation(sample: FormatSample, lists: readonly ListPlace[]): SampledDocument | null {
  if (isHistoryName(sample.path)) return null;
  const document = messageLines(sample) ?? documentIn(areLines(sample) ? firstLine(sample) : sample, lists);
  return document === null || document.elements.length === 0 || document.others > 0 ? null : document;
}

/**
 * How sure a format is of a list, by what it says of each element. A first element that is none of its messages, or a later
 * message of another form, speaks against it. Elements without a role may come in later versions.
 */
export function matchOfMessages(
  elements: readonly Fields[],
  matchOf: (element: Fields) => FormatMatch | null,
): FormatMatch | null {
  // A number as a time is Cline's and Roo's.
  const matches = elements.map((element) => ({
    match: typeof element["ts"] === "number" ? null : matchOf(element),
    isMessage: element["role"] !== undefined,
  }));
  if (matches[0]?.match == null || matches.some(({ match, isMessage }) => match === null && isMessage)) return null;
  return matches.some(({ match }) => match === "certain") ? "certain" : "likely";
}

/** The messages of a file that holds one a line, as a program logs them; null for any other file. */
function messageLines(sample: FormatSample): SampledDocument | null {
  if (!areLines(sample)) return null;
  const elements = firstObjects(sample);
  const [first] = elements;
  const isMessage = first !== undefined && typeof first["role"] === "string" && first["type"] === undefined;
  return isMessage && !Array.isArray(first["messages"]) ? { head: {}, tail: {}, elements, others: 0 } : null;
}

/** Whether a file holds a conversation a line: its first line is one by itself. */
function areLines(sample: FormatSample): boolean {
  const { head, isWhole } = firstLine(sample);
  const rest = sample.head.subarray(head.length);
  const isOnly = rest.every((byte) => byte <= 0x20);
  if (isOnly && !sample.path.endsWith(".jsonl")) return false;
  // Of a first line that is longer than the sample, only the name tells.
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
    // The first line of a document that stands on several.
    return false;
  }
}

/** The fields around a list, also where it lies in a request. */
export function fieldsAround({ head, tail }: SampledDocument): Fields {
  const around = { ...head, ...tail };
  const inner = ["request", "body", "params", "input"].map((name) => around[name]).filter(isFields);
  // Not by assignment, which would take a field of the prototype's name for the prototype.
  return [...inner, around].reduce<Fields>((all, fields) => ({ ...all, ...fields }), {});
}

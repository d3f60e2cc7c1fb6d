import type { RecordSource } from "./record-draft.ts";
import type { SessionRecord } from "./record.ts";

const mark = "[redacted]";

/** Returns the record with a mark in place of each text. The fields that place the record in its log stay. */
export function maskedRecord(record: SessionRecord, texts: readonly string[]): SessionRecord {
  const { id, parentId, type, timestamp } = record;
  const masked = maskedValue(record, longestFirst(texts)) as SessionRecord;
  return { ...masked, id, parentId, type, timestamp };
}

/** Returns the line of a record with marks; null when the line would still hold a text. */
export function maskedSource(source: RecordSource, texts: readonly string[]): RecordSource | null {
  if (typeof source !== "string") return holdsText(new TextDecoder().decode(source), texts) ? null : source;
  const line = maskedText(source, longestFirst([...spelled(texts), ...texts]));
  return holdsText(line, texts) ? null : line;
}

/** Other escapes of JSON can hide a text in a line. */
function holdsText(line: string, texts: readonly string[]): boolean {
  try {
    const plain = JSON.stringify(JSON.parse(line));
    return spelled(texts).some((text) => plain.includes(text));
  } catch {
    // The line is no JSON, so it may hold a text in any spelling.
    return [...spelled(texts), ...texts].some((text) => line.includes(text));
  }
}

/** JSON escapes some characters of a text. */
function spelled(texts: readonly string[]): readonly string[] {
  return texts.map((text) => JSON.stringify(text).slice(1, -1));
}

/** A text may be a part of another one. */
function longestFirst(texts: readonly string[]): readonly string[] {
  return texts.toSorted((one, other) => other.length - one.length);
}

function maskedValue(value: unknown, texts: readonly string[]): unknown {
  if (typeof value === "string") return maskedText(value, texts);
  if (Array.isArray(value)) return value.map((member) => maskedValue(member, texts));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [maskedText(name, texts), maskedValue(member, texts)]),
  );
}

function maskedText(value: string, texts: readonly string[]): string {
  return texts.reduce((masked, text) => masked.replaceAll(text, () => mark), value);
}

import { crc32 } from "node:zlib";
import type { SessionRecord } from "@throughline/core";

/** No finding depends on a long text, so texts longer than `longCharacters` are cut to about `keptCharacters`. */
const longCharacters = 1024;
const keptCharacters = 64;
/** A record with fewer bytes is kept whole, because cutting it saves too little memory. */
const longRecordBytes = 4096;

/** These fields hold plain text, on which no finding depends, so they may be cut. */
const textFields: ReadonlySet<string> = new Set(["text", "thinking", "content", "summary", "data"]);
/** No finding depends on any text below these fields, so they may be cut at any depth. */
const deepFields: ReadonlySet<string> = new Set(["arguments", "details"]);

/**
 * Returns a record with its long texts cut, to limit the memory of a check. Findings do not depend on texts, and texts
 * are most of a long session. Two texts that differed still differ, because a cut text ends with its length and
 * checksum. The record's original size stays in `StoredRecord.bytes`.
 */
export function lightRecord(record: SessionRecord, sizeBytes: number): SessionRecord {
  return sizeBytes < longRecordBytes ? record : (lightFields(record, false) as SessionRecord);
}

function lightFields(fields: object, isDeep: boolean): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, lightValue(name, value, isDeep)]));
}

/**
 * The `name` of a list's element is the field that holds the list, because the field decides whether the text may be
 * cut.
 */
function lightValue(name: string, value: unknown, isWithinDeep: boolean): unknown {
  const isDeep = isWithinDeep || deepFields.has(name);
  if (typeof value === "string") return isDeep || textFields.has(name) ? cut(value, name === "data") : value;
  if (Array.isArray(value)) return value.map((item) => lightValue(name, item, isDeep));
  return typeof value === "object" && value !== null ? lightFields(value, isDeep) : value;
}

function cut(text: string, isBase64: boolean): string {
  if (text.length <= longCharacters) return text;
  const kept = text.slice(0, keptCharacters);
  // Some rules ask whether a text is blank, so a text that begins with white space is kept whole.
  if (kept.trim() === "") return text;
  const ending = isBase64 ? "" : `… ${text.length} ${crc32(text)}`;
  // The text is copied through a buffer, because a slice keeps the whole original string in memory.
  return Buffer.from(kept + ending).toString();
}

import { crc32 } from "node:zlib";
import type { SessionRecord } from "@throughline/core";

/** Longer texts are cut, to about so much. */
const longCharacters = 1024;
const keptCharacters = 64;
/** A record of fewer bytes is kept as it is. */
const longRecordBytes = 4096;

/** Fields that hold plain text: no finding depends on them. */
const textFields: ReadonlySet<string> = new Set(["text", "thinking", "content", "summary", "data"]);
/** Fields that hold nothing else, however deep. */
const deepFields: ReadonlySet<string> = new Set(["arguments", "details"]);

/**
 * A record with its long texts cut, for finding what is odd about a session: that hangs on no text, and texts are nearly all
 * of a long session. Texts that differed differ still; how long the record is its place says.
 */
export function lightRecord(record: SessionRecord, sizeBytes: number): SessionRecord {
  return sizeBytes < longRecordBytes ? record : (lightFields(record, false) as SessionRecord);
}

function lightFields(fields: object, isDeep: boolean): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, lightValue(name, value, isDeep)]));
}

/** `name`: of the field that it is the value of, or an element in. */
function lightValue(name: string, value: unknown, isWithinDeep: boolean): unknown {
  const isDeep = isWithinDeep || deepFields.has(name);
  if (typeof value === "string") return isDeep || textFields.has(name) ? cut(value, name === "data") : value;
  if (Array.isArray(value)) return value.map((item) => lightValue(name, item, isDeep));
  return typeof value === "object" && value !== null ? lightFields(value, isDeep) : value;
}

function cut(text: string, isBase64: boolean): string {
  if (text.length <= longCharacters) return text;
  const kept = text.slice(0, keptCharacters);
  // Whether there is anything to be read in it must stay as it is.
  if (kept.trim() === "") return text;
  const ending = isBase64 ? "" : `… ${text.length} ${crc32(text)}`;
  // Made anew: a part of a text keeps all of it in memory.
  return Buffer.from(kept + ending).toString();
}

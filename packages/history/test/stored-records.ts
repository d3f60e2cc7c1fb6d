import { isSideRecord } from "@throughline/core/internal";
import type { SessionRecord, StoredRecord } from "@throughline/core";

/** A record as a test writes it: what is left out is filled in from its place. */
export interface RecordSketch {
  readonly type: string;
  readonly id?: string;
  readonly parentId?: string | null;
  readonly timestamp?: string;
  readonly [field: string]: unknown;
}

/** Records as a store hands them out, linked to the main record before them unless they say otherwise. */
export function storedRecords(sketches: readonly RecordSketch[], firstSeq = 1): StoredRecord[] {
  let headId: string | null = null;
  return sketches.map((sketch, index) => {
    const seq = firstSeq + index;
    const {
      type,
      id = `r${seq}`,
      parentId = headId,
      timestamp = new Date(seq * 1000).toISOString(),
      ...fields
    } = sketch;
    const record: SessionRecord = { type, id, parentId, timestamp, ...fields };
    const side = isSideRecord(record);
    if (!side) headId = id;
    const tsMs = Date.parse(timestamp);
    return {
      seq,
      id,
      parentId,
      type,
      side,
      tsMs,
      storedAtMs: tsMs,
      bytes: JSON.stringify(record).length,
      crc: null,
      record,
    };
  });
}

export function user(content: unknown, fields: Partial<RecordSketch> = {}): RecordSketch {
  return { type: "message", message: { role: "user", content }, ...fields };
}

/** An assistant reply; `more` are further fields of the message. */
export function assistant(
  content: unknown,
  more: Readonly<Record<string, unknown>> = {},
  fields: Partial<RecordSketch> = {},
): RecordSketch {
  const model = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
  return { type: "message", message: { role: "assistant", content, ...model, stopReason: "stop", ...more }, ...fields };
}

export function result(
  toolCallId: string,
  content: unknown = "ok",
  more: Readonly<Record<string, unknown>> = {},
): RecordSketch {
  return {
    type: "message",
    message: { role: "toolResult", toolCallId, toolName: "read", content, isError: false, ...more },
  };
}

export function call(
  id: string,
  args: Readonly<Record<string, unknown>> = { path: id },
): Readonly<Record<string, unknown>> {
  return { type: "toolCall", id, name: "read", arguments: args };
}

export function text(value: string): Readonly<Record<string, unknown>> {
  return { type: "text", text: value };
}

export function compaction(
  firstKeptEntryId: string,
  summary = "what was said",
  fields: Partial<RecordSketch> = {},
): RecordSketch {
  return { type: "compaction", summary, firstKeptEntryId, tokensBefore: 1000, ...fields };
}

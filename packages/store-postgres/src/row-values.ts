import { isUtf8 } from "node:buffer";
import { crc32 } from "node:zlib";
import type { ReadPayload, RecordFor, RecordHead, SourcedRecord } from "@throughline/core/internal";
import type {
  SessionEntry,
  SessionHead,
  SessionRecord,
  SessionRef,
  SessionState,
  StoredRecord,
} from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import { type PayloadOwner, type SessionFrame, sessionState } from "@throughline/store-kit/internal";
import { isLostPayload, quote, refused } from "@throughline/core/internal";
import { joinChecksums } from "./join-checksums.ts";
import { fromColumnText, lineStart, type PayloadPlace, type RowCoder } from "./record-columns.ts";

/** Holds a row as the driver returns it. The driver returns 64-bit whole numbers as text. */
export type DatabaseRow = Readonly<Record<string, unknown>>;

export function headOf(row: DatabaseRow): SessionHead {
  const fence = Number(row["fence"]);
  const [turnId, owner] = [textOrNull(row["turn_id"]), textOrNull(row["turn_owner"])];
  const leaseUntilMs = numberOrNull(row["lease_until_ms"]);
  return {
    sessionId: String(row["session_id"]),
    lastSeq: Number(row["last_seq"]),
    headId: textOrNull(row["head_id"]),
    windowSeq: numberOrNull(row["window_seq"]),
    fence,
    turn: turnId === null || owner === null || leaseUntilMs === null ? null : { turnId, owner, leaseUntilMs, fence },
  };
}

export function refOf(row: DatabaseRow): SessionRef {
  const archiveId = String(row["archive_id"]);
  const ref = { namespace: String(row["namespace"]), agentId: String(row["agent_id"]), key: String(row["key"]) };
  return archiveId === "" ? ref : { ...ref, archiveId };
}

export function frameOf(row: DatabaseRow): SessionFrame {
  const head = headOf(row);
  return {
    ref: refOf(row),
    sessionId: head.sessionId,
    revision: Number(row["revision"]),
    head,
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

export function stateOf(rows: RowCoder, row: DatabaseRow): SessionState {
  return sessionState(frameOf(row), entryOf(rows, row), Number(row["message_count"]));
}

/**
 * Holds the fields of an entry as columns. Names and values are JSON texts, which contain neither a raw NUL nor a raw
 * lone surrogate.
 */
export interface EntryColumns {
  readonly names: readonly string[] | null;
  readonly values: readonly (string | null)[] | null;
  readonly coded: Uint8Array | null;
}

/** Encodes a whole entry. Under a codec it is bound to the key that it is kept under. */
export function entryColumns(rows: RowCoder, place: PayloadPlace, entry: SessionEntry): EntryColumns {
  if (rows.isCoded)
    return { names: null, values: null, coded: rows.coder.encode(JSON.stringify(entry), entryOwner(place)) };
  return { ...fieldColumns(entry), coded: null };
}

/** Encodes fields of an entry. A null value removes the field. */
export function fieldColumns(fields: Readonly<Record<string, unknown>>): {
  readonly names: readonly string[];
  readonly values: readonly (string | null)[];
} {
  const pairs = Object.entries(fields);
  return {
    names: pairs.map(([name]) => JSON.stringify(name)),
    values: pairs.map(([, value]) => (value === undefined ? null : (JSON.stringify(value) ?? null))),
  };
}

export function entryOf(rows: RowCoder, row: DatabaseRow): SessionEntry {
  const ref = refOf(row);
  const owner = entryOwner({ ref, sessionId: String(row["session_id"]) });
  const { entry_names: names, entry_values: values, entry_coded: coded } = row;
  if (rows.isCoded !== coded instanceof Uint8Array) throw wrongCodec(owner);
  if (coded instanceof Uint8Array)
    return parse(rows, Buffer.from(rows.coder.decode(coded, owner)).toString(), owner) as SessionEntry;
  if (!Array.isArray(names) || !Array.isArray(values)) throw damaged(owner);
  const texts = values as readonly string[];
  const fields = (names as readonly string[]).map((name, index) => `${name}:${texts[index] ?? "null"}`);
  return parse(rows, `{${fields.join(",")}}`, owner) as SessionEntry;
}

function entryOwner(place: PayloadPlace): PayloadOwner {
  return { ...place, id: place.ref.key, part: "entry" };
}

/**
 * Reads a record from its row. `place` is the requested session. A shared record is bound to the session that wrote it.
 */
export function recordOf<Payload extends ReadPayload>(
  rows: RowCoder,
  ref: SessionRef,
  row: DatabaseRow,
  payload: Payload,
): RecordFor<Payload> {
  const read = (): RecordHead | StoredRecord | SourcedRecord => {
    const head: RecordHead = {
      seq: Number(row["seq"]),
      id: String(row["id"]),
      parentId: fromColumnText(textOrNull(row["parent_id"])),
      type: String(row["type"]),
      side: row["side"] === true,
      tsMs: numberOrNull(row["ts_ms"]),
      storedAtMs: Number(row["stored_at_ms"]),
      bytes: Number(row["bytes"]),
      crc: lineChecksum(rows, row),
    };
    if (payload === "head") return { ...head, role: textOrNull(row["role"]), toolName: textOrNull(row["tool_name"]) };
    const sessionId = textOrNull(row["base_id"]) ?? String(row["session_id"]);
    const owner: PayloadOwner = { ref, sessionId, id: head.id, part: "record" };
    const form = numberOrNull(row["form"]);
    const rest = restText(rows, row, owner);
    const line = form === 0 ? rest : lineStart(head.type, head.id, head.parentId) + rest;
    const stored = { ...head, record: parse(rows, line, owner) as SessionRecord };
    if (payload === "record") return stored;
    if (form === null || form === 0) return { ...stored, source: line, isSourceCanonical: true };
    const kept = row["source"] ?? row["source_payload"];
    if (!(kept instanceof Uint8Array)) throw damaged(owner);
    const given = rows.coder.decode(kept, { ...owner, part: "source" });
    const isText = form === 1 && isUtf8(given);
    return { ...stored, source: isText ? Buffer.from(given).toString() : given, isSourceCanonical: false };
  };
  try {
    return read() as RecordFor<Payload>;
  } catch (error) {
    // One changed bit in the id of a key reads as a missing key, which would stop the index for a damaged record.
    if (!hasErrorCode(error, "CODEC_FAILED") || fitsChecksum(row)) throw error;
    const { seq, id } = row;
    const message = `Record ${seq} (${quote(String(id))}) is damaged: it does not match its checksum.`;
    throw refused("STORE_CORRUPT", message, { seq: Number(seq), id }, error);
  }
}

/**
 * Returns whether the kept bytes of a record match its checksum, which covers the source, too. A row that was read
 * without its source counts as whole.
 */
export function fitsChecksum(row: DatabaseRow): boolean {
  const text = row["rest"] ?? row["coded"] ?? row["rest_payload"];
  const source = row["source"] ?? row["source_payload"];
  if (!(typeof text === "string" || text instanceof Uint8Array) || isWithoutSource(row)) return true;
  return Number(row["crc"]) === (source instanceof Uint8Array ? crc32(source, crc32(text)) : crc32(text));
}

/** Returns whether the record has a source that was not read with it. */
export function isWithoutSource(row: DatabaseRow): boolean {
  return (numberOrNull(row["form"]) ?? 0) !== 0 && !((row["source"] ?? row["source_payload"]) instanceof Uint8Array);
}

/** Returns the record, or null for a damaged or erased one. A read and `verify` report it. */
export function wholeRecordOf(rows: RowCoder, ref: SessionRef, row: DatabaseRow): StoredRecord | null {
  try {
    return recordOf(rows, ref, row, "record");
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT") || isLostPayload(error)) return null;
    throw error;
  }
}

/**
 * Returns the checksum of the whole line. The row keeps the checksum of the line from the timestamp on, and this
 * function joins the checksum of the beginning.
 */
export function lineChecksum(rows: RowCoder, row: DatabaseRow): number {
  const kept = Number(row["crc"]);
  if (rows.isCoded || row["form"] !== null) return kept;
  const start = Buffer.from(
    lineStart(String(row["type"]), String(row["id"]), fromColumnText(textOrNull(row["parent_id"]))),
  );
  return joinChecksums(crc32(start), kept, Number(row["bytes"]) - start.length);
}

function restText(rows: RowCoder, row: DatabaseRow, owner: PayloadOwner): string {
  const { rest, coded, rest_payload: aside } = row;
  if (typeof rest === "string") {
    if (rows.isCoded) throw wrongCodec(owner);
    return rest;
  }
  if (!rows.isCoded) {
    if (coded instanceof Uint8Array) throw wrongCodec(owner);
    if (aside instanceof Uint8Array) return Buffer.from(aside).toString();
    throw damaged(owner);
  }
  const bytes = coded ?? aside;
  if (!(bytes instanceof Uint8Array)) throw damaged(owner);
  return Buffer.from(rows.coder.decode(bytes, owner)).toString();
}

/** A text that was written without a codec was JSON, so any other text has been damaged. */
function parse({ isCoded }: RowCoder, text: string, owner: PayloadOwner): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw isCoded
      ? wrongCodec(owner, cause)
      : refused(
          "STORE_CORRUPT",
          `The ${owner.part} of ${quote(owner.id)} is damaged.`,
          { part: owner.part, id: owner.id },
          cause,
        );
  }
}

function wrongCodec({ id, part }: PayloadOwner, cause?: unknown): Error {
  const message = `The ${part} of ${quote(id)} cannot be read with the codec the store was opened with.`;
  return refused("CODEC_FAILED", message, { part, id }, cause);
}

function damaged({ id, part }: PayloadOwner): Error {
  return refused("STORE_CORRUPT", `The ${part} of ${quote(id)} is not where it was put.`, { part, id });
}

/** Returns whether text columns can hold these texts. No session has an address with another text. */
export function canHold(texts: readonly string[]): boolean {
  return texts.every((text) => text.isWellFormed() && !text.includes("\0"));
}

export function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

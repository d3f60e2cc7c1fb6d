import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { hasErrorCode, type SessionRecord, type StoredRecord } from "@throughline/core";
import {
  isLostPayload,
  lineBytes,
  type LinkedRecord,
  quote,
  type ReadPayload,
  type RecordFor,
  refused,
} from "@throughline/core/internal";
import { noPromotedColumns, promotedColumns } from "@throughline/store-kit/internal";
import type { KeptPayload, PayloadPlace, PromotedColumns, RecordRow, RowCoder } from "@throughline/store-kit/internal";
import { placeOf } from "./rows.ts";
import { assertContent, assertHead, headChecksum } from "./row-checksums.ts";
import type { RecordContentRow, RecordHeadRow, Session, SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** A payload with more bytes than this is stored beside its record, once for all records that hold the same payload. */
const payloadBytes = 256 * 1024;

export const textForm = 1;
const bytesForm = 2;

/** Holds a record that is ready to be written, after every check that can refuse it. */
export interface CodedRecord {
  readonly row: RecordRow;
  readonly role: string | null;
  readonly toolName: string | null;
}

export function codedRecord(
  coder: RowCoder,
  place: PayloadPlace,
  item: LinkedRecord,
  at: { readonly seq: number; readonly storedAtMs: number },
): CodedRecord {
  const row = coder.encodeRecord(place, item, at);
  return { row, role: row.role ?? null, toolName: row.toolName ?? null };
}

/**
 * Returns whether the text of a record is all that must be stored, and fits into its row. This is true for nearly all
 * records.
 */
export function isPlainRecord({ source, text }: LinkedRecord): boolean {
  return (source === null || source === text) && text.length * 3 <= payloadBytes;
}

/**
 * Writes the row of a plain record, without a codec. It creates no object that SQLite does not get, because after a
 * flush all memory is far away and every object costs time.
 */
export function insertPlainRecord(
  statements: Statements,
  session: Session,
  item: LinkedRecord,
  seq: number,
  storedAtMs: number,
): void {
  const { record, text, side, tsMs } = item;
  const { id, parentId, type } = record;
  const { role, toolName } = promoted(record);
  const [bytes, crc] = [lineBytes(item), crc32(text)];
  statements.insertPlainRecord.run(
    session,
    seq,
    id,
    parentId,
    type,
    side ? 1 : 0,
    tsMs,
    storedAtMs,
    bytes,
    crc,
    role,
    toolName,
    text,
    headChecksum(session, { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName }),
  );
}

export function insertRecord(statements: Statements, session: Session, { row, role, toolName }: CodedRecord): void {
  statements.insertRecord.run(
    session,
    row.seq,
    row.id,
    row.parentId,
    row.type,
    row.side ? 1 : 0,
    row.tsMs,
    row.storedAtMs,
    row.bytes,
    row.crc,
    role,
    toolName,
    ...contentValues(statements, row),
    headChecksum(session, { ...row, role, toolName }),
  );
}

/** Replaces the content of a record. The payloads of the old content must be dropped afterwards. */
export function replaceRecord(statements: Statements, session: Session, row: RecordRow): void {
  const { type, bytes, crc, role = null, toolName = null } = row;
  statements.replaceRecord.run(
    type,
    bytes,
    crc,
    role,
    toolName,
    ...contentValues(statements, row),
    headChecksum(session, row),
    session,
    row.seq,
  );
}

/** Returns the values of `contentColumns`. */
function contentValues(
  statements: Statements,
  { text, source, isSourceText }: RecordRow,
): readonly (KeptPayload | number | null)[] {
  const [ownText, ownSource] = [placed(statements, text), placed(statements, source)];
  const form = source === null ? null : isSourceText ? textForm : bytesForm;
  return [ownText.kept ?? "", form, ownSource.kept, ownText.payload, ownSource.payload];
}

/** Holds the part of a payload that stands in the row, and the number of the part beside it. */
interface PlacedPayload {
  readonly kept: KeptPayload | null;
  readonly payload: number | null;
}

function placed(statements: Statements, kept: KeptPayload | null): PlacedPayload {
  if (kept === null || kept.length * 3 <= payloadBytes || sizeOf(kept) <= payloadBytes) return { kept, payload: null };
  const hash = createHash("sha256").update(kept).digest();
  // The hash differs for text and for coded bytes, because equal bytes of both kinds are two payloads.
  if (typeof kept !== "string") hash[0] = (hash[0] ?? 0) ^ 0xff;
  const found = statements.findPayload.get(hash);
  // A damaged index may lead to another payload.
  if (found !== undefined && !isSame(statements.readPayload.get(found)?.content, kept))
    throw refused("STORE_CORRUPT", "The index of the payloads is damaged: it leads to another one.", {
      payload: found,
    });
  if (found !== undefined) return { kept: null, payload: found };
  return { kept: null, payload: Number(statements.insertPayload.run(hash, kept).lastInsertRowid) };
}

function isSame(one: KeptPayload | undefined, other: KeptPayload): boolean {
  if (typeof one === "string" || typeof other === "string") return one === other;
  return one !== undefined && Buffer.compare(one, other) === 0;
}

function sizeOf(kept: KeptPayload): number {
  return typeof kept === "string" ? Buffer.byteLength(kept) : kept.byteLength;
}

/** Returns a row as core has it. @throws {ThroughlineError} STORE_CORRUPT when it is damaged, or its payload is gone */
export function rowOf(statements: Statements, session: Session, found: RecordContentRow): RecordRow {
  assertHead(session, found);
  const { seq, id, parentId, type, tsMs, storedAtMs, bytes, crc, textPayload, sourcePayload } = found;
  const text = textPayload === null ? found.text : payloadOf(statements, textPayload, found);
  const source = sourcePayload === null ? found.source : payloadOf(statements, sourcePayload, found);
  const { role = null, toolName = null } = found;
  const head = { seq, id, parentId, type, side: found.side === 1, tsMs, storedAtMs, bytes, crc, role, toolName };
  return { ...head, text, source, isSourceText: found.sourceForm === textForm };
}

function payloadOf(statements: Statements, payload: number, { seq, id }: RecordHeadRow): KeptPayload {
  const found = statements.readPayload.get(payload);
  if (found === undefined)
    throw refused("STORE_CORRUPT", `The payload of record ${seq} (${quote(id)}) is missing.`, { seq, id, payload });
  return found.content;
}

/** Decodes a record. @throws {ThroughlineError} STORE_CORRUPT, CODEC_FAILED */
export function recordOf<Payload extends ReadPayload>(
  coder: RowCoder,
  place: PayloadPlace,
  row: RecordRow,
  payload: Payload,
): RecordFor<Payload> {
  if (payload !== "head") assertContent(row, row.text, row.source);
  try {
    return coder.decodeRecord(place, row, payload);
  } catch (cause) {
    // A text without a codec was JSON when it was written, so other text is damage.
    const isDamaged = typeof row.text === "string" && hasErrorCode(cause, "CODEC_FAILED");
    if (!isDamaged) throw cause;
    const { seq, id } = row;
    throw refused("STORE_CORRUPT", `Record ${seq} (${quote(id)}) is damaged.`, { seq, id }, cause);
  }
}

/** Returns the record, or null if it is damaged or erased. Readers and `verify` report it. */
export function wholeRecordOf(
  coder: RowCoder,
  owner: SessionRow,
  statements: Statements,
  found: RecordContentRow,
): StoredRecord | null {
  try {
    return recordOf(coder, placeOf(owner), rowOf(statements, owner.session, found), "record");
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT") || isLostPayload(error)) return null;
    throw error;
  }
}

/** Deletes the given payloads that no record refers to any more. */
export function dropPayloads(
  statements: Statements,
  refs: readonly { readonly textPayload: number | null; readonly sourcePayload: number | null }[],
): void {
  for (const { textPayload, sourcePayload } of refs) {
    if (textPayload !== null) statements.dropPayload.run(textPayload);
    if (sourcePayload !== null) statements.dropPayload.run(sourcePayload);
  }
}

export function promoted(record: SessionRecord): PromotedColumns {
  return record.type === "message" ? promotedColumns(record["message"]) : noPromotedColumns;
}

import { crc32 } from "node:zlib";
import type {
  AppendedRecord,
  ReadPayload,
  RecordHead,
  SessionRecord,
  SessionRef,
  SourcedRecord,
  StoredRecord,
} from "@throughline/core";
import { lineBytes, type LinkedRecord, type PayloadCoder, quote, refused } from "@throughline/core/store";
import type { KeptPayload, RecordHeadRow, RecordRow } from "./statements.ts";

/** What the payloads of a session belong to. */
export interface PayloadPlace {
  readonly ref: SessionRef;
  readonly sessionId: string;
}

/** Payloads to columns and back: text as it is, or what the codec makes of it. */
export interface RowCoder {
  readonly coder: PayloadCoder;
  readonly isCoded: boolean;
}

const textForm = 1;
const bytesForm = 2;

/** The content columns of a record, as they are bound. */
interface ContentColumns {
  readonly text: KeptPayload;
  readonly sourceForm: number | null;
  readonly source: KeptPayload | null;
  readonly crc: number;
}

/** The columns of one record in the order of `insertRecord`. The source is kept only where the text does not say it all. */
export function recordColumns(
  rows: RowCoder,
  place: PayloadPlace,
  item: LinkedRecord,
  at: { readonly session: number; readonly seq: number; readonly storedAtMs: number },
): unknown[] {
  const { record, side, tsMs } = item;
  const { text, sourceForm, source, crc } = contentColumns(rows, place, item);
  const { role, toolName } = rows.isCoded ? noPromotion : promoted(record);
  return [
    at.session,
    at.seq,
    record.id,
    record.parentId,
    record.type,
    side ? 1 : 0,
    tsMs,
    at.storedAtMs,
    lineBytes(item),
    crc,
    role,
    toolName,
    text,
    sourceForm,
    source,
  ];
}

export function contentColumns(
  { coder, isCoded }: RowCoder,
  place: PayloadPlace,
  item: Pick<LinkedRecord, "record" | "text" | "source">,
): ContentColumns {
  const owner = { ...place, id: item.record.id };
  const text = isCoded ? coder.encode(item.text, { ...owner, part: "record" }) : item.text;
  const given = item.source === item.text ? null : item.source;
  if (given === null) return { text, sourceForm: null, source: null, crc: crc32(text) };
  const source = isCoded || typeof given !== "string" ? coder.encode(given, { ...owner, part: "source" }) : given;
  // Both are covered: the checksum is that of the text with the source behind it.
  return {
    text,
    source,
    sourceForm: typeof given === "string" ? textForm : bytesForm,
    crc: crc32(source, crc32(text)),
  };
}

export function recordOf<Payload extends ReadPayload>(
  rows: RowCoder,
  place: PayloadPlace,
  row: RecordHeadRow | RecordRow,
  payload: Payload,
): RecordHead | StoredRecord | SourcedRecord {
  const head: RecordHead = {
    seq: row.seq,
    id: row.id,
    parentId: row.parent_id,
    type: row.type,
    side: row.side === 1,
    tsMs: row.ts_ms,
    storedAtMs: row.stored_at_ms,
    bytes: row.bytes,
    crc: row.crc,
  };
  if (payload === "head") return head;
  const { text, source, source_form: form } = row as RecordRow;
  const line = decodedText(rows, place, row.id, text, "record");
  const stored = { ...head, record: parsed(line, head) };
  if (payload === "record") return stored;
  if (source === null) return { ...stored, source: line, isSourceCanonical: true };
  const given =
    form === textForm
      ? decodedText(rows, place, row.id, source, "source")
      : rows.coder.decode(source as Uint8Array, { ...place, id: row.id, part: "source" });
  return { ...stored, source: given, isSourceCanonical: false };
}

/** @throws {ThroughlineError} STORE_CORRUPT: what was written was JSON, so what is not has been damaged since */
function parsed(line: string, { seq, id }: RecordHead): SessionRecord {
  try {
    return JSON.parse(line) as SessionRecord;
  } catch (cause) {
    throw refused("STORE_CORRUPT", `Record ${seq} (${quote(id)}) is damaged.`, { seq, id }, cause);
  }
}

/** What an append says of a record, read back for the answer to a repeated one. */
export function appendedOf(row: RecordHeadRow): AppendedRecord {
  return {
    seq: row.seq,
    id: row.id,
    parentId: row.parent_id,
    side: row.side === 1,
    tsMs: row.ts_ms,
    storedAtMs: row.stored_at_ms ?? 0,
  };
}

export function decodedText(
  { coder }: RowCoder,
  place: PayloadPlace,
  id: string,
  kept: KeptPayload,
  part: "record" | "source" | "entry",
): string {
  if (typeof kept === "string") return kept;
  const bytes = coder.decode(kept, { ...place, id, part });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

const noPromotion: { readonly role: string | null; readonly toolName: string | null } = { role: null, toolName: null };

/** Columns for filters and views. What does not fit a column is left out: it is only a copy of what the text says. */
function promoted(record: SessionRecord): typeof noPromotion {
  const message = record["message"];
  if (record.type !== "message" || typeof message !== "object" || message === null) return noPromotion;
  const { role, toolName } = message as { readonly role?: unknown; readonly toolName?: unknown };
  return { role: columnText(role), toolName: columnText(toolName) };
}

function columnText(value: unknown): string | null {
  return typeof value === "string" && value.length <= 256 && value.isWellFormed() ? value : null;
}

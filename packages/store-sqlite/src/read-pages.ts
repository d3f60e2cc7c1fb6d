import type { ReadPayload, RecordFor, RecordHead, SourcedRecord } from "@throughline/core/internal";
import type { RecordPage, SessionRecord, SessionRef, StoredRecord } from "@throughline/core";
import { refused, sessionNotFound } from "@throughline/core/internal";
import type { KeptPayload, PageRange } from "@throughline/store-kit/internal";
import type { Connection } from "./connection.ts";
import { inOneSnapshot } from "./one-snapshot.ts";
import { promoted, recordOf, rowOf, textForm } from "./record-rows.ts";
import { assertContent, assertHead } from "./row-checksums.ts";
import { placeOf } from "./rows.ts";
import { foundSession } from "./session-rows.ts";
import { spansOf } from "./session-spans.ts";
import type { RecordContentRow, RecordHeadRow, RecordTextRow, Session, SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";
import type { StoreContext } from "./store-context.ts";

/** The first slice of a page has this many rows. The next slices follow the size of the rows before. */
const firstRows = 4;
/** A row holds at most as much as a payload beside it, so rows that grow suddenly stay within some megabytes. */
const mostRows = 128;

/** Holds what a read keeps between two pages: the session that it began with. */
export interface ReadTarget {
  readonly ref: SessionRef;
  session: Session | null;
  /** Averages the rows of the pages before. */
  rowBytes?: number;
}

/**
 * Reads one page, which is empty at the end, in a snapshot that ends with it. A slow reader then does not block
 * writers, and the log can still be cut.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
export function readPage<Payload extends ReadPayload>(
  context: StoreContext,
  connection: Connection,
  target: ReadTarget,
  range: PageRange,
  payload: Payload,
): RecordPage<Payload> {
  const { statements } = connection;
  return inOneSnapshot(connection, () => {
    const row =
      target.session === null ? foundSession(statements, target.ref) : statements.findSession.get(target.session);
    if (row === undefined) throw sessionNotFound(target.ref);
    target.session = row.session;
    return { records: pageOf(context, statements, target, row, range, payload), lastSeq: row.last_seq };
  });
}

/** Counts how much of a page is left. */
interface Room {
  rows: number;
  bytes: number;
  /** Averages the rows so far, those of the pages before included. 0 means that no row was read. */
  rowBytes: number;
}

function pageOf<Payload extends ReadPayload>(
  { limits, rows: coder, isCoded }: StoreContext,
  statements: Statements,
  target: ReadTarget,
  session: SessionRow,
  range: PageRange,
  payload: Payload,
): RecordFor<Payload>[] {
  const records: RecordFor<Payload>[] = [];
  const room: Room = {
    rows: Math.min(limits.pageRecords, range.left),
    bytes: limits.pageBytes,
    rowBytes: target.rowBytes ?? 0,
  };
  const spans = spansOf(statements, session);
  for (const { owner, afterSeq, toSeq } of range.order === "ascending" ? spans : spans.toReversed()) {
    const part = {
      ...range,
      afterSeq: Math.max(range.afterSeq, afterSeq),
      beforeSeq: Math.min(range.beforeSeq, toSeq + 1),
    };
    if (payload !== "head" && !isCoded) {
      const statement = statements.readTexts[range.order];
      const take = (row: RecordTextRow): RecordFor<Payload> => {
        if (isWholeRow(row)) return plainRecord<Payload>(owner.session, row, payload);
        const [found] = statements.readRecords.ascending.all(owner.session, row[0] - 1, row[0] + 1, 1);
        if (found === undefined) throw refused("STORE_CORRUPT", `Record ${row[0]} is missing.`, { seq: row[0] });
        return decoded(statements, coder, owner, found, payload);
      };
      readRows(statement, owner.session, part, room, take, records);
    } else {
      const statement = (payload === "head" ? statements.readHeads : statements.readRecords)[range.order];
      const take = (row: RecordHeadRow): RecordFor<Payload> => decoded(statements, coder, owner, row, payload);
      readRows<RecordHeadRow, RecordFor<Payload>>(statement, owner.session, part, room, take, records);
    }
    if (room.rows <= 0 || room.bytes <= 0) break;
  }
  target.rowBytes = room.rowBytes;
  return records;
}

function decoded<Payload extends ReadPayload>(
  statements: Statements,
  coder: StoreContext["rows"],
  owner: SessionRow,
  row: RecordHeadRow,
  payload: Payload,
): RecordFor<Payload> {
  if (payload !== "head")
    return recordOf(coder, placeOf(owner), rowOf(statements, owner.session, row as RecordContentRow), payload);
  assertHead(owner.session, row);
  const { headCrc: _headCrc, ...head } = row;
  return { ...head, side: row.side === 1 } as RecordFor<Payload>;
}

/** Returns false where a payload is stored beside the row, is no text, or is coded although the store has no codec. */
function isWholeRow([, , , , , , , text, sourceForm, source]: RecordTextRow): boolean {
  if (typeof text !== "string" || text === "") return false;
  return sourceForm === null || (sourceForm === textForm && typeof source === "string");
}

/** Reads a record without a codec. Its text states id, parent and type, so those columns are not read. */
function plainRecord<Payload extends ReadPayload>(
  session: Session,
  row: RecordTextRow,
  payload: Payload,
): RecordFor<Payload> {
  const [seq, side, tsMs, storedAtMs, bytes, crc, headCrc, text, sourceForm, given] = row;
  const isSourceCanonical = sourceForm === null;
  const record = parsedRecord(text, seq);
  const { id, parentId, type } = record;
  assertContent({ seq, id, crc }, text, isSourceCanonical ? null : given);
  const { role, toolName } = promoted(record);
  const head = { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName };
  assertHead(session, { ...head, headCrc });
  const source = (isSourceCanonical ? text : given) as string;
  // Each object is written out, because copying a record into a larger one takes as long as parsing it.
  const made: StoredRecord | SourcedRecord =
    payload === "record"
      ? { seq, id, parentId, type, side: side === 1, tsMs, storedAtMs, bytes, crc, record }
      : { seq, id, parentId, type, side: side === 1, tsMs, storedAtMs, bytes, crc, record, source, isSourceCanonical };
  return made as RecordFor<Payload>;
}

/** @throws {ThroughlineError} STORE_CORRUPT, because the stored text was JSON when it was written */
function parsedRecord(text: KeptPayload, seq: number): SessionRecord {
  try {
    return JSON.parse(text as string) as SessionRecord;
  } catch (cause) {
    throw refused("STORE_CORRUPT", `Record ${seq} is damaged.`, { seq }, cause);
  }
}

/**
 * Reads whole slices of rows, which is faster than a cursor and bounded. The first slice is small, and each next slice
 * is as large as the remaining room suggests. The results are added to `records`.
 */
function readRows<Row, Made extends RecordHead>(
  statement: { all(session: Session, afterSeq: number, beforeSeq: number, limit: number): Row[] },
  session: Session,
  range: PageRange,
  room: Room,
  make: (row: Row) => Made,
  records: Made[],
): void {
  let { afterSeq, beforeSeq } = range;
  while (room.rows > 0 && room.bytes > 0) {
    const suggested = room.rowBytes === 0 ? firstRows : Math.ceil(room.bytes / room.rowBytes);
    const wanted = Math.min(room.rows, Math.max(suggested, 1), mostRows);
    const slice = statement.all(session, afterSeq, beforeSeq, wanted);
    let bytes = 0;
    let lastSeq = -1;
    for (const row of slice) {
      if (bytes >= room.bytes) break;
      const made = make(row);
      records.push(made);
      bytes += made.bytes;
      lastSeq = made.seq;
      room.rows--;
    }
    if (lastSeq < 0) return;
    room.bytes -= bytes;
    room.rowBytes = Math.max(bytes / slice.length, 1);
    if (slice.length < wanted) return;
    if (range.order === "ascending") afterSeq = lastSeq;
    else beforeSeq = lastSeq;
  }
}

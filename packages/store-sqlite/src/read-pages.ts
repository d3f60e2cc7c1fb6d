import type { ReadPayload, RecordFor, RecordPage, SessionRef } from "@throughline/core";
import { sessionNotFound } from "@throughline/core/store";
import type { PageRange, PayloadPlace } from "@throughline/core/store-rows";
import type { Connection } from "./open-connection.ts";
import { recordOf, rowOf } from "./record-rows.ts";
import { foundSession, placeOf } from "./session-rows.ts";
import { spansOf } from "./session-spans.ts";
import type { RecordContentRow, RecordHeadRow, Session, SessionRow, Statements } from "./statements.ts";
import type { StoreScene } from "./store-scene.ts";

/** The first slice of a page; the next ones follow the size of the records seen. */
const firstRows = 4;

/** What a read holds on to between two pages: the session it began with. */
export interface ReadTarget {
  readonly ref: SessionRef;
  session: Session | null;
}

/**
 * One page, empty at the end, read in one snapshot that ends with it: a reader who takes his time keeps nobody from
 * writing and keeps no log from being cut.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
export function readPage<Payload extends ReadPayload>(
  scene: StoreScene,
  connection: Connection,
  target: ReadTarget,
  range: PageRange,
  payload: Payload,
): RecordPage<Payload> {
  const { statements } = connection;
  statements.beginRead.run();
  try {
    const row =
      target.session === null ? foundSession(statements, target.ref) : statements.findSession.get(target.session);
    if (row === undefined) throw sessionNotFound(target.ref);
    target.session = row.session;
    return { records: pageOf(scene, statements, row, range, payload), lastSeq: row.last_seq };
  } finally {
    // Some failures of the disk end a transaction by themselves.
    if (connection.database.inTransaction) statements.commit.run();
  }
}

/** How much of a page is left. */
interface Room {
  rows: number;
  bytes: number;
}

function pageOf<Payload extends ReadPayload>(
  { limits, rows: coder }: StoreScene,
  statements: Statements,
  session: SessionRow,
  range: PageRange,
  payload: Payload,
): RecordFor<Payload>[] {
  const records: RecordFor<Payload>[] = [];
  const room: Room = { rows: Math.min(limits.pageRecords, range.left), bytes: limits.pageBytes };
  const spans = spansOf(statements, session);
  for (const { owner, afterSeq, toSeq } of range.order === "ascending" ? spans : spans.toReversed()) {
    const part = {
      ...range,
      afterSeq: Math.max(range.afterSeq, afterSeq),
      beforeSeq: Math.min(range.beforeSeq, toSeq + 1),
    };
    const place = placeOf(owner);
    for (const row of rowsOf(statements, owner.session, part, payload, room))
      records.push(decoded(statements, coder, place, row, payload));
    if (room.rows <= 0 || room.bytes <= 0) break;
  }
  return records;
}

function decoded<Payload extends ReadPayload>(
  statements: Statements,
  coder: StoreScene["rows"],
  place: PayloadPlace,
  row: RecordHeadRow,
  payload: Payload,
): RecordFor<Payload> {
  if (payload === "head") return { ...row, side: row.side === 1 } as RecordFor<Payload>;
  return recordOf(coder, place, rowOf(statements, row as RecordContentRow), payload);
}

/** Slices of whole rows are faster than a cursor, and bounded: the first is small, each next one as large as what is left suggests. */
function rowsOf(
  statements: Statements,
  session: Session,
  range: PageRange,
  payload: ReadPayload,
  room: Room,
): RecordHeadRow[] {
  const statement = (payload === "head" ? statements.readHeads : statements.readRecords)[range.order];
  const rows: RecordHeadRow[] = [];
  let { afterSeq, beforeSeq } = range;
  for (let bytes = 0; room.rows > 0 && room.bytes > 0;) {
    const suggested = rows.length === 0 ? firstRows : Math.ceil((room.bytes * rows.length) / Math.max(bytes, 1));
    const wanted = Math.min(room.rows, Math.max(suggested, 1), rows.length * 8 + firstRows);
    const slice = statement.all(session, afterSeq, beforeSeq, wanted);
    for (const row of slice) {
      if (room.bytes <= 0) break;
      rows.push(row);
      bytes += row.bytes;
      room.bytes -= row.bytes;
      room.rows--;
    }
    const last = slice.at(-1);
    if (slice.length < wanted || last === undefined) break;
    if (range.order === "ascending") afterSeq = last.seq;
    else beforeSeq = last.seq;
  }
  return rows;
}

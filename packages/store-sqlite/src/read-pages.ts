import type { ReadOptions, ReadPayload, RecordFor, RecordPage, SessionRef } from "@throughline/core";
import { sessionNotFound } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import { recordOf } from "./record-rows.ts";
import { foundSession, placeOf } from "./session-rows.ts";
import type { RecordHeadRow, SessionRow } from "./statements.ts";
import type { StoreScene } from "./store-scene.ts";

/** A number above every seq. */
const noSeq = Number.MAX_SAFE_INTEGER;

/** The first slice of a page; the next ones follow the size of the records seen. */
const firstRows = 4;

/** Where a read stands between two pages. */
export interface ReadPosition {
  readonly ref: SessionRef;
  /** The session's number, once the first page has found it. */
  readonly session: number | null;
  readonly afterSeq: number;
  readonly beforeSeq: number;
  readonly order: "ascending" | "descending";
  readonly left: number;
}

export function firstPosition(ref: SessionRef, options: ReadOptions<ReadPayload>): ReadPosition {
  const { afterSeq = 0, beforeSeq = noSeq, order = "ascending", limit = noSeq } = options;
  return { ref, session: null, afterSeq, beforeSeq: Math.min(beforeSeq, noSeq), order, left: Math.min(limit, noSeq) };
}

export interface ReadStep<Payload extends ReadPayload> {
  /** Null: there is nothing more. */
  readonly page: RecordPage<Payload> | null;
  readonly next: ReadPosition;
}

/**
 * One page, read in one snapshot that ends with it: a reader who takes his time keeps nobody from writing and keeps no
 * log from being cut.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
export function readPage<Payload extends ReadPayload>(
  scene: StoreScene,
  connection: Connection,
  position: ReadPosition,
  payload: Payload,
): ReadStep<Payload> {
  const { statements } = connection;
  statements.beginRead.run();
  try {
    const session =
      position.session === null ? foundSession(statements, position.ref) : statements.findSession.get(position.session);
    if (session === undefined) throw sessionNotFound(position.ref);
    const rows = pageRows(scene, connection, session, position, payload);
    const place = placeOf(session);
    const records = rows.map((row) => recordOf(scene.rows, place, row, payload) as RecordFor<Payload>);
    const page = records.length === 0 ? null : { records, lastSeq: session.last_seq };
    return { page, next: { ...behind(position, rows), session: session.session, left: position.left - rows.length } };
  } finally {
    // Some failures of the disk end a transaction by themselves.
    if (connection.database.inTransaction) statements.commit.run();
  }
}

/** Slices of whole rows are faster than a cursor, and bounded: the first is small, each next one as large as what is left suggests. */
function pageRows(
  { limits }: StoreScene,
  { statements }: Connection,
  { session }: SessionRow,
  from: ReadPosition,
  payload: ReadPayload,
): RecordHeadRow[] {
  const statement = (payload === "head" ? statements.readHeads : statements.readRecords)[from.order];
  const most = Math.min(limits.pageRecords, from.left);
  const rows: RecordHeadRow[] = [];
  let bytes = 0;
  for (let position = from; rows.length < most && bytes < limits.pageBytes;) {
    const suggested =
      rows.length === 0 ? firstRows : Math.ceil(((limits.pageBytes - bytes) * rows.length) / Math.max(bytes, 1));
    const wanted = Math.min(most - rows.length, Math.max(suggested, 1), rows.length * 8 + firstRows);
    const slice = statement.all(session, position.afterSeq, position.beforeSeq, wanted);
    for (const row of slice) {
      if (bytes >= limits.pageBytes) break;
      rows.push(row);
      bytes += row.bytes;
    }
    if (slice.length < wanted) break;
    position = behind(position, slice);
  }
  return rows;
}

function behind(position: ReadPosition, rows: readonly RecordHeadRow[]): ReadPosition {
  const last = rows.at(-1);
  if (last === undefined) return position;
  return position.order === "ascending" ? { ...position, afterSeq: last.seq } : { ...position, beforeSeq: last.seq };
}

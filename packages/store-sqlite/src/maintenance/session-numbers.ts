import type { Connection } from "../connection.ts";
import type { Session } from "../rows.ts";
import { isDamage } from "../sqlite-errors.ts";
import type { StoreHandle } from "../store-handle.ts";

const sliceRows = 200;

export interface SessionSlice {
  readonly sessions: readonly Session[];
  /** Holds the error that ended the list here, or null. */
  readonly damage: unknown;
}

/**
 * Yields the numbers of all sessions. Where a page of the list is damaged, the rows behind it are read from the end.
 * Only rows on damaged pages are then missing.
 */
export async function* sessionNumbers(handle: StoreHandle, signal?: AbortSignal): AsyncGenerator<SessionSlice> {
  let first = 0;
  for (;;) {
    const from = first;
    const slice = await handle.read(({ database }) => sliceOf(database, from, Number.MAX_SAFE_INTEGER, "ASC"), signal);
    yield slice;
    first = slice.sessions.at(-1) ?? first;
    if (slice.damage !== null) break;
    if (slice.sessions.length === 0) return;
  }
  for (let last = Number.MAX_SAFE_INTEGER; ;) {
    const to = last;
    const slice = await handle.read(({ database }) => sliceOf(database, first, to, "DESC"), signal);
    if (slice.sessions.length > 0) yield { sessions: slice.sessions, damage: null };
    last = slice.sessions.at(-1) ?? last;
    if (slice.damage !== null || slice.sessions.length === 0) return;
  }
}

function sliceOf(
  database: Connection["database"],
  after: Session,
  before: Session,
  order: "ASC" | "DESC",
): SessionSlice {
  const sql = `SELECT session FROM store_sessions WHERE session > ? AND session < ? ORDER BY session ${order} LIMIT ${sliceRows}`;
  const sessions: Session[] = [];
  try {
    for (const session of database.prepare<[Session, Session], Session>(sql).pluck().iterate(after, before))
      sessions.push(session);
    return { sessions, damage: null };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { sessions, damage: error };
  }
}

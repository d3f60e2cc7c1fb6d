import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { SessionRef } from "@throughline/core";
import { planRemove } from "@throughline/store-kit";
import { settleChildren } from "./child-index.ts";
import type { Connection } from "./connection.ts";
import { copyToForks } from "./fork-session.ts";
import type { IndexFiller } from "./index-filler.ts";
import { dropPayloads } from "./record-rows.ts";
import { deleteOldIndexSlice, hasOldIndex } from "./search-index.ts";
import { foundSession, frameOf } from "./session-rows.ts";
import { purgedNamespace } from "./rows.ts";
import type { Session, SessionRow } from "./rows.ts";
import type { WriteContext } from "./store-context.ts";
import type { StoreHandle } from "./store-handle.ts";

/** So much is deleted in one transaction: a few milliseconds, in which nobody else writes and this process does nothing else. */
const sliceRecords = 300;
const sliceBytes = 2 * 1024 * 1024;
/** Of rows without content. */
const sliceRows = 2000;

/** What hangs on a session beside its records and its entry, with the primary keys. */
const tables = [
  { table: "store_record_ids", key: "id" },
  { table: "store_keyed_appends", key: "idempotency_key" },
  { table: "store_children", key: "parent_id, seq" },
] as const;

/** What is left of a purge: a session that is gone for every reader, or the index that sessions were taken out of. */
type Remnant = Session | "index";

/** What is left of purges, as one of them goes about it. */
interface Remnants {
  /** What cannot be deleted, because it stands on damaged pages. */
  readonly stuck: ReadonlySet<Remnant>;
  /** What is being deleted: the one that is stuck when that fails. Null while nothing is. */
  current: Remnant | null;
}

/**
 * Makes the session gone for every reader, in one commit; forks get what they share. The rest stands in a namespace
 * that no caller can name, until `purgeSlice` has deleted it. If the process is killed, the next one continues. False,
 * without any change, while a renamed index is still to be deleted.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
function purgeSession(context: WriteContext, ref: SessionRef, { stuck }: Remnants): boolean {
  const { connection, search } = context;
  const row = foundSession(connection.statements, ref);
  const { events } = planRemove(frameOf(row), { purge: true });
  // Where no other index can be put aside, the words are taken out with the records.
  const isBegunAnew = !stuck.has("index") && search?.takesOutWhole(connection, row) === true;
  if (isBegunAnew && !search.beginAnew(connection)) return false;
  copyToForks(context, row);
  context.partials.drop(connection, row.session);
  markPurged(connection, row);
  // Mostly there is not more than that.
  deleteSlice(context, row.session);
  context.announce(...events);
  return true;
}

/**
 * Deletes some of what is left of purged sessions, and of the index they were taken out of, without what is stuck; false when
 * nothing is.
 */
function purgeSlice(context: WriteContext, remnants: Remnants): boolean {
  const { connection } = context;
  remnants.current = null;
  const session = purgedSession(connection, remnants.stuck);
  if (session === undefined) {
    if (remnants.stuck.has("index") || !hasOldIndex(connection)) return false;
    remnants.current = "index";
    return deleteOldIndexSlice(connection);
  }
  remnants.current = session;
  deleteSlice(context, session);
  return true;
}

/** True when a purge has not come to its end: the words of a session may outlast its row, in the index it was taken out of. */
function hasPurged(connection: Connection): boolean {
  return purgedSession(connection, new Set()) !== undefined || hasOldIndex(connection);
}

function purgedSession({ database }: Connection, stuck: ReadonlySet<Remnant>): Session | undefined {
  return database
    .prepare<[string, string], Session>(
      "SELECT session FROM store_sessions WHERE namespace = ? AND session NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
    )
    .pluck()
    .get(purgedNamespace, JSON.stringify([...stuck]));
}

function markPurged({ database }: Connection, { session }: SessionRow): void {
  database.prepare<[Session]>("DELETE FROM store_entries WHERE session = ?").run(session);
  database
    .prepare<[string, Session]>(
      `UPDATE store_sessions SET namespace = ?, agent_id = '', key = '', archived = 1, session_id = session,
         head_id = NULL, turn = NULL, origin = NULL, origin_seq = NULL WHERE session = ?`,
    )
    .run(purgedNamespace, session);
}

/**
 * The records first, then what hangs on the session, then its row: through the foreign keys all of it would go at once, and
 * row by row.
 */
function deleteSlice(context: WriteContext, session: Session): void {
  const { database } = context.connection;
  let left = deleteRecords(context, session) ? 0 : sliceRows;
  for (const { table, key } of tables) {
    if (left <= 0) return;
    const some = `SELECT ${key} FROM ${table} WHERE session = ? LIMIT ?`;
    left -= database
      .prepare<[Session, Session, number]>(`DELETE FROM ${table} WHERE session = ? AND (${key}) IN (${some})`)
      .run(session, session, left).changes;
  }
  if (left > 0) context.connection.statements.deleteSession.run(session);
}

/** True when there are more records than were deleted. */
function deleteRecords(context: WriteContext, session: Session): boolean {
  const { connection, search } = context;
  const { database, statements } = connection;
  const rows = database
    .prepare<[Session, number], { readonly seq: number; readonly bytes: number }>(
      "SELECT seq, bytes FROM store_records WHERE session = ? ORDER BY seq LIMIT ?",
    )
    .all(session, sliceRecords + 1);
  const [first] = rows;
  if (first === undefined) return false;
  let bytes = 0;
  // One at least, however large it is, and the one behind the slice never.
  const end = rows.findIndex((row, index) => index === sliceRecords || (bytes += row.bytes) > sliceBytes);
  const toSeq = end === -1 ? (rows.at(-1)?.seq ?? first.seq) : (rows[Math.max(end - 1, 0)]?.seq ?? first.seq);
  search?.forgetRecords(connection, session, { fromSeq: first.seq, toSeq });
  const payloads = statements.payloadsOf.all(session, first.seq, toSeq);
  statements.deleteRecords.run(session, toSeq);
  dropPayloads(statements, payloads);
  search?.settle(connection);
  settleChildren(statements);
  return toSeq < (rows.at(-1)?.seq ?? 0);
}

const durable = { durability: "disk" } as const;

/** Deletes sessions for good, a few milliseconds at a time, and finishes what a process that was killed has left of that. */
export class PurgeKeeper {
  readonly #handle: StoreHandle;
  readonly #filler: IndexFiller;
  readonly #told = new Set<Remnant>();
  #hasLooked = false;

  constructor(handle: StoreHandle, filler: IndexFiller) {
    this.#handle = handle;
    this.#filler = filler;
  }

  /**
   * Called after every commit: a handle that writes looks once whether a purge was interrupted, and finishes it. At once, so
   * that one that is closed after its first write does, too: closing waits for it as for a purge of its own.
   */
  poke(connection: Connection | null): void {
    if (this.#hasLooked || connection === null) return;
    this.#hasLooked = true;
    // What fails here is left to the next purge, or to the next handle that writes.
    const leave = (): void => undefined;
    try {
      if (hasPurged(connection)) this.#finish().then(leave, leave);
    } catch {
      leave();
    }
  }

  /** Resolves when nothing is left of the session. @throws {ThroughlineError} SESSION_NOT_FOUND */
  async purge(ref: SessionRef): Promise<void> {
    this.#hasLooked = true;
    const stuck = (await this.#handle.read(hasPurged)) ? await this.#finish() : new Set<Remnant>();
    const remnants = { stuck, current: null };
    const goOn = (context: WriteContext): boolean => purgeSlice(context, remnants);
    await this.#filler.waitingFor(async () => {
      while (!(await this.#handle.remove((context) => purgeSession(context, ref, remnants), durable, goOn)));
    });
  }

  /**
   * Deletes what earlier purges have left, and returns what cannot be deleted. Content on damaged pages is reported and
   * kept, and does not block another purge.
   */
  async #finish(): Promise<ReadonlySet<Remnant>> {
    const stuck = new Set<Remnant>();
    for (;;) {
      const remnants: Remnants = { stuck, current: null };
      try {
        await this.#handle.remove(
          () => undefined,
          durable,
          (context) => purgeSlice(context, remnants),
        );
        return stuck;
      } catch (error) {
        // As it is now, whatever it was when it was set.
        const { current } = remnants as Remnants;
        if (current === null || !hasErrorCode(error, "STORE_CORRUPT")) throw error;
        stuck.add(current);
        this.#tell(current);
      }
    }
  }

  /** Once by each handle: it is met again by each purge. */
  #tell(remnant: Remnant): void {
    if (this.#told.has(remnant)) return;
    this.#told.add(remnant);
    const { path } = this.#handle.context;
    const what =
      remnant === "index" ? "An index that purged sessions were taken out of" : "The rest of a purged session";
    const message = `${what} stands on damaged pages of ${path} and cannot be deleted; it is shown to nobody.`;
    this.#handle.tell(createFinding("STORE_DAMAGED", message, { path }));
  }
}

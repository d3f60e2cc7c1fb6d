import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { SessionRef } from "@throughline/core";
import { planRemove } from "@throughline/store-kit/internal";
import { settleChildren } from "./child-index.ts";
import type { Connection } from "./connection.ts";
import { deleteFilesSlice, dropReferences, hasOutFiles } from "./file-references.ts";
import { copyToForks } from "./fork-session.ts";
import type { IndexFiller } from "./index-filler.ts";
import { notePurge } from "./purged-sources.ts";
import { dropPayloads } from "./record-rows.ts";
import { deleteOldIndexSlice, hasOldIndex, type SearchIndex } from "./search-index.ts";
import { foundSession, frameOf } from "./session-rows.ts";
import { purgedKeyOf, purgedNamespace } from "./rows.ts";
import type { Session, SessionRow } from "./rows.ts";
import type { WriteContext } from "./store-context.ts";
import { hasVectors } from "./vector-rows.ts";
import { vectorSessionTables } from "./vector-schema.ts";
import type { StoreHandle } from "./store-handle.ts";

/**
 * One transaction deletes at most this much, in a few milliseconds. Meanwhile no other process writes, and this process does
 * nothing else.
 */
const sliceRecords = 300;
const sliceBytes = 2 * 1024 * 1024;
/** Counts rows without content, which are smaller. */
const sliceRows = 2000;

/** The tables that refer to a session, beside its records and its entry, with their primary keys. */
const tables = [
  { table: "store_record_ids", key: "id" },
  { table: "store_keyed_appends", key: "idempotency_key" },
  { table: "store_children", key: "parent_id, seq" },
] as const;

/**
 * Names the rest of a purge: a session that no reader sees any more, the index that its words were removed from, or the
 * files to which nothing refers.
 */
type Remnant = Session | "index" | "files";

interface Remnants {
  /** Holds what cannot be deleted, because it stands on damaged pages. */
  readonly stuck: ReadonlySet<Remnant>;
  /** Names what is being deleted, which is stuck when that fails. Null in between. */
  current: Remnant | null;
}

/**
 * Hides the session from every reader in one commit, which also notes its source. Its forks get the records that they share. The rest stays in a
 * namespace that no caller can name, until `purgeSlice` has deleted it. If the process is killed, the next one
 * continues. Returns false, without any change, while a renamed index is still to be deleted.
 * @throws {ThroughlineError} SESSION_NOT_FOUND
 */
function purgeSession(context: WriteContext, ref: SessionRef, { stuck }: Remnants): boolean {
  const { connection, search } = context;
  const row = foundSession(connection.statements, ref);
  const { events } = planRemove(frameOf(row), { purge: true });
  // While another renamed index is stuck, the words are removed together with the records.
  const isBegunAnew = !stuck.has("index") && search.takesOutWhole(connection, row) === true;
  if (isBegunAnew && !search.beginAnew(connection)) return false;
  copyToForks(context, row);
  context.partials.drop(connection, row.session);
  dropReferences(connection, row);
  notePurge(connection, row, context.clock.nowMs());
  markPurged(connection, row, context.isCoded ? purgedKeyOf(row) : "");
  // Most sessions fit into this first slice.
  deleteSlice(context, row.session);
  context.announce(...events);
  return true;
}

/**
 * Deletes a slice of purged sessions and of the renamed index, except what is stuck. Returns false when nothing is
 * left.
 */
function purgeSlice(context: WriteContext, remnants: Remnants): boolean {
  const { connection, search } = context;
  remnants.current = null;
  const session = purgedSession(connection, remnants.stuck);
  if (session === undefined) {
    if (!remnants.stuck.has("index") && search.isUnwanted(connection)) search.beginAnew(connection);
    const isIndexLeft = !remnants.stuck.has("index") && hasOldIndex(connection);
    if (!isIndexLeft && remnants.stuck.has("files")) return false;
    remnants.current = isIndexLeft ? "index" : "files";
    return isIndexLeft ? deleteOldIndexSlice(connection) : deleteFilesSlice(connection);
  }
  remnants.current = session;
  deleteSlice(context, session);
  return true;
}

/** Returns whether a purge is unfinished. The words of a session may outlast its row, in the renamed index. */
function hasPurged(connection: Connection, search: SearchIndex): boolean {
  const isIndexLeft = hasOldIndex(connection) || search.isUnwanted(connection);
  return isIndexLeft || purgedSession(connection, new Set()) !== undefined || hasOutFiles(connection);
}

function purgedSession({ database }: Connection, stuck: ReadonlySet<Remnant>): Session | undefined {
  return database
    .prepare<[string, string], Session>(
      "SELECT session FROM store_sessions WHERE namespace = ? AND session NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
    )
    .pluck()
    .get(purgedNamespace, JSON.stringify([...stuck]));
}

function markPurged({ database }: Connection, { session }: SessionRow, key: string): void {
  database.prepare<[Session]>("DELETE FROM store_entries WHERE session = ?").run(session);
  database
    .prepare<[string, string, Session]>(
      `UPDATE store_sessions SET namespace = ?, agent_id = '', key = ?, archived = 1, session_id = session,
         head_id = NULL, turn = NULL, origin = NULL, origin_seq = NULL, source_digest = NULL WHERE session = ?`,
    )
    .run(purgedNamespace, key, session);
}

/**
 * Deletes the records first, then the other rows of the session, then its own row. The foreign keys would delete all of
 * it at once, row by row.
 */
function deleteSlice(context: WriteContext, session: Session): void {
  const { database } = context.connection;
  let left = deleteRecords(context, session) ? 0 : sliceRows;
  const vectorTables = hasVectors(context.connection) ? vectorSessionTables : [];
  for (const { table, key } of [...tables, ...vectorTables]) {
    if (left <= 0) return;
    const some = `SELECT ${key} FROM ${table} WHERE session = ? LIMIT ?`;
    left -= database
      .prepare<[Session, Session, number]>(`DELETE FROM ${table} WHERE session = ? AND (${key}) IN (${some})`)
      .run(session, session, left).changes;
  }
  if (left > 0) context.connection.statements.deleteSession.run(session);
}

/** Returns true when records are left. */
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
  // A slice has at least one record, however large, and never the record behind it.
  const end = rows.findIndex((row, index) => index === sliceRecords || (bytes += row.bytes) > sliceBytes);
  const toSeq = end === -1 ? (rows.at(-1)?.seq ?? first.seq) : (rows[Math.max(end - 1, 0)]?.seq ?? first.seq);
  search.forgetRecords(connection, session, { fromSeq: first.seq, toSeq });
  const payloads = statements.payloadsOf.all(session, first.seq, toSeq);
  statements.deleteRecords.run(session, toSeq);
  dropPayloads(statements, payloads);
  search.settle(connection);
  settleChildren(statements);
  return toSeq < (rows.at(-1)?.seq ?? 0);
}

const durable = { durability: "disk" } as const;

const remnantNames = {
  index: "An index that purged sessions were taken out of",
  files: "A file that was deleted",
} as const;

/** Deletes sessions for good, a few milliseconds at a time, and finishes the purges of killed processes. */
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
   * Looks once after the first commit of a handle for an interrupted purge, and finishes it. It starts at once, so that
   * a handle that is closed after its first write finishes it too, because closing waits for it.
   */
  poke(connection: Connection | null): void {
    if (this.#hasLooked || connection === null) return;
    this.#hasLooked = true;
    // An error here is left to the next purge, or to the next handle that writes.
    const leave = (): void => undefined;
    try {
      if (hasPurged(connection, this.#handle.context.search)) this.#finish().then(leave, leave);
    } catch {
      leave();
    }
  }

  /** Resolves when nothing of the session is left. @throws {ThroughlineError} SESSION_NOT_FOUND */
  async purge(ref: SessionRef): Promise<void> {
    this.#hasLooked = true;
    const stuck = (await this.#handle.read((connection) => hasPurged(connection, this.#handle.context.search)))
      ? await this.#finish()
      : new Set<Remnant>();
    const remnants = { stuck, current: null };
    const goOn = (context: WriteContext): boolean => purgeSlice(context, remnants);
    await this.#filler.waitingFor(async () => {
      while (!(await this.#handle.remove((context) => purgeSession(context, ref, remnants), durable, goOn)));
    });
  }

  /**
   * Deletes the rest of earlier purges, and returns what cannot be deleted. Content on damaged pages is reported and
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
        // The value may have changed since it was set, which the compiler does not see.
        const { current } = remnants as Remnants;
        if (current === null || !hasErrorCode(error, "STORE_CORRUPT")) throw error;
        stuck.add(current);
        this.#tell(current);
      }
    }
  }

  /** Reports each stuck rest once for a handle, because every purge meets it again. */
  #tell(remnant: Remnant): void {
    if (this.#told.has(remnant)) return;
    this.#told.add(remnant);
    const { path } = this.#handle.context;
    const what = typeof remnant === "number" ? "The rest of a purged session" : remnantNames[remnant];
    const message = `${what} stands on damaged pages of ${path} and cannot be deleted; it is shown to nobody.`;
    this.#handle.tell(createFinding("STORE_DAMAGED", message, { path }));
  }
}

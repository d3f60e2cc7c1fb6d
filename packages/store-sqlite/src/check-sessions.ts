import { hasErrorCode } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { ListedStates } from "@throughline/store-kit/internal";
import type { Connection } from "./connection.ts";
import { refOf, type Session, type SessionRow } from "./rows.ts";
import { listedSession } from "./session-rows.ts";
import type { StoreHandle } from "./store-handle.ts";

/** A slice takes a few milliseconds. */
const sliceRows = 500;

/** States of each row whether each index has it under the values of its columns. */
type IndexedRow = SessionRow & { readonly isIndexed: number };

const key = "i.namespace = s.namespace AND i.agent_id = s.agent_id AND i.key = s.key AND i.session = s.session";
const rowsBehind = `SELECT s.*,
  EXISTS (SELECT 1 FROM store_sessions i INDEXED BY store_sessions_key WHERE ${key} AND i.session_id = s.session_id)
  AND EXISTS (SELECT 1 FROM store_sessions i INDEXED BY store_sessions_updated WHERE i.namespace = s.namespace
    AND i.archived = s.archived AND i.updated_slot = s.updated_slot AND i.session = s.session)
  AND (s.archived <> 0
    OR EXISTS (SELECT 1 FROM store_sessions i INDEXED BY store_sessions_current WHERE ${key} AND i.archived = 0))
  AND (s.source_digest IS NULL
    OR EXISTS (SELECT 1 FROM store_sessions i INDEXED BY store_sessions_source
      WHERE i.namespace = s.namespace AND i.source_digest = s.source_digest AND i.session = s.session)
    AND EXISTS (SELECT 1 FROM store_sessions i INDEXED BY store_sessions_digest
      WHERE i.source_digest = s.source_digest AND i.namespace = s.namespace AND i.session = s.session)) AS isIndexed
  FROM store_sessions s NOT INDEXED WHERE s.session > ? ORDER BY s.session LIMIT ${sliceRows}`;

/**
 * Counts rows of the table: those up to a session, all, the active and the imported ones. Then it counts the rows of each
 * index that lists use.
 */
const counts = `SELECT t.*,
  (SELECT count(*) FROM store_sessions INDEXED BY store_sessions_key WHERE namespace >= '') AS byKey,
  (SELECT count(*) FROM store_sessions INDEXED BY store_sessions_updated WHERE namespace >= '') AS byTime,
  (SELECT count(*) FROM store_sessions INDEXED BY store_sessions_current WHERE archived = 0) AS byCurrent,
  (SELECT count(*) FROM store_sessions INDEXED BY store_sessions_source WHERE source_digest IS NOT NULL) AS bySource,
  (SELECT count(*) FROM store_sessions INDEXED BY store_sessions_digest WHERE source_digest IS NOT NULL) AS byDigest
  FROM (SELECT coalesce(sum(session <= ?), 0) AS seen, count(*) AS rows, coalesce(sum(archived = 0), 0) AS active,
    coalesce(sum(source_digest IS NOT NULL), 0) AS imported
    FROM store_sessions NOT INDEXED) t`;

type Counts = Readonly<
  Record<"seen" | "rows" | "active" | "imported" | "byKey" | "byTime" | "byCurrent" | "bySource" | "byDigest", number>
>;

/**
 * Compares the table of the sessions with its checksums and with the indexes that lists read. A changed bit in an index
 * leaves sessions out of a list that looks whole. The check runs in slices, so others read and write in between.
 */
export class SessionCheck {
  readonly #handle: StoreHandle;
  readonly #listed: ListedStates;
  /** Null until a check found no damaged index. */
  #checkedRows: number | null = null;

  constructor(handle: StoreHandle, listed: ListedStates) {
    this.#handle = handle;
    this.#listed = listed;
  }

  /**
   * Names each damaged row in a finding. A list of all sessions (`isOfAll`) costs more than the check, so the check
   * runs after each of them. After other lists it runs once for the handle. It runs again after a page that shows
   * (`shown`) at least a fourth of all sessions.
   * @throws {ThroughlineError} STORE_CORRUPT when an index lacks whole rows
   */
  async run(isOfAll: boolean, shown: number, signal?: AbortSignal): Promise<void> {
    if (this.#checkedRows !== null && !isOfAll && shown * 4 < this.#checkedRows) return;
    let [seen, last]: [number, Session] = [0, 0];
    let damaged = 0;
    for (let count = sliceRows; count === sliceRows;) {
      if (seen > 0) await new Promise((resolve) => setImmediate(resolve));
      const from = last;
      const slice = await this.#handle.read((connection) => this.#checkedSlice(connection, from), signal);
      count = slice.count;
      seen += count;
      damaged += slice.damaged;
      last = slice.last;
    }
    const found = await this.#handle.read(
      ({ database }) => database.prepare<[Session], Counts>(counts).get(last),
      signal,
    );
    if (found === undefined || !isWhole(found, seen, damaged > 0)) throw this.#damagedIndex();
    this.#checkedRows = found.rows;
  }

  #checkedSlice(
    connection: Connection,
    after: Session,
  ): { readonly count: number; readonly damaged: number; readonly last: Session } {
    const rows = connection.database.prepare<[Session], IndexedRow>(rowsBehind).all(after);
    const damaged = rows.filter(({ isIndexed, ...row }) => this.#isDamaged(row, isIndexed === 1));
    return { count: rows.length, damaged: damaged.length, last: rows.at(-1)?.session ?? after };
  }

  #isDamaged(row: SessionRow, isIndexed: boolean): boolean {
    try {
      listedSession(row);
    } catch (error) {
      if (!hasErrorCode(error, "STORE_CORRUPT")) throw error;
      const found = { ref: refOf(row), sessionId: row.session_id, updatedAtMs: row.updated_at_ms };
      this.#listed.report(found, error, this.#handle.context.path);
      return true;
    }
    if (!isIndexed) throw this.#damagedIndex();
    return false;
  }

  #damagedIndex(): Error {
    const { path } = this.#handle.context;
    return refused("STORE_CORRUPT", `An index of the sessions of ${path} is damaged: it does not list all of them.`, {
      path,
    });
  }
}

/**
 * Sessions that were purged meanwhile count as visited. A damaged row may count under another state or
 * source, so the numbers of active and of imported sessions are not compared then.
 */
function isWhole(counts: Counts, visited: number, isNamed: boolean): boolean {
  const { seen, rows, active, imported, byKey, byTime, byCurrent, bySource, byDigest } = counts;
  const arePartsWhole = (byCurrent === active && bySource === imported && byDigest === imported) || isNamed;
  return seen <= visited && byKey === rows && byTime === rows && arePartsWhole;
}

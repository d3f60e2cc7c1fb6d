import type Database from "better-sqlite3";
import type { SearchQuery } from "@throughline/core";
import type { SearchScope } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import { purgedNamespace, type Session, type SessionRow } from "./rows.ts";

/** Holds a piece of SQL with the values of its parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/**
 * Filters the sessions of a search. A record counts when any session that shows it passes: the session that wrote it,
 * or a fork, even after the writer was purged.
 */
export class SessionFilter {
  /** States of a row `s` of `store_sessions` whether the session passes. */
  readonly condition: Condition;
  /** Caches up to which seq a passing fork shows the records of a session, because it is asked once in a search. */
  readonly #reaches = new Map<Session, number>();
  /** Keeps the statement prepared, because it runs for every hit. */
  #ownSession: Database.Statement<unknown[], SessionRow> | null = null;

  constructor(query: SearchQuery, { namespace, state }: SearchScope) {
    const { agentId, key, sessionId } = query;
    const wanted: (readonly [sql: string, value: string | number | undefined])[] = [
      ["s.namespace = ?", namespace],
      ["s.namespace <> ?", purgedNamespace],
      ["s.agent_id = ?", agentId],
      ["s.key = ?", key],
      ["s.session_id = ?", sessionId],
      ["s.archived = ?", state === "any" ? undefined : state === "archived" ? 1 : 0],
    ];
    const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
    this.condition = {
      sql: `(${given.map(({ sql }) => sql).join(" AND ")})`,
      values: given.map(({ value }) => value),
    };
  }

  /**
   * Filters records `r` of sessions `s` in SQL. It may let records pass that no session of the filter shows, so `shows`
   * must confirm each.
   */
  get likely(): Condition {
    const { sql, values } = this.condition;
    const hasFork = "EXISTS (SELECT 1 FROM store_sessions f WHERE f.origin = r.session AND f.origin_seq >= r.seq)";
    return { sql: `(${sql} OR ${hasFork})`, values };
  }

  /**
   * Returns whether a session of the filter shows a record. `isOwnSession` says whether the record's own session passes.
   */
  shows(connection: Connection, session: Session, seq: number, isOwnSession: boolean): boolean {
    if (isOwnSession) return true;
    let reach = this.#reaches.get(session);
    if (reach === undefined) this.#reaches.set(session, (reach = this.#reach(connection, session)));
    return seq <= reach;
  }

  /** Returns the oldest session of the filter that shows a record, or the session that wrote it if that one passes. */
  shownBy({ database }: Connection, session: Session, seq: number): SessionRow | undefined {
    const { sql, values } = this.condition;
    this.#ownSession ??= database.prepare<unknown[], SessionRow>(
      `SELECT s.* FROM store_sessions s WHERE s.session = ? AND ${sql}`,
    );
    const own = this.#ownSession.get(session, ...values);
    if (own !== undefined) return own;
    return database
      .prepare<unknown[], SessionRow>(
        `WITH RECURSIVE sharer (session) AS (
           SELECT ?
           UNION
           SELECT f.session FROM sharer CROSS JOIN store_sessions f ON f.origin = sharer.session AND f.origin_seq >= ?
         ) SELECT s.* FROM sharer CROSS JOIN store_sessions s ON s.session = sharer.session WHERE ${sql} ORDER BY s.session LIMIT 1`,
      )
      .get(session, seq, ...values);
  }

  #reach({ database }: Connection, session: Session): number {
    const { sql, values } = this.condition;
    const found = database
      .prepare<unknown[], number | null>(
        `WITH RECURSIVE sharer (session, to_seq) AS (
           SELECT f.session, f.origin_seq FROM store_sessions f WHERE f.origin = ?
           UNION
           SELECT f.session, min(sharer.to_seq, f.origin_seq) FROM sharer CROSS JOIN store_sessions f ON f.origin = sharer.session
         ) SELECT max(sharer.to_seq) FROM sharer CROSS JOIN store_sessions s ON s.session = sharer.session WHERE ${sql}`,
      )
      .pluck()
      .get(session, ...values);
    return found ?? 0;
  }
}

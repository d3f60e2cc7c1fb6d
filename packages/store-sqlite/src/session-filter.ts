import type Database from "better-sqlite3";
import type { SearchQuery } from "@throughline/core";
import type { SearchScope } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import { purgedNamespace, type Session, type SessionRow } from "./rows.ts";

/** A piece of SQL with the values of its parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/**
 * The sessions that a search is about. A record counts when any session that shows it is one of them: the one that wrote
 * it, or a fork, whatever has become of the one that wrote it.
 */
export class SessionFilter {
  /** Of a row `s` of `store_sessions`: whether the session is one of them. */
  readonly condition: Condition;
  /** Up to which seq some fork that is one of them shows the records of a session. Asked once a search. */
  readonly #reaches = new Map<Session, number>();
  /** Asked for every hit. */
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

  /** Of a record `r` of a session `s`: false for most that no session of the filter shows; the rest is asked of `shows`. */
  get likely(): Condition {
    const { sql, values } = this.condition;
    const hasFork = "EXISTS (SELECT 1 FROM store_sessions f WHERE f.origin = r.session AND f.origin_seq >= r.seq)";
    return { sql: `(${sql} OR ${hasFork})`, values };
  }

  /** Whether a session of the filter shows a record, whose own session is one of them or not. */
  shows(connection: Connection, session: Session, seq: number, isOwnSession: boolean): boolean {
    if (isOwnSession) return true;
    let reach = this.#reaches.get(session);
    if (reach === undefined) this.#reaches.set(session, (reach = this.#reach(connection, session)));
    return seq <= reach;
  }

  /** The oldest session of the filter that shows a record: the one that wrote it, when that is one of them. */
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

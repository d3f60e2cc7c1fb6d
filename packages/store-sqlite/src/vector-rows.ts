import type { SessionRef } from "@throughline/core";
import type { NearestQuery, PendingRange, PendingVectors, VectorScope } from "@throughline/core/internal";
import {
  type KeptPut,
  type NumberedCode,
  type NumberedVector,
  type SessionNumber,
  type ShownSession,
  vectorMark,
} from "@throughline/store-kit/internal";
import type { Connection } from "./connection.ts";
import { refOf, type Session, type SessionRow } from "./rows.ts";
import { findSession } from "./session-rows.ts";
import { vectorObjects } from "./vector-schema.ts";

/** Returns whether the store has the tables of vectors. */
export function hasVectors({ database }: Connection): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'store_vector_removals'").get() !== undefined;
}

/** Creates the tables inside a transaction. */
export function createVectorTables(connection: Connection): void {
  if (!hasVectors(connection)) connection.database.exec(vectorObjects.map(({ sql }) => `${sql};`).join("\n"));
}

/** Deletes the vectors of a record before it is replaced. Batches that read the record before are refused from now on. */
export function forgetVectorsOf(connection: Connection, session: Session, seq: number): void {
  if (!hasVectors(connection)) return;
  const { database } = connection;
  database
    .prepare<[Session]>(
      `INSERT INTO store_vector_removals VALUES (?, 1) ON CONFLICT (session) DO UPDATE SET removals = removals + 1`,
    )
    .run(session);
  const deleted = database
    .prepare<[Session, number, number], { readonly set: number; readonly fromSeq: number; readonly toSeq: number }>(
      `DELETE FROM store_vectors WHERE session = ? AND last_seq >= ? AND first_seq <= ?
       RETURNING vector_set AS "set", first_seq AS fromSeq, last_seq AS toSeq`,
    )
    .all(session, seq, seq);
  for (const { set, fromSeq, toSeq } of deleted) addGap(connection, session, { set, fromSeq, toSeq });
}

interface Gap {
  readonly set: number;
  readonly fromSeq: number;
  readonly toSeq: number;
}

/** Notes records that have no vectors any more. Parts of one exchange share records, so a range may be noted twice. */
function addGap({ database }: Connection, session: Session, { set, fromSeq, toSeq }: Gap): void {
  database
    .prepare<[Session, number, number, number]>(
      `INSERT INTO store_vector_gaps VALUES (?, ?, ?, ?)
       ON CONFLICT (session, vector_set, from_seq) DO UPDATE SET to_seq = max(to_seq, excluded.to_seq)`,
    )
    .run(session, set, fromSeq, toSeq);
}

/** Notes that a fork got records whose vectors go with the session that is purged. */
export function noteGivenRecords(connection: Connection, fork: Session, afterSeq: number, toSeq: number): void {
  if (!hasVectors(connection) || toSeq <= afterSeq) return;
  const sets = connection.database
    .prepare<[Session], number>("SELECT vector_set FROM store_vector_progress WHERE session = ?")
    .pluck()
    .all(fork);
  for (const set of sets) addGap(connection, fork, { set, fromSeq: afterSeq + 1, toSeq });
}

function findSet({ database }: Connection, { namespace, agentId }: VectorScope, model: string): number | null {
  return (
    database
      .prepare<[string, string, string], number>(
        "SELECT vector_set FROM store_vector_sets WHERE namespace = ? AND agent_id = ? AND model = ?",
      )
      .pluck()
      .get(namespace, agentId, model) ?? null
  );
}

function makeSet(connection: Connection, { namespace, agentId }: VectorScope, model: string): number {
  const found = findSet(connection, { namespace, agentId }, model);
  if (found !== null) return found;
  const { lastInsertRowid } = connection.database
    .prepare<[string, string, string]>("INSERT INTO store_vector_sets (namespace, agent_id, model) VALUES (?, ?, ?)")
    .run(namespace, agentId, model);
  return Number(lastInsertRowid);
}

function markOf({ database }: Connection, session: Session): string {
  const removals = database
    .prepare<[Session], number>("SELECT removals FROM store_vector_removals WHERE session = ?")
    .pluck()
    .get(session);
  return vectorMark(session, removals ?? 0);
}

/** Replaces the vectors of a range inside a transaction. */
export function putVectors(connection: Connection, ref: SessionRef, put: KeptPut): boolean {
  createVectorTables(connection);
  const row = findSession(connection.statements, ref);
  if (row === undefined || put.toSeq > row.last_seq || put.mark !== markOf(connection, row.session)) return false;
  const { database } = connection;
  const { fromSeq, toSeq, resumeSeq, vectors } = put;
  const set = makeSet(connection, ref, put.model);
  database
    .prepare<[Session, number, number, number]>(
      "DELETE FROM store_vectors WHERE session = ? AND vector_set = ? AND last_seq >= ? AND first_seq <= ?",
    )
    .run(row.session, set, fromSeq, toSeq);
  const insert = database.prepare<[number, Session, number, number, number, Uint8Array, number, Uint8Array]>(
    `INSERT INTO store_vectors (vector_set, session, first_seq, last_seq, part, code, scale, numbers)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const vector of vectors) {
    const { firstSeq, lastSeq, part, code, scale, values } = put.seal(vector, row.session_id);
    insert.run(set, row.session, firstSeq, lastSeq, part, code, scale, new Uint8Array(values.buffer));
  }
  database
    .prepare<[Session, number, number, number]>(
      "DELETE FROM store_vector_gaps WHERE session = ? AND vector_set = ? AND from_seq >= ? AND to_seq <= ?",
    )
    .run(row.session, set, fromSeq, toSeq);
  cover(connection, row, set, { fromSeq, toSeq, resumeSeq });
  return true;
}

function cover(
  { database }: Connection,
  { session, origin_seq: originSeq }: SessionRow,
  set: number,
  { fromSeq, toSeq, resumeSeq }: Pick<KeptPut, "fromSeq" | "toSeq" | "resumeSeq">,
): void {
  const covered = database
    .prepare<[Session, number], number>(
      "SELECT covered_seq FROM store_vector_progress WHERE session = ? AND vector_set = ?",
    )
    .pluck()
    .get(session, set);
  const coveredSeq = Math.max(covered ?? 0, originSeq ?? 0);
  if (fromSeq > coveredSeq + 1 || toSeq <= coveredSeq) return;
  database
    .prepare<[Session, number, number, number]>("INSERT OR REPLACE INTO store_vector_progress VALUES (?, ?, ?, ?)")
    .run(session, set, toSeq, resumeSeq);
}

const tails = `FROM store_sessions s
  LEFT JOIN store_vector_progress p ON p.session = s.session AND p.vector_set = :set
  WHERE s.namespace = :namespace AND s.agent_id = :agentId
    AND s.last_seq > max(coalesce(p.covered_seq, 0), coalesce(s.origin_seq, 0))`;
const gaps = `FROM store_vector_gaps g JOIN store_sessions s ON s.session = g.session
  WHERE g.vector_set = :set AND s.namespace = :namespace AND s.agent_id = :agentId`;
const removals = "(SELECT r.removals FROM store_vector_removals r WHERE r.session = s.session) AS removals";

type PendingRow = SessionRow & {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly coveredSeq: number;
  readonly removals: number | null;
};

/** Lists the records of a scope that have no vectors of a model. */
export function pendingVectors(
  connection: Connection,
  scope: VectorScope,
  { model, limit }: { readonly model: string; readonly limit: number },
): PendingVectors {
  const { database } = connection;
  const { namespace, agentId } = scope;
  const at = { set: findSet(connection, scope, model) ?? -1, namespace, agentId };
  const rows = database
    .prepare<[typeof at & { readonly limit: number }], PendingRow>(
      `SELECT s.*, ${removals}, g.from_seq AS fromSeq, g.to_seq AS toSeq, g.from_seq - 1 AS coveredSeq ${gaps}
       UNION ALL SELECT * FROM (
         SELECT s.*, ${removals}, coalesce(p.resume_seq, s.origin_seq + 1, 1) AS fromSeq, s.last_seq AS toSeq,
           max(coalesce(p.covered_seq, 0), coalesce(s.origin_seq, 0)) AS coveredSeq ${tails}
         ORDER BY s.updated_at_ms DESC LIMIT :limit)
       LIMIT :limit`,
    )
    .all({ ...at, limit });
  const count = (sql: string): number => database.prepare<[typeof at], number>(sql).pluck().get(at) ?? 0;
  const records =
    count(`SELECT sum(s.last_seq - max(coalesce(p.covered_seq, 0), coalesce(s.origin_seq, 0))) ${tails}`) +
    count(`SELECT sum(g.to_seq - g.from_seq + 1) ${gaps}`);
  const hasOthers =
    database
      .prepare<[number, string, string]>(
        `SELECT 1 FROM store_vector_sets v WHERE v.vector_set <> ? AND v.namespace = ? AND v.agent_id = ? AND
         (EXISTS (SELECT 1 FROM store_vectors WHERE vector_set = v.vector_set) OR
          EXISTS (SELECT 1 FROM store_vector_progress WHERE vector_set = v.vector_set))`,
      )
      .get(at.set, namespace, agentId) !== undefined;
  return { ranges: rows.map(rangeOf), records, hasOthers };
}

function rangeOf(row: PendingRow): PendingRange {
  const { fromSeq, toSeq, coveredSeq } = row;
  const place = { ref: refOf(row), sessionId: row.session_id, mark: vectorMark(row.session, row.removals ?? 0) };
  return { ...place, fromSeq, toSeq, coveredSeq };
}

interface ShownRow extends Pick<SessionRow, "session" | "namespace" | "agent_id" | "key" | "archived" | "session_id"> {
  readonly owner: Session;
  readonly toSeq: number;
}

type ShownQuery = Pick<NearestQuery, "namespace" | "agentId" | "key" | "state">;

/** Returns the numbers of the sessions of a search, the oldest first. They come from an index alone, and are sorted once. */
export function searchedSessions(
  { database }: Connection,
  { namespace, agentId, key }: ShownQuery,
): readonly Session[] {
  return database
    .prepare<string[], Session>(
      `SELECT session FROM store_sessions INDEXED BY store_sessions_key
       WHERE namespace = ? AND agent_id = ?${key === undefined ? "" : " AND key = ?"} ORDER BY session`,
    )
    .pluck()
    .all(namespace, agentId, ...(key === undefined ? [] : [key]));
}

/** Lists some sessions of a search, each with the sessions whose records it shows. */
export function shownSessions(
  { database }: Connection,
  { namespace, agentId, state = "any" }: ShownQuery,
  sessions: readonly Session[],
): readonly ShownSession[] {
  const archived = state === "any" ? null : Number(state === "archived");
  return database
    .prepare<[Readonly<Record<string, string | number | null>>], ShownRow>(
      `WITH RECURSIVE wanted AS (
         SELECT s.session, s.last_seq FROM json_each(:sessions) w CROSS JOIN store_sessions s ON s.session = w.value
         WHERE s.namespace = :namespace AND s.agent_id = :agentId AND (:archived IS NULL OR s.archived = :archived)),
       shown (session, owner, to_seq) AS (
         SELECT session, session, last_seq FROM wanted
         UNION ALL SELECT shown.session, s.origin, min(shown.to_seq, s.origin_seq)
         FROM shown JOIN store_sessions s ON s.session = shown.owner WHERE s.origin IS NOT NULL)
       SELECT s.session, s.namespace, s.agent_id, s.key, s.archived, s.session_id, shown.owner, shown.to_seq AS toSeq
       FROM shown JOIN store_sessions s ON s.session = shown.session ORDER BY shown.session`,
    )
    .all({ namespace, agentId, archived, sessions: JSON.stringify(sessions) })
    .map((row) => ({ owner: row.owner, toSeq: row.toSeq, ref: refOf(row), sessionId: row.session_id }));
}

export function readCodes(
  connection: Connection,
  scope: VectorScope,
  model: string,
  { after, limit }: { readonly after: number; readonly limit: number },
): readonly NumberedCode[] {
  const set = findSet(connection, scope, model);
  if (set === null) return [];
  return connection.database
    .prepare<[number, number, number], NumberedCode>(
      `SELECT vector AS number, session AS owner, code FROM store_vectors
       WHERE vector_set = ? AND vector > ? ORDER BY vector LIMIT ?`,
    )
    .all(set, after, limit);
}

export function readSessionIds(
  { database }: Connection,
  sessions: readonly SessionNumber[],
): ReadonlyMap<SessionNumber, string> {
  const rows = database
    .prepare<[string], Pick<SessionRow, "session" | "session_id">>(
      "SELECT session, session_id FROM store_sessions WHERE session IN (SELECT value FROM json_each(?))",
    )
    .all(JSON.stringify(sessions));
  return new Map(rows.map(({ session, session_id: id }) => [session, id]));
}

interface NumbersRow extends Omit<NumberedVector, "values"> {
  readonly numbers: Uint8Array;
}

export function readVectors(
  connection: Connection,
  scope: VectorScope,
  model: string,
  numbers: readonly number[],
): readonly NumberedVector[] {
  const set = findSet(connection, scope, model);
  if (set === null) return [];
  return connection.database
    .prepare<[string, number], NumbersRow>(
      `SELECT vector AS number, session AS owner, first_seq AS firstSeq, last_seq AS lastSeq, part, scale, numbers
       FROM store_vectors WHERE vector IN (SELECT value FROM json_each(?)) AND vector_set = ?`,
    )
    .all(JSON.stringify(numbers), set)
    .map(({ numbers: bytes, ...row }) => ({
      ...row,
      values: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    }));
}

/** Rows that one transaction deletes, in a few milliseconds. */
const sliceVectors = 500;

/** Deletes the progress of the sets of a scope, except one, so that no reader takes them for complete. Returns the sets. */
export function beginForgetting(connection: Connection, scope: VectorScope, keep: string | null): readonly number[] {
  if (!hasVectors(connection)) return [];
  const { database } = connection;
  const sets = database
    .prepare<[string, string, string | null], number>(
      "SELECT vector_set FROM store_vector_sets WHERE namespace = ? AND agent_id = ? AND model IS NOT ?",
    )
    .pluck()
    .all(scope.namespace, scope.agentId, keep);
  for (const table of ["store_vector_progress", "store_vector_gaps"])
    database
      .prepare<[string]>(`DELETE FROM ${table} WHERE vector_set IN (SELECT value FROM json_each(?))`)
      .run(JSON.stringify(sets));
  return sets;
}

/** Deletes a slice of the vectors of some sets, and returns their number. */
export function forgetSlice({ database }: Connection, sets: readonly number[]): number {
  return database
    .prepare<[string, number]>(
      `DELETE FROM store_vectors WHERE vector IN (SELECT vector FROM store_vectors
       WHERE vector_set IN (SELECT value FROM json_each(?)) LIMIT ?)`,
    )
    .run(JSON.stringify(sets), sliceVectors).changes;
}

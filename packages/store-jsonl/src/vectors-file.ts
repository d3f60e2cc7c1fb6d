import type * as nodeSqlite from "node:sqlite";
import { createFinding, refused, type PendingRange, type PendingVectors } from "@throughline/core/internal";
import { type Clock, type Finding, hasErrorCode } from "@throughline/core";
import {
  type KeptPut,
  type NumberedCode,
  type NumberedVector,
  pendingOf,
  type SessionNumber,
  vectorMark,
  type VectorProgress,
  type VectorSession,
} from "@throughline/store-kit/internal";
import type { AgentFolder } from "./agent-folder.ts";
import { fileError } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isDamage, openOwnFile, removeDatabase, type IndexFile } from "./index-file.ts";
import { resultCode, sqliteCodes } from "./sqlite-library.ts";
import { vectorsApplicationId, vectorsSchema } from "./vectors-schema.ts";

export interface VectorsFileOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly isWanted: () => boolean;
  readonly clock: Clock;
  readonly onFinding: (finding: Finding) => void;
}

type Row = Readonly<Record<string, unknown>>;

interface OwnerRow {
  readonly place: number;
  readonly id: string;
  readonly removals: number;
}

/** Other processes hold the file for the time of one commit. */
const busyTimeoutMs = 1000;
/** Rows that one transaction deletes, in a few milliseconds. */
const sliceVectors = 500;

/**
 * Keeps the vectors of an agent's sessions in a database that is derived from the transcripts. The file may be deleted at any time; what it
 * held is pending again then.
 */
export class VectorsFile {
  readonly #options: VectorsFileOptions;
  #file: IndexFile | null = null;

  constructor(options: VectorsFileOptions) {
    this.#options = options;
  }

  /**
   * Deletes the vectors of records before their text goes, and takes them from the disk. A put that began before is
   * refused from now on. Call it under the session's lock.
   * @throws {ThroughlineError} STORE_LOCKED while another process holds the file
   */
  erase(sessionId: string, seqs: readonly number[]): void {
    this.#erasing((database) => {
      database.prepare("UPDATE sessions SET removals = removals + 1 WHERE id = ?").run(sessionId);
      const deleted = rowsOf<GapRow & { readonly model: string }>(
        database,
        `DELETE FROM vectors WHERE place = (SELECT place FROM sessions WHERE id = ?)
           AND EXISTS (SELECT 1 FROM json_each(?) WHERE value BETWEEN first_seq AND last_seq)
         RETURNING place, model, first_seq AS fromSeq, last_seq AS toSeq`,
        sessionId,
        JSON.stringify(seqs),
      );
      const insert = database.prepare(
        `INSERT INTO gaps VALUES (?, ?, ?, ?)
         ON CONFLICT (place, model, from_seq) DO UPDATE SET to_seq = max(to_seq, excluded.to_seq)`,
      );
      for (const { place, model, fromSeq, toSeq } of deleted) insert.run(place, model, fromSeq, toSeq);
    });
  }

  /** Deletes all vectors of purged sessions, as `erase` does. */
  drop(sessionIds: readonly string[]): void {
    this.#erasing((database) => {
      database
        .prepare("DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?))")
        .run(JSON.stringify(sessionIds));
    });
  }

  /** Replaces the vectors of a range. Returns false when the mark is not that of the session. Call it under its lock. */
  put(sessionId: string, put: KeptPut): boolean {
    return this.#transaction(false, (database) => putInto(database, sessionId, put)) ?? false;
  }

  /** Deletes all vectors of sessions that an older version purged. */
  dropUnless(isThere: (sessionId: string) => boolean): void {
    const gone = this.owners().filter(({ id }) => !isThere(id));
    if (gone.length > 0) this.drop(gone.map(({ id }) => id));
  }

  /** Lists what has no vectors of a model yet, and counts it also above the limit. */
  pending(
    model: string,
    sessions: readonly VectorSession[],
    limit: number,
  ): Pick<PendingVectors, "ranges" | "records"> {
    const ids = sessions.map(({ sessionId }) => sessionId);
    const known = this.#ask(true, (database) => knownOf(database, model, ids)) ?? unknown;
    const found: Omit<PendingRange, "mark">[] = [];
    let records = 0;
    for (const session of sessions) {
      const place = known.owners.get(session.sessionId)?.place;
      const progress = place === undefined ? undefined : known.progress.get(place);
      const missing = pendingOf(session, progress, 0);
      records += missing.records;
      if (found.length < limit) found.push(...missing.ranges);
    }
    const marks = this.#marksOf([...new Set(found.map(({ sessionId }) => sessionId))], known.owners);
    const ranges = found.slice(0, limit).map((range) => ({ ...range, mark: marks.get(range.sessionId) ?? "" }));
    return { ranges, records };
  }

  /** Tests whether a model other than this one has vectors or progress. */
  hasOthers(model: string): boolean {
    // An inequality would read the index of every vector.
    const others = `SELECT 1 FROM vectors WHERE model < ?1 UNION ALL SELECT 1 FROM vectors WHERE model > ?1
      UNION ALL SELECT 1 FROM progress WHERE model <> ?1 LIMIT 1`;
    return this.#all(others, model).length > 0;
  }

  /** Deletes vectors of every model except one, a few at a time. Returns how many there were. */
  async forget(keep: string | null, pause: () => Promise<void>): Promise<number> {
    const work = (database: nodeSqlite.DatabaseSync): number => {
      for (const table of ["progress", "gaps"]) database.prepare(`DELETE FROM ${table} WHERE model IS NOT ?`).run(keep);
      const slice = `DELETE FROM vectors WHERE number IN (SELECT number FROM vectors WHERE model IS NOT ? LIMIT ?)`;
      return Number(database.prepare(slice).run(keep, sliceVectors).changes);
    };
    for (let count = 0; ; await pause()) {
      const deleted = this.#transaction(false, work) ?? 0;
      count += deleted;
      if (deleted < sliceVectors) return count;
    }
  }

  /** Lists the sessions that may have vectors. */
  owners(): readonly OwnerRow[] {
    return this.#all<OwnerRow>("SELECT place, id, removals FROM sessions ORDER BY place");
  }

  /** Returns the ids of the sessions at these places. */
  sessionIds(places: readonly SessionNumber[]): ReadonlyMap<SessionNumber, string> {
    const rows = this.#all<OwnerRow>(
      "SELECT place, id FROM sessions WHERE place IN (SELECT value FROM json_each(?))",
      JSON.stringify(places),
    );
    return new Map(rows.map(({ place, id }) => [place, id]));
  }

  codes(model: string, after: number, limit: number): readonly NumberedCode[] {
    return this.#all<NumberedCode>(
      "SELECT number, place AS owner, code FROM vectors WHERE model = ? AND number > ? ORDER BY number LIMIT ?",
      model,
      after,
      limit,
    );
  }

  vectors(model: string, numbers: readonly number[]): readonly NumberedVector[] {
    return this.#all<Omit<NumberedVector, "values"> & { readonly numbers: Uint8Array }>(
      `SELECT number, place AS owner, first_seq AS firstSeq, last_seq AS lastSeq, part, scale, numbers FROM vectors
       WHERE number IN (SELECT value FROM json_each(?)) AND model = ?`,
      JSON.stringify(numbers),
      model,
    ).map(({ numbers: bytes, ...row }) => ({
      ...row,
      values: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    }));
  }

  close(): void {
    if (this.#file?.database.isOpen === true) this.#file.database.close();
    this.#file = null;
  }

  /**
   * A range is listed with a mark, and without the row a redaction could not refuse the batch that is read next. One
   * transaction makes all the rows, because a hundred commits would hold the process for 40 ms.
   */
  #marksOf(sessionIds: readonly string[], owners: ReadonlyMap<string, OwnerRow>): ReadonlyMap<string, string> {
    const fresh = sessionIds.filter((id) => !owners.has(id));
    const make = (database: nodeSqlite.DatabaseSync): readonly OwnerRow[] => fresh.map((id) => makeOwner(database, id));
    const made = fresh.length === 0 ? [] : (this.#transaction(true, make) ?? []);
    return new Map([...owners.values(), ...made].map(({ id, place, removals }) => [id, vectorMark(place, removals)]));
  }

  #all<Found>(sql: string, ...values: readonly nodeSqlite.SQLInputValue[]): readonly Found[] {
    return this.#ask(false, (database) => rowsOf<Found>(database, sql, ...values)) ?? [];
  }

  /** Runs a removal, and rewrites the pages that held it. What cannot be removed goes with the whole file. */
  #erasing(work: (database: nodeSqlite.DatabaseSync) => void): void {
    const { files, folder } = this.#options;
    const path = folder.vectors;
    if (files.facts(path) === null) return;
    const checkpoint = (database: nodeSqlite.DatabaseSync): Row | undefined => {
      // The text goes after a flush, so its vectors may not come back after a power cut.
      database.exec("PRAGMA synchronous=FULL");
      try {
        inTransaction(database, work);
      } finally {
        database.exec("PRAGMA synchronous=NORMAL");
      }
      return database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
    };
    let row: Row | undefined;
    try {
      row = this.#ask(false, checkpoint);
    } catch (error) {
      // A full disk has no room for the removal of a part, but for that of the file.
      if (!hasErrorCode(error, "STORE_IO")) throw error;
    }
    if (row === undefined) this.#discard();
    else if (row["busy"] !== 0) throw lockedError(path);
  }

  #transaction<T>(create: boolean, work: (database: nodeSqlite.DatabaseSync) => T): T | undefined {
    return this.#ask(create, (database) => inTransaction(database, () => work(database)));
  }

  /** Returns undefined without a usable file. A damaged one is deleted. @throws {ThroughlineError} STORE_LOCKED, STORE_IO */
  #ask<T>(create: boolean, question: (database: nodeSqlite.DatabaseSync) => T): T | undefined {
    const path = this.#options.folder.vectors;
    const file = this.#reach(create);
    if (file === null) return undefined;
    try {
      return question(file.database);
    } catch (error) {
      if (isDamage(error)) return void this.#discard();
      const code = resultCode(error);
      if (code === sqliteCodes.busy || code === sqliteCodes.locked) throw lockedError(path);
      throw code === 0 ? error : fileError(error, path);
    }
  }

  #reach(create: boolean): IndexFile | null {
    const { files, folder, isWanted, clock } = this.#options;
    const path = folder.vectors;
    if (this.#file !== null && files.facts(path)?.identity !== this.#file.identity) this.close();
    if (this.#file !== null || !isWanted()) return this.#file;
    for (let attempt = 0; attempt < 2; attempt++) {
      const opened = openOwnFile(files, path, { create, timeoutMs: busyTimeoutMs });
      if (opened === "missing" || opened === "unavailable") return null;
      if (opened !== "unusable") {
        if (prepare(opened.database, clock.nowMs())) return (this.#file = opened);
        opened.database.close();
      }
      this.#discard();
    }
    return null;
  }

  #discard(): void {
    const { files, folder, onFinding } = this.#options;
    const path = folder.vectors;
    this.close();
    removeDatabase(files, path);
    onFinding(createFinding("INDEX_REBUILT", "The vectors for search by meaning could not be used.", { path }));
  }
}

/** Returns false for a file that holds something else. */
function prepare(database: nodeSqlite.DatabaseSync, nowMs: number): boolean {
  try {
    const id = Number(Object.values(database.prepare("PRAGMA application_id").get() ?? {})[0]);
    if (id === 0) {
      inTransaction(database, () => {
        const made = database.prepare("SELECT 1 FROM sqlite_schema").get();
        if (made === undefined) database.exec(vectorsSchema(nowMs));
      });
      return true;
    }
    return id === vectorsApplicationId;
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

function inTransaction<T>(database: nodeSqlite.DatabaseSync, work: (database: nodeSqlite.DatabaseSync) => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work(database);
    database.exec("COMMIT");
    return result;
  } finally {
    if (database.isTransaction) database.exec("ROLLBACK");
  }
}

function lockedError(path: string): Error {
  return refused("STORE_LOCKED", `Another process holds ${JSON.stringify(path)}.`, { path });
}

interface GapRow {
  readonly place: number;
  readonly fromSeq: number;
  readonly toSeq: number;
}

interface Known {
  readonly owners: ReadonlyMap<string, OwnerRow>;
  readonly progress: ReadonlyMap<number, VectorProgress>;
}

const unknown: Known = { owners: new Map(), progress: new Map() };

function knownOf(database: nodeSqlite.DatabaseSync, model: string, sessionIds: readonly string[]): Known {
  const inIds = "IN (SELECT value FROM json_each(?))";
  const ids = JSON.stringify(sessionIds);
  const ofModel = `WHERE model = ? AND place IN (SELECT place FROM sessions WHERE id ${inIds})`;
  const gaps = Map.groupBy(
    rowsOf<GapRow>(database, `SELECT place, from_seq AS fromSeq, to_seq AS toSeq FROM gaps ${ofModel}`, model, ids),
    ({ place }) => place,
  );
  const rows = rowsOf<{ readonly place: number; readonly coveredSeq: number; readonly resumeSeq: number }>(
    database,
    `SELECT place, covered_seq AS coveredSeq, resume_seq AS resumeSeq FROM progress ${ofModel}`,
    model,
    ids,
  );
  const owners = rowsOf<OwnerRow>(database, `SELECT place, id, removals FROM sessions WHERE id ${inIds}`, ids);
  return {
    owners: new Map(owners.map((owner) => [owner.id, owner])),
    progress: new Map(rows.map(({ place, ...row }) => [place, { ...row, gaps: gaps.get(place) ?? [] }])),
  };
}

function rowsOf<Found>(
  database: nodeSqlite.DatabaseSync,
  sql: string,
  ...values: readonly nodeSqlite.SQLInputValue[]
): readonly Found[] {
  return database.prepare(sql).all(...values) as unknown as readonly Found[]; // The cast names the columns of the statement.
}

function makeOwner(database: nodeSqlite.DatabaseSync, sessionId: string): OwnerRow {
  database.prepare("INSERT OR IGNORE INTO sessions (id) VALUES (?)").run(sessionId);
  return ownerOf(database, sessionId) as OwnerRow;
}

function ownerOf(database: nodeSqlite.DatabaseSync, sessionId: string): OwnerRow | undefined {
  return database.prepare("SELECT place, id, removals FROM sessions WHERE id = ?").get(sessionId) as
    | OwnerRow
    | undefined;
}

function putInto(database: nodeSqlite.DatabaseSync, sessionId: string, put: KeptPut): boolean {
  const owner = ownerOf(database, sessionId);
  if (owner === undefined || put.mark !== vectorMark(owner.place, owner.removals)) return false;
  const { place } = owner;
  const { model, fromSeq, toSeq, resumeSeq } = put;
  database
    .prepare("DELETE FROM vectors WHERE place = ? AND model = ? AND last_seq >= ? AND first_seq <= ?")
    .run(place, model, fromSeq, toSeq);
  const insert = database.prepare(
    `INSERT INTO vectors (place, model, first_seq, last_seq, part, code, scale, numbers)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const vector of put.vectors) {
    const { firstSeq, lastSeq, part, code, scale, values } = put.seal(vector, sessionId);
    insert.run(place, model, firstSeq, lastSeq, part, code, scale, new Uint8Array(values.buffer));
  }
  database
    .prepare("DELETE FROM gaps WHERE place = ? AND model = ? AND from_seq >= ? AND to_seq <= ?")
    .run(place, model, fromSeq, toSeq);
  database
    .prepare(
      `INSERT INTO progress SELECT ?1, ?2, ?3, ?4 WHERE ?5 <= 1 OR EXISTS (
         SELECT 1 FROM progress WHERE place = ?1 AND model = ?2 AND covered_seq >= ?5 - 1)
       ON CONFLICT (place, model) DO UPDATE SET covered_seq = excluded.covered_seq, resume_seq = excluded.resume_seq
         WHERE covered_seq < excluded.covered_seq`,
    )
    .run(place, model, toSeq, resumeSeq, fromSeq);
  return true;
}

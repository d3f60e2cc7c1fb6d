import type * as nodeSqlite from "node:sqlite";
import { createFinding } from "@throughline/core/internal";
import { type Finding, hasErrorCode, type ListQuery } from "@throughline/core";
import { FlushedSeqs } from "./flushed-seqs.ts";
import {
  DamagedIndex,
  isDamage,
  openIndexFile,
  removeDatabase,
  rowsPerTransaction,
  type IndexFile,
} from "./index-file.ts";
import { IndexedKeys } from "./indexed-keys.ts";
import { keyOrder, pageStatements, sessionColumns, type IndexSample, type WantedSessions } from "./index-page.ts";
import type { LogReading } from "./log-image.ts";
import { readableEntry, UndecodableEntry } from "./undecodable-entry.ts";
import { decodeRowChange, entryBytesOf, lineOfRow, parseChecked, withChecksum } from "./session-row.ts";
import type {
  KeyedAppend,
  LogPlace,
  LogStanding,
  SessionSnapshot,
  SessionKeys,
  SessionRow,
  TranscriptDigest,
} from "./session-row.ts";

export interface IndexUpdate extends LogStanding {
  /** All changes behind this position are in `rows`. Null means that `rows` holds every session. */
  readonly sinceBytes: number | null;
  readonly rows: Iterable<SessionRow>;
  readonly keyed: Iterable<SessionKeys>;
  readonly seen: readonly SessionSnapshot[];
  readonly notes: Readonly<Record<string, string>>;
}

export interface SessionIndexOptions extends LogReading {
  readonly isWanted: () => boolean;
  readonly onFinding: (finding: Finding) => void;
}

type Row = Readonly<Record<string, unknown>>;

/**
 * Stores a derived index of an agent's sessions. It may be deleted, replaced or damaged at any time. Each answer may be
 * `undefined`; then the entries log must be read instead.
 */
export class SessionIndex {
  /** Grows whenever another file is opened, because earlier answers do not apply to it. */
  generation = 0;
  readonly #options: SessionIndexOptions;
  #file: IndexFile | null = null;
  #isShut = false;
  readonly #statements: Map<string, nodeSqlite.StatementSync> = new Map();
  readonly #flushed: FlushedSeqs = new FlushedSeqs((sql) => this.#statement(sql));
  readonly #keys: IndexedKeys = new IndexedKeys((sql) => this.#statement(sql));

  constructor(options: SessionIndexOptions) {
    this.#options = options;
  }

  /** Call it at the start of an operation, to detect an index that was deleted, replaced or created. */
  look(): void {
    const { files, folder } = this.#options;
    this.#isShut = false;
    if (this.#file !== null && files.facts(folder.index)?.identity !== this.#file.identity) this.close();
  }

  log(): LogPlace | undefined {
    return this.#ask(() => {
      const text = this.#get("SELECT value FROM state WHERE name = 'log'")?.["value"] as string | undefined;
      return text === undefined ? undefined : (parseChecked(text) as LogPlace);
    });
  }

  note(name: string): string | undefined {
    const row = this.#ask(() => this.#get("SELECT value FROM state WHERE name = ?", name));
    return row?.["value"] as string | undefined;
  }

  /** Changes whenever another process or handle has written to the index. */
  version(): number | undefined {
    return this.#ask(() => Number(this.#get("PRAGMA data_version")?.["data_version"]));
  }

  session(sessionId: string): SessionSnapshot | null | undefined {
    return this.#ask(() => {
      const row = this.#get(`SELECT ${sessionColumns} FROM sessions WHERE id = ? AND seen IS NOT NULL`, sessionId);
      return row === null ? null : this.#indexed(row);
    });
  }

  flushed<T>(question: (seqs: FlushedSeqs) => T): T | undefined {
    return this.#ask(() => question(this.#flushed));
  }

  /** Returns the keyed appends of a session, because a lost log is recovered from them. */
  keyedOf(sessionId: string): readonly KeyedAppend[] {
    return this.#ask(() => this.#keys.of(sessionId)) ?? [];
  }

  /** Returns every session, even if the index belongs to another log, because a lost log is recovered from them. */
  rows(): readonly SessionRow[] | undefined {
    return this.#ask(() => this.#all("SELECT line FROM sessions").map(({ line }) => this.#decode(line as string)));
  }

  /** Returns sessions that the index cannot answer for, because their transcript was never read or is being written. */
  suspects(): readonly string[] | undefined {
    const sql = "SELECT id FROM sessions WHERE seen IS NULL UNION SELECT id FROM writing";
    return this.#ask(() => this.#all(sql).map(({ id }) => id as string));
  }

  /** Returns sessions in the order of the column `place`, from behind `from` to the last and then from the first. */
  sample(from: number, count: number): IndexSample | undefined {
    const sql = "SELECT id, file_name AS fileName, seen, place FROM sessions WHERE seen IS NOT NULL AND place";
    return this.#ask(() => {
      const behind = this.#all(`${sql} > ? ORDER BY place LIMIT ?`, from, count);
      const before = this.#all(`${sql} <= ? ORDER BY place LIMIT ?`, from, count - behind.length);
      return [...behind, ...before] as unknown as IndexSample; // The cast names the columns of the statement.
    });
  }

  lastPlace(): number {
    return this.#ask(() => Number(this.#get("SELECT max(place) AS place FROM sessions")?.["place"] ?? 0)) ?? 0;
  }

  /**
   * Returns the sessions of a page, without those that `leaves` names. Where their entries fill `pageBytes`, one
   * session more shows that the page ends there.
   */
  page(
    query: ListQuery,
    wanted: WantedSessions,
    { pageBytes, leaves }: { readonly pageBytes: number; readonly leaves: (sessionId: string) => boolean },
  ): readonly SessionSnapshot[] | undefined {
    const statements = pageStatements(query, wanted, this.#options.agent.agentId);
    return this.#ask(() =>
      statements.flatMap(({ sql, values }) => {
        const found: SessionSnapshot[] = [];
        let bytes = 0;
        for (const row of this.#statement(sql).iterate(...values)) {
          if (leaves(row["id"] as string)) continue;
          const indexed = this.#indexed(row);
          const seen = { ...indexed, entryText: JSON.stringify(readableEntry(indexed.folded)) };
          found.push(seen);
          if (bytes >= pageBytes) break;
          bytes += entryBytesOf(seen);
        }
        return found;
      }),
    );
  }

  /** Marks the session before this writer writes to it, so that no reader trusts its row until `unmark`. */
  mark(sessionId: string, writer: string, nowMs: number): void {
    this.#ask(() => this.#run("INSERT OR REPLACE INTO writing VALUES (?, ?, ?)", sessionId, writer, nowMs));
  }

  unmark(sessionIds: Iterable<string>, writer: string): void {
    this.#transaction(() => {
      for (const id of sessionIds) this.#run("DELETE FROM writing WHERE id = ? AND writer = ?", id, writer);
    });
  }

  /** Deletes marks of writers that died. Only sessions that were read since are given, so their rows are right. */
  unmarkOlder(sessionIds: Iterable<string>, sinceMs: number): void {
    const old = this.#ask(() => this.#all("SELECT id FROM writing WHERE since_ms < ?", sinceMs));
    if (old === undefined || old.length === 0) return;
    this.#transaction(() => {
      for (const id of sessionIds) this.#run("DELETE FROM writing WHERE id = ? AND since_ms < ?", id, sinceMs);
    });
  }

  /**
   * Updates the index. Returns "all" when it needs every row of the log, and undefined when it cannot be written now.
   */
  update(update: IndexUpdate): "written" | "all" | undefined {
    const outcome = this.#transaction(() => this.#updateRows(update));
    if (outcome !== "written") return outcome;
    for (let from = 0; from < update.seen.length; from += rowsPerTransaction) {
      const some = update.seen.slice(from, from + rowsPerTransaction);
      if (this.#transaction(() => this.#updateSeen(some)) === undefined) return undefined;
    }
    return "written";
  }

  /** Drops what was read from transcripts, so that all of them are read again. */
  forgetSeen(): void {
    this.#transaction(() => this.#run("UPDATE sessions SET seen = NULL, folded = NULL, summary = NULL"));
  }

  /**
   * Removes deleted content from the files. If that is impossible, or the index is not up to date, the files are
   * deleted.
   */
  scrub(isUpToDate: boolean): void {
    const { files, folder } = this.#options;
    files.remove(`${folder.index}.damaged`);
    const row = isUpToDate ? this.#ask(() => this.#get("PRAGMA wal_checkpoint(TRUNCATE)")) : null;
    if (row?.["busy"] === 0 || files.facts(folder.index) === null) return;
    this.close();
    removeDatabase(files, folder.index);
  }

  close(): void {
    this.#statements.clear();
    if (this.#file === null) return;
    this.generation++;
    if (this.#file.database.isOpen) this.#file.database.close();
    this.#file = null;
  }

  #updateRows({ log, isCurrent, isOfLog, sinceBytes, rows, keyed, notes }: IndexUpdate): "written" | "all" {
    if (!isCurrent()) return "all";
    const text = this.#get("SELECT value FROM state WHERE name = 'log'")?.["value"] as string | undefined;
    const known = text === undefined ? null : (parseChecked(text) as LogPlace);
    const isSameLog = known !== null && isOfLog(known);
    if (isSameLog && known.endBytes > log.endBytes) return "written";
    if (sinceBytes !== null && (!isSameLog || known.endBytes < sinceBytes)) return "all";
    const kept = new Set<string>();
    for (const row of rows) {
      this.#upsert(row);
      if (sinceBytes === null) kept.add(row.sessionId);
    }
    if (sinceBytes === null) {
      this.#keys.clear();
      for (const { id } of this.#all("SELECT id FROM sessions"))
        if (!kept.has(id as string)) this.#delete(id as string);
      // Merged changes went into the previous log, and this log may lack them.
      this.#run("DELETE FROM state WHERE name <> 'made-for' AND name NOT LIKE 'flushed:%'");
    } else for (const id of log.removed) this.#delete(id);
    for (const appends of keyed) this.#keys.remember(appends);
    for (const [name, value] of Object.entries({ ...notes, log: withChecksum(JSON.stringify(log)) }))
      this.#run("INSERT OR REPLACE INTO state VALUES (?, ?)", name, value);
    return "written";
  }

  /** Keeps what was read from the transcript while the log's line is the same. */
  #upsert(row: SessionRow): void {
    const { sessionId, key, isArchived, updatedAtMs, fileName, formerFileName = null } = row;
    this.#run(
      `INSERT INTO sessions (id, key_order, archived, updated_ms, file_name, former_name, line) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET key_order = excluded.key_order, archived = excluded.archived,
        updated_ms = excluded.updated_ms, file_name = excluded.file_name, former_name = excluded.former_name,
        line = excluded.line, seen = NULL, folded = NULL, summary = NULL WHERE line <> excluded.line`,
      sessionId,
      keyOrder(key),
      isArchived ? 1 : 0,
      Math.trunc(updatedAtMs),
      fileName,
      formerFileName,
      this.#lineOf(row),
    );
  }

  #updateSeen(sessions: readonly SessionSnapshot[]): true {
    for (const { row, folded, digest, seen, flushed } of sessions) {
      const foldedLine = folded.entry === row.entry && folded.revision === row.revision ? null : this.#lineOf(folded);
      this.#run(
        "UPDATE sessions SET updated_ms = ?, folded = ?, summary = ?, seen = ? WHERE id = ? AND line = ?",
        Math.trunc(Math.max(folded.updatedAtMs, digest.updatedAtMs)),
        foldedLine,
        withChecksum(JSON.stringify(digest)),
        seen,
        row.sessionId,
        this.#lineOf(row),
      );
      if (flushed !== undefined) this.#flushed.note(row.sessionId, flushed);
    }
    return true;
  }

  #delete(sessionId: string): void {
    this.#keys.forget(sessionId);
    this.#run("DELETE FROM sessions WHERE id = ?", sessionId);
    this.#run("DELETE FROM writing WHERE id = ?", sessionId);
    this.#flushed.forget(sessionId);
  }

  #indexed(columns: Row): SessionSnapshot {
    const row = this.#decode(columns["line"] as string);
    const folded = columns["folded"] === null ? row : this.#decode(columns["folded"] as string);
    const digest = parseChecked(columns["summary"] as string) as TranscriptDigest;
    const updatedAtMs = Math.max(folded.updatedAtMs, digest.updatedAtMs);
    // Another process could decode the folded entry, and this one cannot, so the index's answer is not used.
    const isUndecodable = folded !== row && [row, folded].some(({ entry }) => entry instanceof UndecodableEntry);
    return {
      row,
      folded: updatedAtMs === folded.updatedAtMs ? folded : { ...folded, updatedAtMs },
      digest,
      seen: isUndecodable ? "" : (columns["seen"] as string),
    };
  }

  #decode(line: string): SessionRow {
    const { codec, agent } = this.#options;
    const decoded = decodeRowChange(line, codec, agent);
    const row = decoded?.change.rows[0];
    if (row === undefined || decoded?.isChecksumRight !== true) throw new DamagedIndex();
    return row;
  }

  #lineOf(row: SessionRow): string {
    return lineOfRow(row, this.#options.codec, this.#options.agent);
  }

  #transaction<T>(work: () => T): T | undefined {
    return this.#ask((database) => {
      database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        database.exec("COMMIT");
        return result;
      } finally {
        if (database.isTransaction) database.exec("ROLLBACK");
      }
    }, true);
  }

  #ask<T>(question: (database: nodeSqlite.DatabaseSync) => T, create = false): T | undefined {
    const file = this.#reach(create);
    if (file === null) return undefined;
    try {
      return question(file.database);
    } catch (error) {
      // A SyntaxError comes from text that SQLite did not detect as damaged.
      if (error instanceof DamagedIndex || error instanceof SyntaxError || isDamage(error)) this.#putAside(true);
      // Codec errors are ignored here, because reading entries.log reports them.
      else if (!hasErrorCode(error, "CODEC_FAILED") && (error as { code?: unknown }).code !== "ERR_SQLITE_ERROR")
        throw error;
      return undefined;
    }
  }

  #reach(create: boolean): IndexFile | null {
    const { files, folder, codec, isWanted } = this.#options;
    if (this.#file !== null || this.#isShut || !isWanted()) return this.#file;
    for (let attempt = 0; attempt < 2; attempt++) {
      const opened = openIndexFile(files, folder.index, { create, isCoded: codec.isCoded });
      if (opened === "unusable" || opened === "outdated") this.#putAside(opened === "unusable");
      else if (opened === "missing") return null;
      else {
        this.#isShut = opened === "unavailable";
        this.#file = opened === "unavailable" ? null : opened;
        this.generation++;
        return this.#file;
      }
    }
    this.#isShut = true;
    return null;
  }

  /** Removes an unusable index. With `isKept` it is renamed, because its content may still be needed. */
  #putAside(isKept: boolean): void {
    const { files, folder, onFinding } = this.#options;
    this.close();
    try {
      for (const path of [`${folder.index}-wal`, `${folder.index}-shm`]) files.remove(path);
      if (!isKept) return files.remove(folder.index);
      if (files.facts(folder.index) !== null) files.rename(folder.index, `${folder.index}.damaged`);
    } catch {
      // The folder is read-only, or another process was faster. The store works without an index, or with the new one.
      this.#isShut = true;
      return;
    }
    onFinding(createFinding("INDEX_REBUILT", "The index of the sessions could not be used.", { path: folder.index }));
  }

  #get(sql: string, ...values: readonly nodeSqlite.SQLInputValue[]): Row | null {
    return (this.#statement(sql).get(...values) as Row | undefined) ?? null;
  }

  #all(sql: string, ...values: readonly nodeSqlite.SQLInputValue[]): readonly Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  #run(sql: string, ...values: readonly nodeSqlite.SQLInputValue[]): void {
    this.#statement(sql).run(...values);
  }

  #statement(sql: string): nodeSqlite.StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined)
      this.#statements.set(sql, (statement = this.#file?.database.prepare(sql) as nodeSqlite.StatementSync));
    return statement;
  }
}

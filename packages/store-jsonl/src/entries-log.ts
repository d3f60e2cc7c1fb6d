import type { Finding } from "@throughline/core";
import type { SplitLine } from "@throughline/openclaw-format/internal";
import { AppendFile } from "./append-file.ts";
import { fileError, flushFolder, withFileErrors } from "./file-work.ts";
import { IndexedLog, standingOf } from "./indexed-log.ts";
import { lengthOf, LogDamage, LogImage, readLogLine, replaceLog, UnflushedRows, type LogReading } from "./log-image.ts";
import { LogTail, readLogInSlices, scanLog } from "./read-log.ts";
import type { SessionIndex } from "./session-index.ts";
import { encodeRowChange, type KeyedAppend, type RowChange, type SeenSession, type SessionRow } from "./session-row.ts";
import { setTailAside } from "./torn-tail.ts";
import type { UnflushedMarks } from "./unflushed-marks.ts";

export interface EntriesLogOptions extends LogReading {
  readonly index: SessionIndex;
  readonly unflushed: UnflushedMarks;
  readonly nowMs: () => number;
  readonly onFinding: (finding: Finding) => void;
}

const minCompactedBytes = 1024 * 1024;
/** Limits the rewrite to about 20 ms, because the lock is held during it. */
const maxCompactedBytes = 4 * 1024 * 1024;

/**
 * Reads and writes the entries log, which is authoritative for an agent's sessions. Its lines are appended and never
 * changed. When the index covers the log up to a position, only the rest is read. Other sessions are then looked up in
 * the index.
 */
export class EntriesLog {
  damage: LogDamage = new LogDamage();
  /** Grows with every change that is read or written, and when the log was replaced. */
  changes = 0;
  readonly #options: EntriesLogOptions;
  /**
   * Holds all sessions when `#isWhole`. Otherwise it holds those that were looked up, or that changed behind the
   * index's position.
   */
  #image: LogImage = new LogImage();
  readonly #unflushed: UnflushedRows = new UnflushedRows();
  readonly #indexed: IndexedLog;
  #isWhole = true;
  /** Is true when this object has rows that could not be written to the log, because the folder is read-only. */
  #isAhead = false;
  readonly #file: AppendFile;
  #endBytes = 0;
  #lineCount = 0;
  readonly #tail: LogTail = new LogTail();
  /** Stays at four times the live size of the last check, so that the live size is not computed for every flush. */
  #compactFromBytes = 0;

  constructor(options: EntriesLogOptions) {
    this.#options = options;
    this.#file = new AppendFile({
      files: options.files,
      marks: options.unflushed,
      sizeOf: () => this.#endBytes,
      flushName: () => flushFolder(options.files, options.folder.own),
      onFlushFailed: () => this.#reset(),
    });
    this.#indexed = new IndexedLog(options.index);
  }

  /** Reads what other processes have appended. It is cheap when there is nothing new. */
  refresh(): void {
    const { files, folder } = this.#options;
    const path = folder.entriesLog;
    const facts = withFileErrors(path, () => files.facts(path));
    if (facts === null) return this.#isAhead && !this.#file.isOpen ? undefined : this.#reset();
    const isOther = this.#file.identity !== facts.identity || facts.sizeBytes < this.#tail.endOf(this.#endBytes);
    const isTakenBack = withFileErrors(path, () => this.#tail.isOther(files, this.#file));
    if (isOther || isTakenBack || (!this.#isWhole && !this.#indexed.isSame)) {
      this.#reset();
      if (this.#file.open(path) !== null) this.#beginAtIndex();
    }
    if (this.#file.isOpen && facts.sizeBytes > this.#tail.endOf(this.#endBytes)) this.#scan(facts.sizeBytes);
  }

  /**
   * Does the same as `refresh`, under the entries lock. It also repairs a torn end and flushes doubtful bytes again.
   */
  refreshHeld(): void {
    this.refresh();
    this.#file.settle();
    const { at: tornAt } = this.#tail;
    if (this.#file.isOpen && tornAt !== null)
      withFileErrors(this.#options.folder.entriesLog, () => this.#repairTail(tornAt));
  }

  find(key: string, archiveId: string | undefined): SessionRow | null {
    const id = archiveId ?? this.idOf(key);
    const row = id === null ? null : this.row(id);
    return row === null || row.key !== key || row.isArchived !== (archiveId !== undefined) ? null : row;
  }

  row(sessionId: string): SessionRow | null {
    const known = this.#image.rows.get(sessionId);
    if (known !== undefined || this.#isWhole || this.removed.has(sessionId)) return known ?? null;
    const found = this.#askOrRead((index) => index.row(sessionId));
    if (found !== null) this.#image.take(found);
    return this.#image.rows.get(sessionId) ?? null;
  }

  idOf(key: string): string | null {
    const known = this.#image.idByKey.get(key);
    if (known !== undefined || this.#isWhole) return known ?? null;
    const found = this.#indexed.ask((index) => index.idOf(key));
    if (found === undefined) this.#readWhole();
    // A row that was read here is newer than the index and states its own key.
    else return found === null || this.#image.rows.has(found) || this.removed.has(found) ? null : found;
    return this.#image.idByKey.get(key) ?? null;
  }

  keyedAppend(sessionId: string, key: string): KeyedAppend | null {
    const known = this.#image.keyed.find(sessionId, key);
    if (known !== null || this.removed.has(sessionId)) return known;
    const indexed = this.#askOrRead((index) => index.keyed((keys) => keys.find(sessionId, key)));
    return indexed ?? this.#image.keyed.find(sessionId, key);
  }

  forgottenUntilMs(sessionId: string): number {
    const indexedMs = this.#askOrRead((index) => index.keyed((keys) => keys.horizonMs(sessionId))) ?? -1;
    return Math.max(indexedMs, this.#image.keyed.horizonMs(sessionId));
  }

  /**
   * Returns a session id that differs from this one at most in case, because some file systems do not distinguish case.
   */
  twinOf(sessionId: string): string | null {
    const found = this.#askOrRead((index) => index.twinOf(sessionId));
    return found !== null && !this.removed.has(found) ? found : this.#image.twinOf(sessionId);
  }

  fileNames(): ReadonlySet<string> {
    const indexed = this.#askOrRead((index) => index.fileNames()) ?? [];
    return new Set([...indexed, ...this.#image.fileNames()]);
  }

  all(): ReadonlyMap<string, SessionRow> {
    return this.#isWhole ? this.#image.rows : this.#readWhole();
  }

  forks(): readonly SessionRow[] {
    const indexed = this.#askOrRead((index) => index.forks()) ?? [];
    const known = this.#image.rows;
    // Rows that were read here are newer than those of the index.
    const left = indexed.filter(({ sessionId: id }) => !known.has(id) && !this.removed.has(id));
    return [...left, ...known.values()].filter(({ origins = [] }) => origins.length > 0);
  }

  /** Does the same as `all`, in slices, so that other work can run in between. */
  async allInSlices(): Promise<ReadonlyMap<string, SessionRow>> {
    const read = this.#isWhole ? null : await readLogInSlices(this.#options);
    this.refresh();
    if (read === null || this.#isWhole || read.identity !== this.identity) return this.all();
    this.#tail.clear();
    ({ image: this.#image, damage: this.damage, endBytes: this.#endBytes, lineCount: this.#lineCount } = read);
    this.#isWhole = true;
    this.refresh();
    return this.all();
  }

  /** Returns the approximate number, because the index's count ignores later changes. */
  activeCount(): number {
    const indexed = this.#askOrRead((index) => index.activeCount());
    return indexed ?? [...this.#image.rows.values()].filter(({ isArchived }) => !isArchived).length;
  }

  get identity(): string {
    return this.#file.identity;
  }

  get removed(): ReadonlySet<string> {
    return this.#image.removed;
  }

  get isIndexed(): boolean {
    return !this.#isAhead && this.#file.isOpen && this.#indexed.isOf(this.identity);
  }

  get unindexed(): ReadonlySet<string> {
    return this.#indexed.changed;
  }

  /**
   * Updates the index to the state of this object, with the given snapshots. Returns false when it could not be
   * written; its content is correct in any case.
   */
  updateIndex(seen: readonly SeenSession[], notes: Readonly<Record<string, string>>): boolean {
    const { index, files, folder } = this.#options;
    // A last line without a line feed may still be undone, so the index includes it only once it is complete.
    if (!this.#file.isOpen || this.#isAhead || this.#tail.isWhole) return false;
    const sinceBytes = this.isIndexed ? this.#indexed.endBytes : null;
    if (sinceBytes === null) this.all();
    const known = { endBytes: this.#endBytes, lineCount: this.#lineCount, removed: [...this.removed] };
    const log = standingOf(files, folder.entriesLog, this.#file, known);
    const news = this.#indexed.newsOf(this.#image, sinceBytes === null);
    const isWritten = index.update({ ...log, ...news, sinceBytes, seen, notes }) === "written";
    this.#indexed.taken(isWritten ? this.#endBytes : null);
    return isWritten;
  }

  /** Commits a change. Call it under the entries lock. */
  write(change: RowChange): void {
    const { folder, codec, agent } = this.#options;
    const path = folder.entriesLog;
    this.refreshHeld();
    withFileErrors(path, () => {
      if (!this.#file.isOpen) this.#file.create(path);
      this.#file.assertWritable();
      const bytes = Buffer.from(`${encodeRowChange(change, codec, agent)}\n`);
      this.#file.write(bytes, this.#endBytes);
      this.#endBytes += bytes.length;
      this.#apply(change, this.#endBytes - bytes.length, this.#endBytes);
      this.#lineCount++;
    });
  }

  /** Applies a change in memory only, for a store that cannot be written. */
  applyUnwritten(change: RowChange): void {
    this.all();
    this.#isAhead = true;
    this.#image.apply(change);
    this.damage.mend(change);
  }

  /** Rewrites the log with the current rows, so that no deleted content stays in it. Call it under the entries lock. */
  rewrite(removed: readonly string[] = []): void {
    this.all();
    replaceLog(this.#options, this.#image, removed, this.damage.newer);
    this.#reset();
    this.refresh();
  }

  /** Is true when the log may be far longer than its live content. */
  get isLong(): boolean {
    return this.#endBytes > Math.max(minCompactedBytes, this.#compactFromBytes);
  }

  /**
   * Does the same as `rewrite`, if most of the log is obsolete, the rest is short, and every line was understood. Other
   * lines must not be dropped.
   */
  compact(): void {
    this.refreshHeld();
    this.all();
    const liveBytes = lengthOf(this.#image, this.#options);
    this.#compactFromBytes = 4 * liveBytes;
    if (this.isLong && liveBytes <= maxCompactedBytes && !this.damage.hasUnread && !this.#isAhead)
      this.rewrite([...this.removed]);
  }

  /** Tests whether this process has flushed the line that describes the session, and the log's name. */
  isOnDisk(sessionId: string): boolean {
    return this.#file.isNamed && this.#unflushed.isOnDisk(sessionId, this.#file.flushedBytes);
  }

  /**
   * Tests whether the session's line may be lost although a later flush succeeds. That is so when a flush failed after
   * `refreshHeld`, in this process or another.
   */
  isDoubtful(sessionId: string): boolean {
    return this.#file.isInDoubt || (!this.isOnDisk(sessionId) && this.#file.isMarked);
  }

  /**
   * Writes again what this process has not flushed itself, because its writer's flush may have failed. Call it under
   * the entries lock.
   */
  settle(): void {
    this.#assertBelieved();
    if (this.#file.flushedBytes < this.#endBytes) this.#file.suspect(this.#file.flushedBytes);
    this.refreshHeld();
  }

  async flushed(): Promise<void> {
    this.#assertBelieved();
    await this.#file.flushed();
  }

  /**
   * Does the same as `flushed`, synchronously: files may be renamed or deleted only after it. Call it under the entries
   * lock.
   */
  flushNow(): void {
    this.#assertBelieved();
    this.#file.flushNow();
  }

  async close(): Promise<void> {
    await this.#file.idle();
    this.#reset();
  }

  #apply(change: RowChange, at: number, endBytes: number): void {
    this.changes++;
    this.#image.apply(change);
    this.damage.mend(change);
    this.#unflushed.note(change, endBytes, this.#file.flushedBytes);
    this.#indexed.note(change, at);
  }

  #beginAtIndex(): void {
    const known = this.#indexed.begin(this.#options, this.#file);
    if (known === null) return;
    this.#endBytes = known.endBytes;
    this.#lineCount = known.lineCount;
    for (const sessionId of known.removed) this.#image.removed.add(sessionId);
    this.#isWhole = false;
  }

  /**
   * Asks the index about the unloaded part of the log. Returns null when all of it is loaded, or was loaded just now.
   */
  #askOrRead<T>(question: (index: SessionIndex) => T | undefined): T | null {
    const answer = this.#isWhole ? null : this.#indexed.ask(question);
    if (answer === undefined) this.#readWhole();
    return answer ?? null;
  }

  #readWhole(): ReadonlyMap<string, SessionRow> {
    const { files, folder } = this.#options;
    const sizeNow = (): number => files.factsOf(this.#file.handle).sizeBytes;
    this.#clear();
    if (this.#file.isOpen) this.#scan(withFileErrors(folder.entriesLog, sizeNow));
    return this.#image.rows;
  }

  #clear(): void {
    this.changes++;
    this.#endBytes = 0;
    this.#lineCount = 0;
    this.#tail.clear();
    this.#isWhole = true;
    this.#isAhead = false;
    this.#indexed.forgetChanges();
    this.#unflushed.clear();
    this.#image.clear();
    this.damage.clear();
  }

  #reset(): void {
    this.#indexed.reach(null);
    this.#clear();
    this.#file.close();
  }

  #assertBelieved(): void {
    if (this.#file.isOpen && !this.#file.isInDoubt) return;
    const path = this.#options.folder.entriesLog;
    throw fileError(new Error("the log was closed before it was flushed, or a flush of it failed"), path, "unknown");
  }

  #scan(sizeBytes: number): void {
    this.#tail.clear();
    const span = { from: this.#endBytes, to: sizeBytes };
    const last = scanLog(this.#options, this.#file.handle, span, (line) => this.#takeLine(line));
    const change = last === null ? null : this.#tail.take(last, this.#options);
    if (change !== null) this.#apply(change, this.#endBytes, this.#tail.endOf(this.#endBytes) + 1);
  }

  #takeLine(line: SplitLine): void {
    const { codec, agent, folder, onFinding } = this.#options;
    const place = { path: folder.entriesLog, line: this.#lineCount + 1, byteOffset: line.byteOffset };
    const read = readLogLine(line.bytes, codec, agent);
    this.#lineCount++;
    this.#endBytes = line.byteOffset + line.sizeBytes + 1;
    this.damage.note(read, place, onFinding);
    for (const { change } of read.decoded) this.#apply(change, line.byteOffset, this.#endBytes);
  }

  /**
   * Completes a whole last line, or truncates an unacknowledged rest after saving a copy. Call it under the entries
   * lock.
   */
  #repairTail(from: number): void {
    const { files, folder, nowMs, onFinding } = this.#options;
    const { handle } = this.#file;
    if (this.#tail.isWhole) {
      const { sizeBytes } = files.factsOf(handle);
      this.#file.write(Buffer.from("\n"), sizeBytes);
      this.#scan(sizeBytes + 1);
      return;
    }
    const torn = { handle, path: folder.entriesLog, key: null, code: "TAIL_TORN", from, folder: folder.torn } as const;
    onFinding(setTailAside(files, { ...torn, nowMs: nowMs() }));
    this.#tail.clear();
  }
}

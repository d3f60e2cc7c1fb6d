import type { Finding } from "@throughline/core";
import { createLineSplitter } from "@throughline/openclaw-format";
import type { SplitLine } from "@throughline/openclaw-format/internal";
import { AppendFile } from "./append-file.ts";
import { assertSameCoding, isCodedFolder, isCodedText } from "./coded-folder.ts";
import { fileError, flushFolder, readRange, withFileErrors } from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import { IndexedLog, standingOf } from "./indexed-log.ts";
import { lengthOf, LogDamage, LogImage, readLogLine, replaceLog, type LogReading } from "./log-image.ts";
import { LogTail, scanLog } from "./read-log.ts";
import type { SessionIndex } from "./session-index.ts";
import { encodeRowChange, type RowChange, type SessionSnapshot, type SessionRow } from "./session-row.ts";
import { createSlices } from "./slices.ts";
import { setTailAside } from "./torn-tail.ts";
import { UnflushedRows } from "./unflushed-rows.ts";
import type { UnflushedMarks } from "./unflushed-marks.ts";

export interface EntriesLogOptions extends LogReading {
  readonly index: SessionIndex;
  readonly unflushed: UnflushedMarks;
  readonly nowMs: () => number;
  readonly onFinding: (finding: Finding) => void;
  readonly root: string;
}

/** Limits what is read at once, which takes about a millisecond. */
const sliceBytes = 256 * 1024;
const minCompactedBytes = 1024 * 1024;
/** Limits the rewrite to about 20 ms, because the lock is held during it. */
const maxCompactedBytes = 4 * 1024 * 1024;

/**
 * Reads and writes the entries log, which is authoritative for an agent's sessions. Its lines are appended and never
 * changed. The whole log is read once and held in memory.
 */
export class EntriesLog {
  damage: LogDamage = new LogDamage();
  /** Grows with every change that is read or written, and when the log was replaced. */
  changes = 0;
  readonly #options: EntriesLogOptions;
  /** Holds what the log says. */
  readonly image: LogImage = new LogImage();
  readonly #unflushed: UnflushedRows = new UnflushedRows();
  readonly #indexed: IndexedLog;
  /** Is true when this object has rows that could not be written to the log, because the folder is read-only. */
  #isAhead = false;
  readonly #file: AppendFile;
  /** Holds whether the entries that were read are encoded, until one has the form of this handle. */
  readonly #forms = new Set<boolean>();
  #endBytes = 0;
  #lineCount = 0;
  #opening: Promise<void> | null = null;
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
    try {
      const facts = files.facts(folder.entriesLog);
      const isSame = facts?.identity === this.#file.identity && this.#tail.at === null;
      if (!isSame || facts.sizeBytes !== this.#endBytes) this.#readNew(facts);
    } catch (error) {
      throw fileError(error, folder.entriesLog);
    }
  }

  #readNew(facts: FileFacts | null): void {
    const { files, folder } = this.#options;
    if (facts === null) return this.#isAhead && !this.#file.isOpen ? undefined : this.#reset();
    const isOther = this.#file.identity !== facts.identity || facts.sizeBytes < this.#tail.endOf(this.#endBytes);
    if (isOther || this.#tail.isOther(files, this.#file)) {
      this.#reset();
      if (this.#file.open(folder.entriesLog) !== null) this.#matchIndex();
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
    const { rows, idByKey } = this.image;
    const row = rows.get(archiveId ?? idByKey.get(key) ?? "");
    return row === undefined || row.key !== key || row.isArchived !== (archiveId !== undefined) ? null : row;
  }

  row(sessionId: string): SessionRow | null {
    return this.image.rows.get(sessionId) ?? null;
  }

  idOf(key: string): string | null {
    return this.image.idByKey.get(key) ?? null;
  }

  get rows(): ReadonlyMap<string, SessionRow> {
    return this.image.rows;
  }

  /** Reads a long log for the first time in slices, so that other work can run in between. */
  open(): Promise<void> {
    return (this.#opening ??= this.#openInSlices().finally(() => (this.#opening = null)));
  }

  async #openInSlices(): Promise<void> {
    if (this.#file.isOpen) return;
    const { files, folder } = this.#options;
    const facts = this.#file.open(folder.entriesLog);
    if (facts === null) return;
    this.#clear();
    this.#unflushed.noteAll(facts.sizeBytes);
    this.#matchIndex();
    const splitter = createLineSplitter({ maxLineBytes: Number.MAX_SAFE_INTEGER });
    const slices = createSlices();
    for (let position = 0; position < facts.sizeBytes; position += sliceBytes) {
      const { handle } = this.#file;
      const read = (): Uint8Array => readRange(files, handle, position, position + sliceBytes);
      for (const line of splitter.push(withFileErrors(folder.entriesLog, read))) this.#takeLine(line);
      const { changes } = this;
      await slices.next();
      // A refresh during the pause has read the rest, or another log.
      if (this.changes !== changes || !this.#file.isOpen) break;
    }
    this.#compareCoding();
    // A torn end behind the last line is cut off later, and no flush would reach it.
    this.#unflushed.noteAll(this.#endBytes);
  }

  get activeCount(): number {
    return this.image.idByKey.size;
  }

  get identity(): string {
    return this.#file.identity;
  }

  get removed(): ReadonlySet<string> {
    return this.image.removed;
  }

  get isIndexed(): boolean {
    if (this.#isAhead || !this.#file.isOpen) return false;
    if (!this.#indexed.isSame) this.#matchIndex();
    return this.#indexed.isOf(this.identity);
  }

  get unindexed(): ReadonlySet<string> {
    return this.#indexed.changed;
  }

  /**
   * Updates the index to the state of this object, with the given snapshots. Returns false when it could not be
   * written; its content is correct in any case.
   */
  updateIndex(seen: readonly SessionSnapshot[], notes: Readonly<Record<string, string>>): boolean {
    const { index, files, folder } = this.#options;
    // A last line without a line feed may still be undone, so the index includes it only once it is complete.
    if (!this.#file.isOpen || this.#isAhead || this.#tail.isWhole) return false;
    const sinceBytes = this.isIndexed ? this.#indexed.endBytes : null;
    const known = { endBytes: this.#endBytes, lineCount: this.#lineCount, removed: [...this.removed] };
    const log = standingOf(files, folder.entriesLog, this.#file, known);
    const news = this.#indexed.newsOf(this.image, sinceBytes === null);
    const isWritten = index.update({ ...log, ...news, sinceBytes, seen, notes }) === "written";
    this.#indexed.taken(isWritten ? this.#endBytes : null);
    return isWritten;
  }

  /** Commits a change. Call it under the entries lock. */
  write(change: RowChange): void {
    const { root, files, folder, codec, agent } = this.#options;
    const path = folder.entriesLog;
    this.refreshHeld();
    if (!this.#file.isOpen) assertSameCoding(isCodedFolder(root, files), codec);
    withFileErrors(path, () => {
      if (!this.#file.isOpen) this.#file.create(path);
      this.#file.assertWritable();
      const bytes = Buffer.from(`${encodeRowChange(change, codec, agent)}\n`);
      this.#file.write(bytes, this.#endBytes);
      this.#endBytes += bytes.length;
      this.#forms.add(codec.isCoded);
      this.#apply(change, this.#endBytes - bytes.length, this.#endBytes);
      this.#lineCount++;
    });
  }

  /** Applies a change in memory only, for a store that cannot be written. */
  applyUnwritten(change: RowChange): void {
    this.#isAhead = true;
    this.image.apply(change);
    this.damage.mend(change);
  }

  /** Rewrites the log with the current rows, so that no deleted content stays in it. Call it under the entries lock. */
  rewrite(removed: readonly string[] = []): void {
    replaceLog(this.#options, this.image, removed, this.damage.newer);
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
    const liveBytes = lengthOf(this.image, this.#options);
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
    this.image.apply(change);
    this.damage.mend(change);
    this.#unflushed.note(change, endBytes, this.#file.flushedBytes);
    this.#indexed.note(change, at);
  }

  /** Finds how far the index covers the log, so that only later changes are written to it. */
  #matchIndex(): void {
    this.#indexed.match(this.#options, this.#file, this.#endBytes);
  }

  #clear(): void {
    this.changes++;
    this.#endBytes = 0;
    this.#lineCount = 0;
    this.#tail.clear();
    this.#isAhead = false;
    this.#forms.clear();
    this.#indexed.forgetChanges();
    this.#unflushed.clear();
    this.image.clear();
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
    this.#compareCoding();
  }

  /** Refuses a log without an entry of this handle's form. A damaged entry among others has another form, and hides none. */
  #compareCoding(): void {
    const { codec } = this.#options;
    if (this.#forms.size === 0 || this.#forms.has(codec.isCoded)) return;
    try {
      assertSameCoding(!codec.isCoded, codec);
    } catch (error) {
      this.#reset();
      throw error;
    }
  }

  #noteForm(line: Uint8Array): void {
    const isCoded = isCodedText(line);
    if (isCoded !== null) this.#forms.add(isCoded);
  }

  #takeLine(line: SplitLine): void {
    const { codec, agent, folder, onFinding } = this.#options;
    if (!this.#forms.has(codec.isCoded)) this.#noteForm(line.bytes);
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

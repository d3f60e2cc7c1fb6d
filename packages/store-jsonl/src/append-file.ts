import type { ThroughlineError } from "@throughline/core";
import { quote, refused } from "@throughline/core/internal";
import {
  factsOfOpened,
  fileError,
  isMissing,
  nothingWritten,
  notAFile,
  openToRead,
  readRange,
  takenBack,
  withFileErrors,
} from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import type { DoubtfulBytes, UnflushedMarks } from "./unflushed-marks.ts";

export interface AppendFileOptions {
  readonly files: Files;
  readonly marks: UnflushedMarks;
  readonly sizeOf: () => number;
  /** Flushes the file's name, once, with the first flush: the process that created the name may not have flushed it. */
  readonly flushName: (path: string, identity: string) => void;
  /** Is called when a flush failed: the open file is no longer reliable, and must be closed. */
  readonly onFlushFailed: () => void;
}

interface OpenFile {
  readonly handle: number;
  readonly identity: string;
  readonly isWritable: boolean;
  readonly flush: GroupFlush;
  /** Everything before this position is flushed. It starts at 0, because existing content may still be unflushed. */
  flushedBytes: number;
  /** Counts the writes that wait for a flush, because the file must stay open for them. */
  pins: number;
  isClosed: boolean;
  isNamed: boolean;
  /** Is true after a failed flush. The kernel then treats the lost pages as clean, so a later flush proves nothing. */
  isDead: boolean;
}

/**
 * Appends to a file and flushes it: a transcript, or the entries log. A write is complete or undone, and flushes are
 * shared. The object remembers across handles which bytes a failed flush may have lost.
 */
export class AppendFile {
  path = "";
  readonly #options: AppendFileOptions;
  #open: OpenFile | null = null;
  /** These bytes may be lost although a later flush succeeded. Of several positions the first counts. */
  #doubtful: DoubtfulBytes | null = null;

  constructor(options: AppendFileOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#open !== null;
  }

  /** Is empty while no file is open. */
  get identity(): string {
    return this.#open?.identity ?? "";
  }

  get handle(): number {
    return this.#opened().handle;
  }

  get flushedBytes(): number {
    return this.#open?.flushedBytes ?? 0;
  }

  /** Is true also when no file is open, because then no name can be lost. */
  get isNamed(): boolean {
    return this.#open?.isNamed ?? true;
  }

  /** Is true after a failed flush: the content may not be on the disk until `settle`. */
  get isInDoubt(): boolean {
    return this.#doubtful !== null;
  }

  /** Is true when another process has marked the open file because its flush failed. */
  get isMarked(): boolean {
    return this.isOpen && this.#options.marks.find(this.identity) !== null;
  }

  /** Is true while a flush uses the file, or while only this object knows of a failed flush. */
  get isPinned(): boolean {
    return this.isInDoubt || (this.#open !== null && this.#open.pins > 0);
  }

  /**
   * Opens the file, read-only if it cannot be written. Returns null when it does not exist.
   * @throws {ThroughlineError} STORE_IO, PATH_UNSAFE
   */
  open(path: string): FileFacts | null {
    const { files } = this.#options;
    const opened = openToAppend(files, path);
    if (opened === null) return null;
    const { handle, isWritable } = opened;
    const facts = withFileErrors(path, () => factsOfOpened(files, handle));
    if (facts.kind !== "file") {
      files.close(handle);
      throw notAFile(path);
    }
    this.#begin(path, handle, facts.identity, isWritable);
    return facts;
  }

  /** Creates a file and flushes its name. @throws {Error} the system's; then the file does not exist */
  create(path: string): void {
    const { files, flushName } = this.#options;
    const handle = files.open(path, "create");
    try {
      const { identity } = files.factsOf(handle);
      flushName(path, identity);
      this.#begin(path, handle, identity, true).isNamed = true;
    } catch (error) {
      // A file left behind would look like one whose name is flushed.
      files.close(handle);
      files.remove(path);
      throw error;
    }
  }

  #begin(path: string, handle: number, identity: string, isWritable: boolean): OpenFile {
    this.path = path;
    const open: OpenFile = {
      handle,
      identity,
      isWritable,
      flushedBytes: 0,
      pins: 0,
      isClosed: false,
      isNamed: false,
      isDead: false,
      flush: new GroupFlush(() => this.#flush(open)),
    };
    this.#open = open;
    return open;
  }

  /** @throws {ThroughlineError} STORE_READ_ONLY */
  assertWritable(): void {
    if (this.#opened().isWritable) return;
    throw refused("STORE_READ_ONLY", `${quote(this.path)} cannot be written.`, { path: this.path });
  }

  /**
   * Appends all bytes at `endBytes`, the end of the file, or none. An error with the outcome "unknown" means that a
   * part of them may have stayed.
   */
  write(bytes: Uint8Array, endBytes: number): void {
    const { files } = this.#options;
    const { handle, path } = this;
    let written = 0;
    try {
      while (written < bytes.length) {
        // A short write does not state its cause, so the rest is written again to get the error.
        const count = files.write(handle, bytes.subarray(written));
        if (count === 0) throw nothingWritten();
        written += count;
      }
    } catch (error) {
      throw takenBack(files, handle, { bytes, written, sizeBefore: endBytes, path }, error);
    }
  }

  /**
   * Resolves when everything written before the call is on the disk. The file stays open until then, also when it is
   * closed or replaced meanwhile.
   * @throws {ThroughlineError} STORE_IO with the outcome "unknown"
   */
  async flushed(): Promise<void> {
    const open = this.#opened();
    open.pins++;
    try {
      await open.flush.flushed();
    } catch (error) {
      throw this.#flushFailed(open, error);
    } finally {
      open.pins--;
      if (open.isClosed) this.#releaseQuietly(open);
    }
  }

  flushNow(): void {
    const open = this.#opened();
    const { files, sizeOf } = this.#options;
    try {
      assertAlive(open);
      files.flushNow(open.handle);
      open.flushedBytes = Math.max(open.flushedBytes, sizeOf());
    } catch (error) {
      throw this.#flushFailed(open, error);
    }
  }

  async #flush(open: OpenFile): Promise<void> {
    const { files, sizeOf, flushName } = this.#options;
    assertAlive(open);
    const upTo = sizeOf();
    const flushing = files.flush(open.handle);
    // The name is flushed while the data flush runs. Its error is kept, so that the data flush is always awaited.
    const name = open.isNamed ? null : attempt(() => flushName(this.path, open.identity));
    try {
      await flushing;
    } catch (error) {
      // The mark is set here rather than in the caller. Otherwise the next flush could start first and report a false
      // success.
      open.isDead = true;
      throw error;
    }
    open.flushedBytes = Math.max(open.flushedBytes, upTo);
    if (name?.failure !== undefined) throw name.failure;
    open.isNamed = true;
  }

  #flushFailed(open: OpenFile, error: unknown): ThroughlineError {
    open.isDead = true;
    this.#doubt(open.identity, open.flushedBytes);
    if (this.#doubtful !== null) this.#options.marks.note(this.#doubtful);
    if (this.#open === open) this.#options.onFlushFailed();
    return fileError(error, this.path, "unknown");
  }

  /** Marks bytes from a position on as doubtful, because their writer may have died after a failed flush. */
  suspect(from: number): void {
    this.#doubt(this.identity, from);
  }

  #doubt(identity: string, from: number): void {
    const known = this.#doubtful;
    if (known?.identity !== identity || from < known.from) this.#doubtful = { identity, from };
  }

  /**
   * Writes doubtful bytes again and flushes them, including bytes that another process has marked. Call it under the
   * file's lock, before anything behind them is written or acknowledged. Returns true when there were any.
   * @throws {ThroughlineError} STORE_IO: the bytes stay doubtful
   */
  settle(): boolean {
    const { path, identity } = this;
    const { files, marks } = this.#options;
    const marked = identity === "" ? null : marks.find(identity);
    if (this.#doubtful === null && marked === null) return false;
    const all = [this.#doubtful, marked].filter((bytes) => bytes !== null);
    for (const bytes of all) flushAgain(files, path, bytes);
    withFileErrors(path, () => {
      for (const bytes of all) marks.clear(bytes.identity);
    });
    this.#doubtful = null;
    return true;
  }

  /** Closes the file once no flush uses it. Before that, its descriptor number must not go to another file. */
  close(): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    open.isClosed = true;
    this.#release(open);
  }

  /** Resolves when no flush of the open file is running; never rejects. */
  async idle(): Promise<void> {
    await this.#open?.flush.idle();
  }

  /** Ignores errors: no caller waits for this close, and the flush has reported the state of the disk. */
  #releaseQuietly(open: OpenFile): void {
    try {
      this.#release(open);
    } catch {
      open.isClosed = false;
    }
  }

  #release(open: OpenFile): void {
    if (open.pins > 0) return;
    open.isClosed = false;
    this.#options.files.close(open.handle);
  }

  #opened(): OpenFile {
    if (this.#open === null) throw refused("INTERNAL", "A file was used before it was opened.");
    return this.#open;
  }
}

function assertAlive({ isDead }: OpenFile): void {
  if (isDead) throw new Error("an earlier flush of this file failed");
}

function attempt(work: () => void): { readonly failure?: unknown } {
  try {
    work();
    return {};
  } catch (failure) {
    return { failure };
  }
}

function openToAppend(files: Files, path: string): Pick<OpenFile, "handle" | "isWritable"> | null {
  try {
    return { handle: files.open(path, "append"), isWritable: true };
  } catch (error) {
    if (isMissing(error)) return null;
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EROFS", "EPERM"].includes(code)) throw fileError(error, path);
    return { handle: openToRead(files, path), isWritable: false };
  }
}

const chunkBytes = 1024 * 1024;

/**
 * Writes bytes whose flush failed over themselves and flushes them. Without the rewrite the kernel would skip them, and
 * the flush would still succeed. Readers see no change. Call it under the file's lock.
 */
function flushAgain(files: Files, path: string, { identity, from }: DoubtfulBytes): void {
  try {
    const handle = files.open(path, "rewrite");
    try {
      const facts = files.factsOf(handle);
      if (facts.identity !== identity) return;
      for (let position = from; position < facts.sizeBytes;) {
        const bytes = readRange(files, handle, position, Math.min(position + chunkBytes, facts.sizeBytes));
        if (bytes.length === 0) break;
        for (let written = 0; written < bytes.length;) {
          const count = files.writeAt(handle, bytes.subarray(written), position + written);
          if (count === 0) throw nothingWritten();
          written += count;
        }
        position += bytes.length;
      }
      files.flushNow(handle);
    } finally {
      files.close(handle);
    }
  } catch (error) {
    if (!isMissing(error)) throw fileError(error, path);
  }
}

/**
 * Shares one flush among all writers that wrote before it started. Later writers share the next one, because a running
 * flush may miss their bytes.
 */
export class GroupFlush {
  readonly #flush: () => Promise<void>;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  /** Is true also between two flushes when the second one is awaited. */
  get isRunning(): boolean {
    return this.#running !== null || this.#next !== null;
  }

  flushed(): Promise<void> {
    // Two flushes must never overlap: the kernel reports a failure to only one of them.
    if (this.#next !== null) return this.#next;
    if (this.#running === null) return this.#start();
    this.#next = this.#running.then(
      () => this.#startNext(),
      () => this.#startNext(),
    );
    return this.#next;
  }

  /** Resolves when no flush is running; never rejects. */
  async idle(): Promise<void> {
    for (let last = this.#next ?? this.#running; last !== null; last = this.#next ?? this.#running)
      await last.catch(() => undefined);
  }

  #startNext(): Promise<void> {
    this.#next = null;
    return this.#start();
  }

  #start(): Promise<void> {
    const running = this.#flush().finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }
}

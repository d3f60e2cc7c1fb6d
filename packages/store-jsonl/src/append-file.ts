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
  /** Up to where the file is known, with what was just written to it. */
  readonly sizeOf: () => number;
  /** Puts the file's name on the disk. Done once, with the first flush: until then a name may be anybody's, and new. */
  readonly flushName: (path: string, identity: string) => void;
  /** The open file is not believed any more, and must be closed. */
  readonly onFlushFailed: () => void;
}

/** A file that is open, with what is known of its way to the disk. */
interface OpenFile {
  readonly handle: number;
  readonly identity: string;
  readonly isWritable: boolean;
  readonly flush: GroupFlush;
  /** Up to here everything is on the disk. What was there when the file was opened may be nowhere else yet. */
  flushedBytes: number;
  /** Writes whose flush is not over. */
  pins: number;
  isClosed: boolean;
  /** This process has flushed the folder that the file's name is in. */
  isNamed: boolean;
  /** After a failed flush the kernel takes for clean what it could not write: nothing more is believed of this handle. */
  isDead: boolean;
}

/**
 * A file that is appended to and flushed: a transcript, or the entries log. It writes all of a text or nothing, shares
 * flushes, and remembers across handles which bytes a failed flush may have left out.
 */
export class AppendFile {
  /** What the file is called by now. */
  path = "";
  readonly #options: AppendFileOptions;
  #open: OpenFile | null = null;
  /** Bytes that may not be on the disk although a later flush succeeds; the first place counts. */
  #doubtful: DoubtfulBytes | null = null;

  constructor(options: AppendFileOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#open !== null;
  }

  /** Which file is open; empty where none is. */
  get identity(): string {
    return this.#open?.identity ?? "";
  }

  get handle(): number {
    return this.#opened().handle;
  }

  /** Up to here this process has put the open file on the disk. */
  get flushedBytes(): number {
    return this.#open?.flushedBytes ?? 0;
  }

  /** Whether this process has put the name of the open file on the disk, if one is open. */
  get isNamed(): boolean {
    return this.#open?.isNamed ?? true;
  }

  /** A flush failed: what is in the file is not believed to be on the disk until `settle`. */
  get isInDoubt(): boolean {
    return this.#doubtful !== null;
  }

  /** As `isInDoubt`, of what another process could not flush. */
  get isMarked(): boolean {
    return this.isOpen && this.#options.marks.find(this.identity) !== null;
  }

  /** A flush uses it, or one has failed, and nobody else knows of that. */
  get isPinned(): boolean {
    return this.isInDoubt || (this.#open !== null && this.#open.pins > 0);
  }

  /**
   * Opens the file, for reading alone where it cannot be written. Null when there is none.
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

  /** Makes a new file, whose name is on the disk. @throws {Error} the system's, and then there is none */
  create(path: string): void {
    const { files, flushName } = this.#options;
    const handle = files.open(path, "create");
    try {
      const { identity } = files.factsOf(handle);
      flushName(path, identity);
      this.#begin(path, handle, identity, true).isNamed = true;
    } catch (error) {
      // Left behind it would be taken for a file whose name is safe.
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

  /** Writes all of it at the end of the file, which is at a place, or nothing; as `appendAll`, which is for any handle. */
  write(bytes: Uint8Array, endBytes: number): void {
    const { files } = this.#options;
    const { handle, path } = this;
    let written = 0;
    try {
      while (written < bytes.length) {
        // A short write says nothing of its cause; the next attempt does.
        const count = files.write(handle, bytes.subarray(written));
        if (count === 0) throw nothingWritten();
        written += count;
      }
    } catch (error) {
      throw takenBack(files, handle, { bytes, written, sizeBefore: endBytes, path }, error);
    }
  }

  /**
   * Resolves when everything written before the call is on the disk. The file stays open until then: it may be closed or
   * replaced meanwhile.
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

  /** As `flushed`, at once. */
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
    // Beside the flush, and whatever becomes of it: this one is heard of in any case.
    const name = open.isNamed ? null : attempt(() => flushName(this.path, open.identity));
    try {
      await flushing;
    } catch (error) {
      // Here and not where it is caught: who waits for the next flush would get that one's success.
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

  /** Bytes from a place on may be nowhere but in the file: their writer may have died after a flush that failed. */
  suspect(from: number): void {
    this.#doubt(this.identity, from);
  }

  #doubt(identity: string, from: number): void {
    const known = this.#doubtful;
    if (known?.identity !== identity || from < known.from) this.#doubtful = { identity, from };
  }

  /**
   * Puts doubtful bytes on the disk again, also those that another process has marked. Under the file's lock, before anything
   * behind them is written or acknowledged. True when there were any.
   * @throws {ThroughlineError} STORE_IO: then they stay in doubt
   */
  settle(): boolean {
    const { path, identity } = this;
    const { files, marks } = this.#options;
    const marked = identity === "" ? null : withFileErrors(path, () => marks.find(identity));
    const all = [this.#doubtful, marked].filter((bytes) => bytes !== null);
    for (const bytes of all) flushAgain(files, path, bytes);
    withFileErrors(path, () => {
      for (const bytes of all) marks.clear(bytes.identity);
    });
    this.#doubtful = null;
    return all.length > 0;
  }

  /** Closes the file once no flush uses it: the number of its handle must not go to another file before. */
  close(): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    open.isClosed = true;
    this.#release(open);
  }

  /** Resolves when no flush of the open file is under way; never rejects. */
  async idle(): Promise<void> {
    await this.#open?.flush.idle();
  }

  /** Nobody waits for this, and what there is to say of the disk the flush has said. */
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
 * Puts bytes whose flush failed on the disk after all: a later flush would leave them out and still succeed, so they
 * are written over with themselves first. What others read meanwhile does not change. Under the file's lock.
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
 * Shares one flush among all who wrote before it began. A flush under way does not count for what was written after
 * its start; those writers get the next one, together.
 */
export class GroupFlush {
  readonly #flush: () => Promise<void>;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  /** Also between one and the next that is waited for. */
  get isRunning(): boolean {
    return this.#running !== null || this.#next !== null;
  }

  /** Resolves once everything written before the call is flushed. Rejects when that flush failed. */
  flushed(): Promise<void> {
    // Never two at once, not even in the moment between one and the next: the kernel tells one of them of a failure.
    if (this.#next !== null) return this.#next;
    if (this.#running === null) return this.#start();
    this.#next = this.#running.then(
      () => this.#startNext(),
      () => this.#startNext(),
    );
    return this.#next;
  }

  /** Resolves when no flush is under way; never rejects. */
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

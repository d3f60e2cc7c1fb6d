import { fileError, isMissing, openToRead } from "./file-work.ts";
import type { Files } from "./files.ts";
import { GroupFlush } from "./group-flush.ts";

/** A file that is open to be appended to, with what is known of its way to the disk. */
export interface OpenFile {
  readonly handle: number;
  readonly isWritable: boolean;
  readonly flush: GroupFlush;
  /** Up to here everything is on the disk. What was there when the file was opened may be nowhere else yet. */
  flushedBytes: number;
  /** Writes whose flush is not over. */
  pins: number;
  isForgotten: boolean;
  /** This process has flushed the folder that the file's name is in. */
  isNamed: boolean;
  /** After a failed flush the kernel takes for clean what it could not write: nothing more is believed of this handle. */
  isDead: boolean;
}

export interface OpenFileOptions {
  readonly isWritable: boolean;
  /** How much was written by now, as the writer knows it. */
  sizeOf(): number;
  /** Puts the file's name on the disk. Done once, with the first flush: until then a name may be anybody's, and new. */
  flushName(): void;
}

export function createOpenFile(
  files: Files,
  handle: number,
  { isWritable, sizeOf, flushName }: OpenFileOptions,
): OpenFile {
  const open: OpenFile = {
    handle,
    isWritable,
    flushedBytes: 0,
    pins: 0,
    isForgotten: false,
    isDead: false,
    isNamed: false,
    flush: new GroupFlush(async () => {
      if (open.isDead) throw new Error("an earlier flush of this file failed");
      const upTo = sizeOf();
      const flushing = files.flush(handle);
      // Beside the flush, and whatever becomes of it: this one is heard of in any case.
      const name = open.isNamed ? null : attempt(flushName);
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
    }),
  };
  return open;
}

/** As the flush of an open file, at once. @throws {Error} the system's, and then the file is dead */
export function flushOpenNow(files: Files, open: OpenFile, sizeBytes: number): void {
  if (open.isDead) throw new Error("an earlier flush of this file failed");
  try {
    files.flushNow(open.handle);
  } catch (error) {
    open.isDead = true;
    throw error;
  }
  open.flushedBytes = Math.max(open.flushedBytes, sizeBytes);
}

function attempt(work: () => void): { readonly failure?: unknown } {
  try {
    work();
    return {};
  } catch (failure) {
    return { failure };
  }
}

/** A file, for reading alone where it cannot be written; null when there is none. @throws {ThroughlineError} STORE_IO, PATH_UNSAFE */
export function openToAppend(files: Files, path: string): Pick<OpenFile, "handle" | "isWritable"> | null {
  try {
    return { handle: files.open(path, "append"), isWritable: true };
  } catch (error) {
    if (isMissing(error)) return null;
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EROFS", "EPERM"].includes(code)) throw fileError(error, path);
    return { handle: openToRead(files, path), isWritable: false };
  }
}

/** Closes a file once no flush uses it: the number of its handle must not go to another file before. */
export function closeAfterFlush(files: Files, { handle, flush }: OpenFile): void {
  if (!flush.isRunning) return files.close(handle);
  const closed = flush.idle().then(() => files.close(handle));
  // Nobody waits for this, and what there is to say of the disk the flush has said.
  closed.catch(() => undefined);
}

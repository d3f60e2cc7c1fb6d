import { mkdir, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { PayloadCodec, SessionRef } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { waitOf } from "./call-waits.ts";
import { bytesOf, callOf, flush, headOf, type JournaledCall, writeWhole } from "./journal-entry.ts";
import { PendingWork } from "./pending-work.ts";
import type { CallSession } from "./recorder.ts";

export interface JournalOptions {
  /** The folder is created with access for this user only, because the files hold conversations. */
  readonly folder: string;
  /** Limits the size of all files together, in bytes. */
  readonly mostBytes: number;
  /** Encrypts the files; null leaves them plain. */
  readonly codec: PayloadCodec | null;
}

const suffix = ".call";
const asideSuffix = ".failed";
/** Reserves room for the answer, because its size is unknown when the request arrives. */
const answerBytes = 64 * 1024;

/**
 * Keeps each call in a file from the end of its answer until the store has it. A file is a whole call, so that an
 * erasure removes one call and leaves the others alone.
 */
export class Journal {
  readonly #folder: string;
  readonly #mostBytes: number;
  readonly #codec: PayloadCodec | null;
  /** Holds the size of each file. The names sort in the order of the calls, so that a restart keeps the order. */
  readonly #files = new Map<string, number>();
  /** Holds pending writes, so that an erasure can wait for them. */
  readonly #writing = new PendingWork();
  #count = 0;
  /** Counts the files that are being written too, so that the limit also holds for concurrent writes. */
  #bytes = 0;
  #isFull = false;

  private constructor({ folder, mostBytes, codec }: JournalOptions) {
    this.#folder = folder;
    this.#mostBytes = mostBytes;
    this.#codec = codec;
  }

  /** Opens the folder with the calls that an earlier process left there. @throws Error of the system */
  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options);
    const { folder } = options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(folder)).toSorted()) {
      // A file without its final name was never acknowledged to a caller, so it can be removed.
      if (name.endsWith(".tmp")) await rm(join(folder, name), { force: true });
      if (name.endsWith(suffix)) journal.#resize(name, (await stat(join(folder, name))).size);
    }
    return journal;
  }

  /** Lists the calls in their order. */
  get names(): readonly string[] {
    return [...this.#files.keys()].toSorted();
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the result of the last `hasRoom`, because a getter cannot wait for the disk. */
  get isFull(): boolean {
    return this.#isFull;
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  /**
   * Returns whether the disk and the size limit leave room for a call. The answer's size is not known yet, so the
   * result is an estimate.
   */
  async hasRoom(requestBytes: number): Promise<boolean> {
    const bytes = requestBytes + answerBytes;
    const freeBytes = await statfs(this.#folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => 0,
    );
    this.#isFull = bytes > freeBytes || this.#bytes + bytes > this.#mostBytes;
    return !this.#isFull;
  }

  /**
   * Resolves with the name of the file when the call is in it. The file survives the end of the process.
   *
   * @param isFlushed whether it survives a power cut as well
   * @throws {ThroughlineError} STORE_FULL when the files reach their size limit; Error of the system
   */
  append(call: JournaledCall, isFlushed: boolean): Promise<string> {
    return this.#writing.track(this.#append(call, isFlushed));
  }

  async #append(call: JournaledCall, isFlushed: boolean): Promise<string> {
    const bytes = bytesOf(call, this.#codec);
    if (this.#bytes + bytes.length > this.#mostBytes)
      throw refused("STORE_FULL", `The journal holds ${this.#bytes} of ${this.#mostBytes} bytes.`, {
        folder: this.#folder,
      });
    const order = `${String(call.call.startedMs).padStart(15, "0")}-${String(this.#count++).padStart(9, "0")}`;
    const name = `${order}-${call.call.recordId}${suffix}`;
    this.#bytes += bytes.length;
    try {
      await writeWhole(this.#folder, name, bytes, isFlushed);
    } catch (error) {
      this.#bytes -= bytes.length;
      throw error;
    }
    this.#files.set(name, bytes.length);
    return name;
  }

  /** @throws {RangeError} for an incomplete file; {ThroughlineError} of the codec; Error of the system */
  async read(name: string): Promise<JournaledCall> {
    return callOf(await readFile(join(this.#folder, name)), this.#codec);
  }

  /**
   * Makes a file the only copy of its call: it survives a power cut from now on.
   *
   * @param session the session of the call, if it was found after the file was written
   */
  retain(name: string, session: CallSession | null): Promise<void> {
    return this.#writing.track(this.#retain(name, session).catch(missing));
  }

  async #retain(name: string, session: CallSession | null): Promise<void> {
    if (session !== null && (await this.#rewrite(name, session))) return;
    await flush(join(this.#folder, name));
    await flush(this.#folder);
  }

  /** Notes the session in a file. Returns false while its key is away: the file then stays as it is. */
  async #rewrite(name: string, session: CallSession): Promise<boolean> {
    let bytes: Buffer;
    try {
      bytes = bytesOf({ ...(await this.read(name)), session, key: session.key }, this.#codec);
    } catch (error) {
      if (waitOf(error) === null) throw error;
      return false;
    }
    await writeWhole(this.#folder, name, bytes, true);
    this.#resize(name, bytes.length);
    return true;
  }

  /** Removes the file of a call that is stored. @throws Error of the system, when the file stays */
  async remove(name: string): Promise<void> {
    try {
      await rm(join(this.#folder, name), { force: true });
    } finally {
      // Drop the name only after the file is removed, so that an erasure never misses an existing file.
      this.#drop(name);
    }
  }

  /** Gives the file of a call that cannot be stored another name. @returns that name */
  async setAside(name: string): Promise<string> {
    const aside = `${name}${asideSuffix}`;
    await rename(join(this.#folder, name), join(this.#folder, aside)).catch(() => {});
    this.#drop(name);
    return aside;
  }

  /**
   * Removes the calls of a purged session. After a redaction, it removes only failed files of the session; waiting
   * calls are stored without the redacted text.
   *
   * @returns how many files may still hold text of the session
   */
  async erase({ namespace, agentId, key }: SessionRef, isPurged: boolean): Promise<number> {
    let left = 0;
    // Wait for pending writes, because the folder does not list their files yet.
    await this.#writing.ended();
    const names = new Set((await readdir(this.#folder)).toSorted());
    for (const name of names) {
      const isAside = name.endsWith(asideSuffix);
      if (!isAside && !this.has(name)) continue;
      const head = await headOf(join(this.#folder, name)).catch(missing);
      if (head === undefined) {
        // The call was stored or set aside after the folder was read, so its new name is checked as well.
        if (!isAside) names.add(`${name}${asideSuffix}`);
        continue;
      }
      const isOther = head !== null && (head.scope.namespace !== namespace || head.scope.agentId !== agentId);
      const known = head?.session?.key ?? null;
      if (isOther || (known !== null && known !== key)) continue;
      // A call whose session is not known may be in any session, unless its key names this one.
      const isOwn = (known ?? head?.key) === key && (isPurged || isAside);
      if (isOwn) await this.remove(name);
      else left += 1;
    }
    return left;
  }

  /** Removes the files of calls that could not be stored and that began before a time. */
  async prune(beforeMs: number): Promise<void> {
    for (const name of await readdir(this.#folder))
      if (name.endsWith(asideSuffix) && Number.parseInt(name, 10) < beforeMs) await this.remove(name);
  }

  #resize(name: string, bytes: number): void {
    this.#drop(name);
    this.#files.set(name, bytes);
    this.#bytes += bytes;
  }

  #drop(name: string): void {
    this.#bytes -= this.#files.get(name) ?? 0;
    this.#files.delete(name);
  }
}

/** A missing file means that the call was stored meanwhile, so it is not an error. */
function missing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
  throw error;
}

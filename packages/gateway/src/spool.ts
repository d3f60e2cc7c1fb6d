import { mkdir, open, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, SessionRef } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { bytesOf, callOf, headOf, type SpooledCall } from "./spool-file.ts";

export interface SpoolOptions {
  /** The folder is created with access for this user only, because the files hold conversations. */
  readonly folder: string;
  /** Limits the size of all files together, in bytes. */
  readonly mostBytes: number;
  readonly clock: Clock;
  /** Stores a call, which may be stored already. False means that its session was removed and nothing was stored. */
  readonly record: (call: SpooledCall) => Promise<boolean>;
  readonly onRemoved: () => void;
  /** Returns whether the store is away, so that the same call may be stored later. */
  readonly isAway: (error: unknown) => boolean;
  /** Returns whether another owner has a turn in the session. Calls of other sessions can still be stored. */
  readonly isBusy: (error: unknown) => boolean;
  /** Is called for a file that cannot be stored. The file stays in the folder under another name. */
  readonly onFailed: (error: unknown, file: string) => void;
  /** Is called when the call is stored but its file cannot be removed. */
  readonly onLeft: (error: unknown, file: string) => void;
}

interface WaitingFile {
  readonly bytes: number;
  session: string | null;
  /** Is true when the call waits for another owner's turn and not for the store. */
  isBusy: boolean;
  tries: number;
}

const suffix = ".call";
const asideSuffix = ".failed";
const retryMs = 1000;
/** Reserves room for the answer, because its size is unknown when the request arrives. */
const answerBytes = 64 * 1024;
/**
 * Limits the attempts for a call that fails while the store is reachable, because it would be retried forever
 * otherwise.
 */
const mostTries = 3;

export class Spool {
  readonly #options: SpoolOptions;
  /** The names sort in the order of the calls, so that a restart keeps the order. */
  readonly #files = new Map<string, WaitingFile>();
  /** Holds attempts that may still store a call directly. The file is used only when the attempt fails. */
  readonly #running = new Map<string, Promise<unknown>>();
  /** Holds pending writes, so that an erasure can wait for them. */
  readonly #adding = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #count = 0;
  #draining: Promise<void> | null = null;
  /** Counts the files that are being written too, so that the limit also holds for concurrent writes. */
  #bytes = 0;
  #isFull = false;

  private constructor(options: SpoolOptions) {
    this.#options = options;
  }

  /** Opens the folder and starts to store the calls that an earlier process left there. @throws Error of the system */
  static async open(options: SpoolOptions): Promise<Spool> {
    const { folder } = options;
    const spool = new Spool(options);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(folder)).toSorted()) {
      // A file without its final name was never acknowledged to a caller, so it can be removed.
      if (name.endsWith(".tmp")) await rm(join(folder, name), { force: true });
      if (!name.endsWith(suffix)) continue;
      const { size } = await stat(join(folder, name));
      spool.#files.set(name, { bytes: size, session: null, isBusy: false, tries: 0 });
      spool.#bytes += size;
    }
    spool.#drain();
    return spool;
  }

  get isWaiting(): boolean {
    return this.#files.size > 0;
  }

  /** Is true when a call waits for the store itself. Calls that wait for another owner's turn do not count. */
  get isBehind(): boolean {
    return this.#files.values().some(({ isBusy }) => !isBusy);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the result of the last `hasRoom`, because a getter cannot wait for the disk. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /**
   * Returns whether the disk and the size limit leave room for a call. The answer's size is not known yet, so the
   * result is an estimate.
   */
  async hasRoom(requestBytes: number): Promise<boolean> {
    const { folder, mostBytes } = this.#options;
    const bytes = requestBytes + answerBytes;
    const freeBytes = await statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => 0,
    );
    this.#isFull = bytes > freeBytes || this.#bytes + bytes > mostBytes;
    return !this.#isFull;
  }

  /**
   * Resolves when the call is on the disk.
   *
   * @param running the running attempt to store the call, which may still succeed
   * @param hasMetBusy whether an attempt met another owner's turn
   * @throws {ThroughlineError} STORE_FULL when the files reach their size limit; Error of the system
   */
  add(call: SpooledCall, running: Promise<unknown> | null, hasMetBusy = false): Promise<void> {
    const adding: Promise<void> = this.#add(call, running, hasMetBusy).finally(() => this.#adding.delete(adding));
    this.#adding.add(adding);
    return adding;
  }

  async #add(call: SpooledCall, running: Promise<unknown> | null, hasMetBusy: boolean): Promise<void> {
    const { folder, mostBytes } = this.#options;
    const bytes = bytesOf(call);
    if (this.#bytes + bytes.length > mostBytes)
      throw refused("STORE_FULL", `The spool holds ${this.#bytes} of ${mostBytes} bytes.`, { folder });
    const order = `${String(call.call.startedMs).padStart(15, "0")}-${String(this.#count++).padStart(9, "0")}`;
    const name = `${order}-${call.call.recordId}${suffix}`;
    this.#bytes += bytes.length;
    const temporary = join(folder, `${name}.tmp`);
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(temporary, join(folder, name));
      await flushed(folder);
    } catch (error) {
      this.#bytes -= bytes.length;
      await rm(temporary, { force: true });
      throw error;
    }
    const session = sessionOf(call);
    const isBusy = hasMetBusy || (session !== null && this.#isBusy(session));
    this.#files.set(name, { bytes: bytes.length, session, isBusy, tries: 0 });
    if (running !== null) this.#running.set(name, running);
    this.#drain();
  }

  /**
   * Removes the calls of a purged session. After a redaction, it removes only failed files of the session; waiting
   * calls are stored without the redacted text.
   *
   * @returns how many files may still hold text of the session
   */
  async erase({ namespace, agentId, key }: SessionRef, isPurged: boolean): Promise<number> {
    const { folder } = this.#options;
    let left = 0;
    // Wait for pending writes, because the folder does not list their files yet.
    await Promise.allSettled(this.#adding);
    const names = new Set((await readdir(folder)).toSorted());
    for (const name of names) {
      const isAside = name.endsWith(asideSuffix);
      if (!isAside && !this.#files.has(name)) continue;
      const head = await headOf(join(folder, name)).catch(missing);
      if (head === undefined) {
        // The call was stored or set aside after the folder was read, so its new name is checked as well.
        if (!isAside) names.add(`${name}${asideSuffix}`);
        continue;
      }
      const isOther = head !== null && (head.scope.namespace !== namespace || head.scope.agentId !== agentId);
      if (isOther || (head !== null && head.session !== null && head.session.key !== key)) continue;
      const isOwn = head !== null && head.session !== null && (isPurged || isAside);
      if (isOwn) await rm(join(folder, name), { force: true });
      else left += 1;
      if (isOwn && !isAside) this.#drop(name);
    }
    return left;
  }

  /** Calls that are not stored yet stay in the folder for the next process. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#draining;
  }

  #drain(): void {
    this.#draining ??= this.#storeAll().finally(() => (this.#draining = null));
  }

  async #storeAll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#files.size > 0) {
      const isStored = await this.#storeEach();
      if (!isStored) await this.#options.clock.sleep(retryMs, signal).catch(() => undefined);
    }
  }

  /** Keeps the order of the calls, and stops when the store is away. False when a file remains. */
  async #storeEach(): Promise<boolean> {
    const { isAway, isBusy } = this.#options;
    const busy = new Set<string>();
    let isStored = true;
    for (const name of [...this.#files.keys()].toSorted()) {
      if (this.#closing.signal.aborted) return false;
      const file = this.#files.get(name);
      if (file === undefined) continue;
      // Calls of one session must be stored in order, so a busy session blocks its later calls.
      const isBehind = file.session !== null && busy.has(file.session);
      const failure = isBehind ? null : await this.#storeFile(name, file);
      if (failure === null && !isBehind) {
        await this.#remove(name);
        continue;
      }
      isStored = false;
      const error = failure?.error;
      file.isBusy = isBehind || isBusy(error);
      if (file.isBusy) {
        if (file.session !== null) busy.add(file.session);
      } else if (isAway(error) || this.#closing.signal.aborted) return false;
      else if (++file.tries >= mostTries) await this.#setAside(name, error);
    }
    return isStored;
  }

  async #remove(name: string): Promise<void> {
    try {
      await rm(join(this.#options.folder, name), { force: true });
    } catch (error) {
      // The next process detects that the call is already stored, so a leftover file does no harm.
      this.#options.onLeft(error, name);
    }
    // Drop the entry only after the file is removed, so that an erasure never misses an existing file.
    this.#drop(name);
  }

  #isBusy(session: string): boolean {
    return this.#files.values().some((file) => file.isBusy && file.session === session);
  }

  async #storeFile(name: string, file: WaitingFile): Promise<{ readonly error: unknown } | null> {
    const { signal } = this.#closing;
    try {
      // The attempt may wait long for another owner's turn, so a close ends the wait. The next process stores the file.
      const running = this.#running.get(name);
      if (running !== undefined) await Promise.race([running, once(signal)]);
      if (signal.aborted) return { error: signal.reason };
      if (this.#running.delete(name)) return null;
    } catch {
      // The direct attempt failed, so the file is stored instead.
      this.#running.delete(name);
    }
    // An erasure removed the file meanwhile, so there is nothing to store.
    if (!this.#files.has(name)) return null;
    try {
      const call = callOf(await readFile(join(this.#options.folder, name)));
      file.session = sessionOf(call);
      const isKept = await this.#options.record(call);
      if (!isKept) this.#options.onRemoved();
      return null;
    } catch (error) {
      return { error };
    }
  }

  #drop(name: string): void {
    this.#bytes -= this.#files.get(name)?.bytes ?? 0;
    this.#files.delete(name);
  }

  async #setAside(name: string, error: unknown): Promise<void> {
    const aside = `${name}${asideSuffix}`;
    await rename(join(this.#options.folder, name), join(this.#options.folder, aside)).catch(() => {});
    this.#drop(name);
    this.#options.onFailed(error, aside);
  }
}

function sessionOf({ scope, session }: SpooledCall): string | null {
  return session === null ? null : JSON.stringify([scope.namespace, session.key]);
}

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** A missing file means that the call was stored meanwhile, so it is not an error. */
function missing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
  throw error;
}

/** A rename survives a power failure only after the folder is synced. */
async function flushed(folder: string): Promise<void> {
  const opened = await open(folder, "r");
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

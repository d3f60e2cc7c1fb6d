import { mkdir, open, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, SessionRef } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { bytesOf, callOf, headOf, type SpooledCall } from "./spool-file.ts";

export interface SpoolOptions {
  /** Made when there is none, for this user alone. */
  readonly folder: string;
  /** All files together may take this. */
  readonly mostBytes: number;
  readonly clock: Clock;
  /** Stores a call, also one that is stored already. False: its session was removed, and nothing is stored of it. */
  readonly record: (call: SpooledCall) => Promise<boolean>;
  /** Called for a call whose session was removed while it waited. */
  readonly onRemoved: () => void;
  /** Whether an error says that the store is away, so that the same call may be stored later. */
  readonly isAway: (error: unknown) => boolean;
  /** Whether it says that somebody else has a turn in the session: calls of other sessions can be stored. */
  readonly isBusy: (error: unknown) => boolean;
  /** Called for a file that cannot be stored, which stays beside the others under another name. */
  readonly onFailed: (error: unknown, file: string) => void;
  /** Called for the file of a call that is stored, which cannot be removed. */
  readonly onLeft: (error: unknown, file: string) => void;
}

/** A call that waits. */
interface WaitingFile {
  readonly bytes: number;
  /** Its session, as far as it is known. */
  session: string | null;
  /** Whether somebody else's turn is what it waits for. */
  isBusy: boolean;
  tries: number;
}

const suffix = ".call";
const asideSuffix = ".failed";
const retryMs = 1000;
/** The room that a call needs beside its request. */
const answerBytes = 64 * 1024;
/** How often a call that fails for another reason than an absent store is tried. */
const mostTries = 3;

/** Calls in files of their own while the store is away, stored in their order once it is back. */
export class Spool {
  readonly #options: SpoolOptions;
  /** By their names, whose order is that of their calls. */
  readonly #files = new Map<string, WaitingFile>();
  /** Calls that the store may still take by itself: the file is read after that. */
  readonly #running = new Map<string, Promise<unknown>>();
  /** Calls whose files are being written. */
  readonly #adding = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #count = 0;
  #draining: Promise<void> | null = null;
  /** Of the files, and of those that are being written. */
  #bytes = 0;
  #isFull = false;

  private constructor(options: SpoolOptions) {
    this.#options = options;
  }

  /** Opens the folder, and begins to store what an earlier process left there. @throws Error of the system */
  static async open(options: SpoolOptions): Promise<Spool> {
    const { folder } = options;
    const spool = new Spool(options);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(folder)).toSorted()) {
      // A file that was not renamed was never acknowledged.
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

  /** Whether a call waits for the store, and not for a turn of somebody else's alone. */
  get isBehind(): boolean {
    return this.#files.values().some(({ isBusy }) => !isBusy);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether there was no room for a call when it was last asked. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Whether a call can wait here, as far as the disk and the bound of the files say before its answer is known. */
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
   * Resolves once the call is on the disk.
   *
   * @param running the attempt to store it that is under way; it may still succeed
   * @param hasMetBusy an attempt to store it has met a turn of somebody else's
   * @throws {ThroughlineError} STORE_FULL where the files take as much as they may; Error of the system
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
   * Removes what must not be stored any more, or cannot be: calls of a session that is purged, and, where something of it is
   * redacted, files that cannot be stored. A call that waits is stored without what is redacted.
   *
   * @returns how many files may still hold a text of the session
   */
  async erase({ namespace, agentId, key }: SessionRef, isPurged: boolean): Promise<number> {
    const { folder } = this.#options;
    let left = 0;
    // A file that is being written would be missed.
    await Promise.allSettled(this.#adding);
    const names = new Set((await readdir(folder)).toSorted());
    for (const name of names) {
      const isAside = name.endsWith(asideSuffix);
      if (!isAside && !this.#files.has(name)) continue;
      const head = await headOf(join(folder, name)).catch(missing);
      if (head === undefined) {
        // It was stored, or put aside since the folder was read.
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

  /** What is not stored yet stays for the next process. */
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

  /** Tries each file once, in their order, as far as the store is there. False where one is left. */
  async #storeEach(): Promise<boolean> {
    const { isAway, isBusy } = this.#options;
    const busy = new Set<string>();
    let isStored = true;
    for (const name of [...this.#files.keys()].toSorted()) {
      if (this.#closing.signal.aborted) return false;
      const file = this.#files.get(name);
      if (file === undefined) continue;
      // What is said in one session is stored in its order.
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
      // The next process finds that its call is stored.
      this.#options.onLeft(error, name);
    }
    // Not before: a file that is still there must not be missed by an erasure.
    this.#drop(name);
  }

  #isBusy(session: string): boolean {
    return this.#files.values().some((file) => file.isBusy && file.session === session);
  }

  /** Null once it is stored. */
  async #storeFile(name: string, file: WaitingFile): Promise<{ readonly error: unknown } | null> {
    const { signal } = this.#closing;
    try {
      // That attempt may wait for a turn of somebody else; the next process stores the file.
      const running = this.#running.get(name);
      if (running !== undefined) await Promise.race([running, once(signal)]);
      if (signal.aborted) return { error: signal.reason };
      if (this.#running.delete(name)) return null;
    } catch {
      // The file is stored in place of that attempt.
      this.#running.delete(name);
    }
    // It was erased meanwhile.
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

/** A file that was stored meanwhile. */
function missing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
  throw error;
}

/** A file that was renamed has its name after a power cut only where its folder is flushed. */
async function flushed(folder: string): Promise<void> {
  const opened = await open(folder, "r");
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

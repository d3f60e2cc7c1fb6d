import { mkdir, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, SessionRef } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { bytesOf, callOf, flush, headOf, type JournaledCall, writeWhole } from "./journal-entry.ts";
import { within } from "./within.ts";

export interface JournalOptions {
  /** The folder is created with access for this user only, because the files hold conversations. */
  readonly folder: string;
  /** Limits the size of all files together, in bytes. */
  readonly mostBytes: number;
  /** Whether a call waits in its file until the store takes it. If not, it is dropped when the first attempt fails. */
  readonly keepsFailed: boolean;
  readonly clock: Clock;
  /** Stores a call, which may be stored already. False means that its session was removed and nothing was stored. */
  readonly record: (call: JournaledCall) => Promise<boolean>;
  readonly onRemoved: () => void;
  /** Is called for a call that is dropped, because the journal does not keep calls that fail. */
  readonly onDropped: (error: unknown) => void;
  /** Returns whether the store is away, so that the same call may be stored later. */
  readonly isAway: (error: unknown) => boolean;
  /** Returns whether another owner has a turn in the session. Calls of other sessions can still be stored. */
  readonly isBusy: (error: unknown) => boolean;
  /** Is called for a file that cannot be stored. The file stays in the folder under another name. */
  readonly onFailed: (error: unknown, file: string) => void;
  /** Is called when the call is stored but its file cannot be removed. */
  readonly onLeft: (error: unknown, file: string) => void;
}

export interface FirstAttempt {
  /** Settles when the attempt has ended. */
  readonly stored: Promise<unknown>;
}

interface Entry {
  readonly bytes: number;
  readonly sinceMs: number;
  session: string | null;
  /**
   * `storing`: the first attempt runs. `away`: the call waits for the store. `busy`: it waits for another owner's turn.
   * `failed`: the store is there and did not take it.
   */
  state: "storing" | "away" | "busy" | "failed";
  tries: number;
}

const suffix = ".call";
const asideSuffix = ".failed";
const retryMs = 1000;
/** A first attempt that takes longer counts as waiting for the store. */
const lateMs = 2000;
/** Limits how long a close waits for the attempts that run. */
const mostCloseMs = 6000;
/** Reserves room for the answer, because its size is unknown when the request arrives. */
const answerBytes = 64 * 1024;
/**
 * Limits the attempts for a call that fails while the store is reachable, because it would be retried forever
 * otherwise.
 */
const mostTries = 3;

/**
 * Keeps each call in a file from the end of its answer until the store has it. A file is a whole call, so that an
 * erasure removes one call and leaves the others alone.
 */
export class Journal {
  readonly #options: JournalOptions;
  /** The names sort in the order of the calls, so that a restart keeps the order. */
  readonly #entries = new Map<string, Entry>();
  /** Holds first attempts. Each promise resolves when the attempt has ended, and its file is removed or waits. */
  readonly #running = new Map<string, Promise<void>>();
  /** Holds pending writes, so that an erasure can wait for them. */
  readonly #adding = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #closed = once(this.#closing.signal);
  #count = 0;
  #draining: Promise<void> | null = null;
  /** Counts the files that are being written too, so that the limit also holds for concurrent writes. */
  #bytes = 0;
  #isFull = false;

  private constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Opens the folder and starts to store the calls that an earlier process left there. @throws Error of the system */
  static async open(options: JournalOptions): Promise<Journal> {
    const { folder, clock } = options;
    const journal = new Journal(options);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(folder)).toSorted()) {
      // A file without its final name was never acknowledged to a caller, so it can be removed.
      if (name.endsWith(".tmp")) await rm(join(folder, name), { force: true });
      if (!name.endsWith(suffix)) continue;
      const { size } = await stat(join(folder, name));
      const entry: Entry = { bytes: size, sinceMs: clock.nowMs(), session: null, state: "away", tries: 0 };
      journal.#entries.set(name, entry);
      journal.#bytes += size;
    }
    journal.#drain();
    return journal;
  }

  /** Is true when a call waits for the store or for another owner's turn. */
  get isWaiting(): boolean {
    return this.#entries.values().some((entry) => entry.state !== "storing" || this.#isLate(entry));
  }

  /** Is true when a call waits for the store itself. Calls that wait for another owner's turn do not count. */
  get isBehind(): boolean {
    return this.#entries.values().some((entry) => entry.state === "away" || this.#isLate(entry));
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts the calls that the store does not have yet. */
  get calls(): number {
    return this.#entries.size;
  }

  /** Returns how long the oldest call is in the journal, in milliseconds; 0 without one. */
  get oldestMs(): number {
    let sinceMs = Infinity;
    for (const entry of this.#entries.values()) sinceMs = Math.min(sinceMs, entry.sinceMs);
    return sinceMs === Infinity ? 0 : Math.max(0, this.#options.clock.nowMs() - sinceMs);
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
   * Resolves when the call is in its file, which survives the end of the process. A call that waits for the store from
   * the beginning also survives a power cut.
   *
   * @param store makes the first attempt to store the call; null when earlier calls wait for the store
   * @returns the end of that attempt
   * @throws {ThroughlineError} STORE_FULL when the files reach their size limit; Error of the system
   */
  append(call: JournaledCall, store: (() => Promise<unknown>) | null): Promise<FirstAttempt> {
    const adding: Promise<FirstAttempt> = this.#append(call, store).finally(() => this.#adding.delete(adding));
    this.#adding.add(adding);
    return adding;
  }

  async #append(call: JournaledCall, store: (() => Promise<unknown>) | null): Promise<FirstAttempt> {
    const { folder, mostBytes, clock } = this.#options;
    const bytes = bytesOf(call);
    if (this.#bytes + bytes.length > mostBytes)
      throw refused("STORE_FULL", `The journal holds ${this.#bytes} of ${mostBytes} bytes.`, { folder });
    const order = `${String(call.call.startedMs).padStart(15, "0")}-${String(this.#count++).padStart(9, "0")}`;
    const name = `${order}-${call.call.recordId}${suffix}`;
    this.#bytes += bytes.length;
    try {
      await writeWhole(folder, name, bytes, store === null);
    } catch (error) {
      this.#bytes -= bytes.length;
      throw error;
    }
    const session = sessionOf(call);
    const isBusy = store === null && session !== null && this.#isBusy(session);
    const state = store !== null ? "storing" : isBusy ? "busy" : "away";
    this.#entries.set(name, { bytes: bytes.length, sinceMs: clock.nowMs(), session, state, tries: 0 });
    if (store === null) {
      this.#drain();
      return { stored: Promise.resolve() };
    }
    const stored = afterWrites().then(store);
    this.#running.set(
      name,
      this.#follow(name, stored).finally(() => this.#running.delete(name)),
    );
    return { stored };
  }

  /** Removes the file of a call when its first attempt has stored it. */
  async #follow(name: string, storing: Promise<unknown>): Promise<void> {
    const { folder, keepsFailed, onDropped } = this.#options;
    try {
      await storing;
      await this.#remove(name);
    } catch (error) {
      const entry = this.#entries.get(name);
      if (entry === undefined) return;
      if (!keepsFailed) {
        await this.#remove(name);
        return onDropped(error);
      }
      entry.state = this.#stateAfter(error);
      // From now on the file is the only copy, so it has to survive a power cut as well.
      await flush(join(folder, name)).catch(missing);
      await flush(folder);
      this.#drain();
    }
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
      if (!isAside && !this.#entries.has(name)) continue;
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

  /** Removes the files of calls that could not be stored and that began before a time. */
  async prune(beforeMs: number): Promise<void> {
    const { folder } = this.#options;
    for (const name of await readdir(folder))
      if (name.endsWith(asideSuffix) && Number.parseInt(name, 10) < beforeMs)
        await rm(join(folder, name), { force: true });
  }

  /** Waits for the attempts that run. Calls that are not stored yet stay in the folder for the next process. */
  async close(): Promise<void> {
    const { keepsFailed, clock } = this.#options;
    // A call that is dropped has to be counted, so its attempt is awaited.
    await (keepsFailed ? within(clock, this.#settled(), mostCloseMs) : this.#settled());
    this.#closing.abort();
    await this.#draining;
  }

  async #settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  #isLate({ state, sinceMs }: Entry): boolean {
    return state === "storing" && this.#options.clock.nowMs() - sinceMs > lateMs;
  }

  #drain(): void {
    this.#draining ??= this.#storeAll().finally(() => (this.#draining = null));
  }

  async #storeAll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#entries.size > 0) {
      const isStored = await this.#storeEach();
      if (!isStored) await this.#options.clock.sleep(retryMs, signal).catch(() => undefined);
    }
  }

  /** Keeps the order of the calls, and stops when the store is away. False when a file remains. */
  async #storeEach(): Promise<boolean> {
    const { signal } = this.#closing;
    const busy = new Set<string>();
    let isStored = true;
    for (const name of [...this.#entries.keys()].toSorted()) {
      // A first attempt may wait long for another owner's turn, so a close ends the wait.
      await Promise.race([this.#running.get(name) ?? null, this.#closed]);
      if (signal.aborted) return false;
      const entry = this.#entries.get(name);
      if (entry === undefined) continue;
      // Calls of one session must be stored in order, so a busy session blocks its later calls.
      const isBlocked = entry.session !== null && busy.has(entry.session);
      const failure = isBlocked ? null : await this.#storeFile(name, entry);
      if (failure === null && !isBlocked) {
        await this.#remove(name);
        continue;
      }
      isStored = false;
      const error = failure?.error;
      entry.state = isBlocked ? "busy" : this.#stateAfter(error);
      if (entry.state === "busy") {
        if (entry.session !== null) busy.add(entry.session);
      } else if (entry.state === "away" || signal.aborted) return false;
      else if (++entry.tries >= mostTries) await this.#setAside(name, error);
    }
    return isStored;
  }

  async #storeFile(name: string, entry: Entry): Promise<{ readonly error: unknown } | null> {
    try {
      const call = callOf(await readFile(join(this.#options.folder, name)));
      entry.session = sessionOf(call);
      const isKept = await this.#options.record(call);
      if (!isKept) this.#options.onRemoved();
      return null;
    } catch (error) {
      // An erasure removed the file meanwhile, so there is nothing to store.
      return this.#entries.has(name) ? { error } : null;
    }
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

  #stateAfter(error: unknown): Entry["state"] {
    const { isAway, isBusy } = this.#options;
    if (isBusy(error)) return "busy";
    return isAway(error) ? "away" : "failed";
  }

  #isBusy(session: string): boolean {
    return this.#entries.values().some((entry) => entry.state === "busy" && entry.session === session);
  }

  #drop(name: string): void {
    this.#bytes -= this.#entries.get(name)?.bytes ?? 0;
    this.#entries.delete(name);
  }

  async #setAside(name: string, error: unknown): Promise<void> {
    const aside = `${name}${asideSuffix}`;
    await rename(join(this.#options.folder, name), join(this.#options.folder, aside)).catch(() => {});
    this.#drop(name);
    this.#options.onFailed(error, aside);
  }
}

/** Waits until the end of the answer is written and other streams have had a turn, because storing takes a while. */
async function afterWrites(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

function sessionOf({ scope, session }: JournaledCall): string | null {
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

import { ThroughlineError, type RandomSource } from "@throughline/core";
import { monotonicMs, quote, systemClock } from "@throughline/core/internal";
import { folderOf, isMissing, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { describeLockHolder, type LockHolder } from "./lock-holder.ts";
import { pauseShortly } from "./slices.ts";
import type { LockFile, LockPort } from "./lock-file.ts";

export interface SessionLocks {
  readonly isKernels: boolean;
  readonly timeoutMs: number;
  /**
   * Runs `work` while holding all the locks. `work` is synchronous, so no lock is held during a wait. While it waits it
   * holds all or none, so the order of the paths does not matter.
   * @throws {ThroughlineError} STORE_LOCKED at the deadline, ABORTED, STORE_READ_ONLY, PATH_UNSAFE
   */
  hold<T>(paths: readonly string[], work: () => T, how?: LockWait): Promise<T>;
  close(): void;
}

interface LockWait {
  readonly signal?: AbortSignal | undefined;
  /** States since when the caller waits, by `monotonicMs`, so that repeated attempts share one timeout. @default now */
  readonly sinceMs?: number | undefined;
  /** Runs during the wait, without the locks, to shorten the work under them. */
  readonly meanwhile?: (() => void) | undefined;
}

export interface SessionLocksOptions {
  readonly files: Files;
  readonly port: LockPort;
  readonly random: RandomSource;
  readonly timeoutMs: number;
  /**
   * Recreates the folder of a lock file, because another process may delete it during use.
   * @default the operation fails
   */
  readonly remakeFolder?: (folder: string) => void;
}

interface Shared {
  /** Is null while the file is closed; it is opened on use. */
  file: LockFile | null;
  readonly path: string;
  readonly port: LockPort;
  users: number;
  /** Is true while a caller of this process has the lock. */
  isTaken: boolean;
  /** Is true while the kernel's lock is held, which is only during the work. */
  isHeld: boolean;
  readonly line: (() => void)[];
  /** States since when every attempt of this process has failed; null after a success. */
  busySinceMs: number | null;
}

// All store handles of a process share one connection per lock file, so that callers queue instead of polling.
const sharedByPort = new WeakMap<LockPort, Map<string, Shared>>();

function sharedAt(port: LockPort, path: string): Shared {
  const sharedByPath = sharedByPort.get(port) ?? new Map<string, Shared>();
  sharedByPort.set(port, sharedByPath);
  const known = sharedByPath.get(path);
  if (known !== undefined) return known;
  const file = { file: null, isTaken: false, isHeld: false };
  const shared: Shared = { ...file, path, port, users: 0, line: [], busySinceMs: null };
  sharedByPath.set(path, shared);
  return shared;
}

/**
 * Limits the open files. Each agent has seventeen locks, and a process may have hundreds of agents. The most recently
 * used stay open.
 */
const maxOpen = 256;
/** Holds the open locks of all handles of the process. Once there are many, the least recently used comes first. */
const openOnes = new Set<Shared>();

function opened(shared: Shared, options: SessionLocksOptions): LockFile {
  if (openOnes.size > maxOpen / 2) openOnes.delete(shared);
  const file = (shared.file ??= openFile(shared, options));
  openOnes.add(shared);
  // A lock that a caller has may be held in the kernel too, so it is not closed.
  const oldest = openOnes.size > maxOpen ? openOnes.values().find(({ isTaken }) => !isTaken) : undefined;
  if (oldest !== undefined) letGo(oldest);
  return file;
}

function openFile({ path, port }: Shared, options: SessionLocksOptions): LockFile {
  const { files } = options;
  return inFolder(options, path, () => {
    // This rejects links in the path, which SQLite would follow.
    withFileErrors(path, () => files.realPath(folderOf(path)));
    return port.open(files, path);
  });
}

/**
 * Closes idle lock files when the process has no descriptor left. A waiting caller's file may be closed, because it
 * does not hold the kernel's lock.
 */
export function letGoOfIdleLocks(): void {
  for (const shared of openOnes) if (!shared.isHeld) letGo(shared);
}

function letGo(shared: Shared): void {
  openOnes.delete(shared);
  shared.file?.close();
  shared.file = null;
}

/**
 * Creates the locks. A queue per lock orders the callers of this process, and the port's lock excludes other processes.
 */
export function createSessionLocks(options: SessionLocksOptions): SessionLocks {
  const { files } = options;
  const mine = new Map<string, Shared>();
  const reachable = (path: string): Shared => {
    const known = mine.get(path);
    if (known !== undefined) return known;
    const folder = folderOf(path);
    const realFolder = inFolder(options, path, () => withFileErrors(path, () => files.realPath(folder)));
    const realPath = realFolder + path.slice(folder.length);
    const shared = sharedAt(options.port, realPath);
    shared.users++;
    mine.set(path, shared);
    return shared;
  };
  return {
    isKernels: options.port.isKernels,
    timeoutMs: options.timeoutMs,
    async hold(paths, work, { signal, sinceMs, meanwhile } = {}) {
      // Callers that want the same locks take them in the same order, because each waits for one while it has others.
      const shared = [...new Set(paths)].toSorted().map(reachable);
      const taken: Shared[] = [];
      // The wait uses the monotonic clock. The store's clock may be simulated, and the system's clock may be set, but
      // other processes wait in real time.
      const wait = { ...options, signal, meanwhile, startMs: sinceMs ?? monotonicMs() };
      try {
        for (const one of shared) {
          if (one.isTaken) await new Promise<void>((resolve) => void one.line.push(resolve));
          one.isTaken = true;
          taken.push(one);
        }
        // The first attempt mostly succeeds, without a wait.
        for (let naps = 0, busy = lockAll(shared, wait); busy !== null; busy = lockAll(shared, wait))
          await rest(busy, naps++, wait);
        try {
          return work();
        } finally {
          unlockAll([...shared]);
        }
      } finally {
        for (const one of taken) passOn(one);
      }
    },
    close() {
      for (const shared of mine.values()) {
        if (--shared.users > 0) continue;
        sharedByPort.get(shared.port)?.delete(shared.path);
        letGo(shared);
      }
      mine.clear();
    },
  };
}

/**
 * Runs work on a lock. If the folder of a store's own lock is gone, it is created first, so that a deleted folder does
 * not block the store.
 */
function inFolder<T>({ remakeFolder }: SessionLocksOptions, path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const isGone = ThroughlineError.isInstance(error) && isMissing(error.cause);
    if (!isGone || remakeFolder === undefined) throw error;
    remakeFolder(folderOf(path));
    return work();
  }
}

/** Passes the lock to the next caller, which then need not test whether it is free. */
function passOn(shared: Shared): void {
  const next = shared.line.shift();
  if (next === undefined) shared.isTaken = false;
  else next();
}

/** Limits attempts without a sleep, because each one takes the processor that the holder may be waiting for. */
const maxNaps = 2;

interface Wait extends SessionLocksOptions {
  readonly signal: AbortSignal | undefined;
  readonly meanwhile: (() => void) | undefined;
  readonly startMs: number;
}

/** Takes all the locks if they are free. Otherwise it takes none, and returns the lock that is not free. */
function lockAll(shared: readonly Shared[], wait: Wait): Shared | null {
  if (wait.signal?.aborted === true) throw lockAborted(wait.signal);
  const held: Shared[] = [];
  let isDone = false;
  try {
    for (const one of shared) {
      if (!tryLock(one, wait)) return one;
      held.push(one);
      one.isHeld = true;
      one.busySinceMs = null;
    }
    isDone = true;
    return null;
  } finally {
    if (!isDone) unlockAll(held);
  }
}

function unlockAll(held: Shared[]): void {
  const last = held.pop();
  if (last === undefined) return;
  try {
    last.isHeld = false;
    last.file?.unlock();
  } finally {
    unlockAll(held);
  }
}

/**
 * Pauses before the next attempt; `naps` counts the earlier ones.
 * @throws {ThroughlineError} STORE_LOCKED at the deadline
 */
async function rest(busy: Shared, naps: number, wait: Wait): Promise<void> {
  const nowMs = monotonicMs();
  busy.busySinceMs ??= nowMs;
  // The wait is not counted from its start, because in a long queue the lock may have changed hands recently. It is not
  // counted from this attempt either. Behind a stuck holder, each queued caller must fail at its own deadline.
  const waitedMs = nowMs - Math.max(wait.startMs, busy.busySinceMs);
  if (waitedMs > wait.timeoutMs) throw lockedError(busy.path, waitedMs, describeLockHolder(wait.files, busy.path));
  // Most holders finish within one write, so a short pause is cheaper than a sleep.
  if (naps < maxNaps) pauseShortly();
  else await systemClock.sleep(1 + wait.random.uint32() / 2 ** 32);
  wait.meanwhile?.();
}

/**
 * Takes the lock and checks that its file was not replaced, because a lock on the old file excludes no process. The
 * check costs a hundredth of a flush; two owners would lose acknowledged records.
 */
function tryLock(shared: Shared, options: SessionLocksOptions): boolean {
  const { files } = options;
  for (;;) {
    const file = opened(shared, options);
    if (!file.tryLock()) return false;
    if (file.identity === null || files.facts(file.path)?.identity === file.identity) return true;
    file.unlock();
    // The new file is opened before the old one is closed. If that fails, the old one stays usable in case its file
    // returns.
    shared.file = openFile(shared, options);
    file.close();
  }
}

export function lockAborted(signal: AbortSignal): ThroughlineError {
  return new ThroughlineError("ABORTED", "The wait for a lock was aborted.", {
    outcome: "not-applied",
    cause: signal.reason,
  });
}

export function lockedError(
  path: string,
  waitedMs: number,
  holder: LockHolder | null,
  remedy?: string,
): ThroughlineError {
  const age = holder?.ageMs == null ? "" : `, begun ${Math.round(holder.ageMs / 1000)} s ago`;
  const who = holder === null ? "another process" : `process ${holder.pid} (${holder.state}${age})`;
  return new ThroughlineError("STORE_LOCKED", `${quote(path)} was held by ${who} for ${Math.round(waitedMs)} ms.`, {
    outcome: "not-applied",
    details: { path, waitedMs: Math.round(waitedMs), ...holder },
    ...(remedy === undefined ? {} : { remedy }),
  });
}

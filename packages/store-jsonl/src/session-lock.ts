import { ThroughlineError, type RandomSource } from "@throughline/core";
import { monotonicMs, quote, systemClock } from "@throughline/core/internal";
import { folderOf, isMissing, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { describeLockHolder, describeProcess } from "./lock-holder.ts";
import { pauseShortly } from "./slices.ts";
import { openclawLocks, ownerOf, unknownOwnerGraceMs } from "./openclaw-lock.ts";
import type { LockFile, LockPort } from "./lock-file.ts";

/** Exclusion between everything that writes to an agent's folder, in this process and in others. */
export interface SessionLocks {
  /** Whether they are the kernel's. */
  readonly isKernels: boolean;
  /** How long a lock is waited for. */
  readonly timeoutMs: number;
  /**
   * Runs `work` while holding all the locks. `work` is synchronous: a lock is never held while anything is waited for.
   * All or none are held while it waits, so that the order of the paths does not matter.
   * @throws {ThroughlineError} STORE_LOCKED at the deadline, ABORTED, STORE_READ_ONLY, PATH_UNSAFE
   */
  hold<T>(paths: readonly string[], work: () => T, how?: LockWait): Promise<T>;
  close(): void;
}

interface LockWait {
  readonly signal?: AbortSignal | undefined;
  /** Since when whoever waits for this has waited, by `monotonicMs`. @default now */
  readonly sinceMs?: number | undefined;
  /** Work that needs no lock and makes what is done under it shorter: done while somebody else holds one. */
  readonly meanwhile?: (() => void) | undefined;
}

export interface SessionLocksOptions {
  readonly files: Files;
  readonly port: LockPort;
  readonly random: RandomSource;
  readonly timeoutMs: number;
  /** Makes the folder of a lock file again, which somebody removed. @default it is an error */
  readonly remakeFolder?: (folder: string) => void;
}

function isOpenclaws(path: string): boolean {
  return path.endsWith(".lock");
}

/** The kernel's locks first: who holds them is the only one of ours to look at the others. */
function byKindAndName(one: string, other: string): number {
  return Number(isOpenclaws(one)) - Number(isOpenclaws(other)) || (one < other ? -1 : 1);
}

interface Shared {
  /** Null: let go of until it is wanted. */
  file: LockFile | null;
  readonly path: string;
  readonly port: LockPort;
  users: number;
  /** By somebody of this process. */
  isTaken: boolean;
  /** The kernel's lock is held: only while work is run under it. */
  isHeld: boolean;
  /** Those of this process who wait behind them, in the order they came. */
  readonly line: (() => void)[];
  /** Since when nobody in this process could take it, however many tried; null after somebody did. */
  busySinceMs: number | null;
}

// One connection a lock file and process, whichever store handles use it: they wait in line instead of spinning.
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

/** Each agent has seventeen, and a process may have hundreds of agents: those used last stay open. */
const maxOpen = 256;
/** Those that are open, of all handles of the process; once there are many, the one used longest ago comes first. */
const openOnes = new Set<Shared>();

/** The file of a lock that is taken in this process, opened where it is not. */
function opened(shared: Shared, options: SessionLocksOptions): LockFile {
  if (openOnes.size > maxOpen / 2) openOnes.delete(shared);
  const file = (shared.file ??= openFile(shared, options));
  openOnes.add(shared);
  // One that somebody has taken may be held in the kernel too.
  const oldest = openOnes.size > maxOpen ? openOnes.values().find(({ isTaken }) => !isTaken) : undefined;
  if (oldest !== undefined) letGo(oldest);
  return file;
}

function openFile({ path, port }: Shared, options: SessionLocksOptions): LockFile {
  const { files } = options;
  return inFolder(options, path, () => {
    // A link on the way there is refused here: SQLite would follow it.
    withFileErrors(path, () => files.realPath(folderOf(path)));
    return port.open(files, path);
  });
}

/** The process has no descriptor left. Of those who wait in line nobody holds the kernel's lock. */
export function letGoOfIdleLocks(): void {
  for (const shared of openOnes) if (!shared.isHeld) letGo(shared);
}

function letGo(shared: Shared): void {
  openOnes.delete(shared);
  shared.file?.close();
  shared.file = null;
}

/** A line in front of each lock, and the locks themselves through the port. */
export function createSessionLocks(options: SessionLocksOptions): SessionLocks {
  const { files } = options;
  const mine = new Map<string, Shared>();
  const reachable = (path: string): Shared => {
    const known = mine.get(path);
    if (known !== undefined) return known;
    const folder = folderOf(path);
    const realFolder = inFolder(options, path, () => withFileErrors(path, () => files.realPath(folder)));
    const realPath = realFolder + path.slice(folder.length);
    const port = isOpenclaws(path) ? openclawLocks : options.port;
    const shared = sharedAt(port, realPath);
    shared.users++;
    mine.set(path, shared);
    return shared;
  };
  return {
    isKernels: options.port.isKernels,
    timeoutMs: options.timeoutMs,
    async hold(paths, work, { signal, sinceMs, meanwhile } = {}) {
      const shared = [...new Set(paths)].toSorted(byKindAndName).map(reachable);
      const taken: Shared[] = [];
      // Real time, whatever clock the store was given: the others who hold locks live in it. And none that somebody sets.
      const wait = { ...options, signal, meanwhile, startMs: sinceMs ?? monotonicMs() };
      try {
        for (const one of shared) {
          if (one.isTaken) await new Promise<void>((resolve) => void one.line.push(resolve));
          one.isTaken = true;
          taken.push(one);
        }
        // Mostly nobody holds them, and nothing need be waited for.
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

/** Work on a lock. When its folder is gone, and one of ours, that is made again first. */
function inFolder<T>({ remakeFolder }: SessionLocksOptions, path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const isGone = ThroughlineError.isInstance(error) && isMissing(error.cause);
    if (!isGone || isOpenclaws(path) || remakeFolder === undefined) throw error;
    remakeFolder(folderOf(path));
    return work();
  }
}

/** To the next in line, who need not look whether it is free. */
function passOn(shared: Shared): void {
  const next = shared.line.shift();
  if (next === undefined) shared.isTaken = false;
  else next();
}

/** So often it is tried at once: each try costs the processor that the holder may be waiting for. */
const maxNaps = 2;

interface Wait extends SessionLocksOptions {
  readonly signal: AbortSignal | undefined;
  readonly meanwhile: (() => void) | undefined;
  readonly startMs: number;
}

/** Takes all the locks if they are free now. Else none, and the one that is not free is given. */
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

/** The last first: a lock file of OpenClaw's kind goes while the kernel's lock keeps others of ours from judging it. */
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

/** Pauses before the next try. `naps`: how many there were. @throws {ThroughlineError} STORE_LOCKED at the deadline */
async function rest(busy: Shared, naps: number, wait: Wait): Promise<void> {
  const nowMs = monotonicMs();
  busy.busySinceMs ??= nowMs;
  // Not the whole wait: in a long line of this process the lock may have changed hands until a moment ago. And not
  // from here on: behind a holder that is stuck each of a line is refused at its own deadline, not one after another.
  const waitedMs = nowMs - Math.max(wait.startMs, busy.busySinceMs);
  if (waitedMs > wait.timeoutMs) throw lockedError(busy.path, waitedMs, wait.files);
  // Most holders are done within a write: a short pause is cheaper than giving the processor away.
  if (naps < maxNaps) pauseShortly();
  else await systemClock.sleep(1 + wait.random.uint32() / 2 ** 32);
  wait.meanwhile?.();
}

/**
 * Someone may have replaced the file under its name; a lock on the old one would exclude nobody. One look at each lock:
 * two owners would lose acknowledged records, and it costs a hundredth of a flush.
 */
function tryLock(shared: Shared, options: SessionLocksOptions): boolean {
  const { files } = options;
  for (;;) {
    const file = opened(shared, options);
    if (!file.tryLock()) return false;
    if (file.identity === null || files.facts(file.path)?.identity === file.identity) return true;
    file.unlock();
    // Before the other is let go of: when none can be opened, that one is of use again as soon as its file is back.
    shared.file = openFile(shared, options);
    file.close();
  }
}

/** The error of a wait that was given up. */
export function lockAborted(signal: AbortSignal): ThroughlineError {
  return new ThroughlineError("ABORTED", "The wait for a lock was aborted.", {
    outcome: "not-applied",
    cause: signal.reason,
  });
}

const nobodysRemedy = `Nothing in the lock file says whose it is. Try again: ${unknownOwnerGraceMs / 1000} s after it was written it is taken for left over.`;

export function lockedError(path: string, waitedMs: number, files: Files): ThroughlineError {
  const owner = isOpenclaws(path) ? ownerOf(files, path) : null;
  const holder = owner === null ? describeLockHolder(files, path) : describeProcess(files, owner.pid);
  const age = holder?.ageMs == null ? "" : `, begun ${Math.round(holder.ageMs / 1000)} s ago`;
  const who = holder === null ? "another process" : `process ${holder.pid} (${holder.state}${age})`;
  const isNobodys = holder === null && isOpenclaws(path);
  return new ThroughlineError("STORE_LOCKED", `${quote(path)} was held by ${who} for ${Math.round(waitedMs)} ms.`, {
    outcome: "not-applied",
    details: { path, waitedMs: Math.round(waitedMs), ...holder },
    ...(isNobodys ? { remedy: nobodysRemedy } : {}),
  });
}

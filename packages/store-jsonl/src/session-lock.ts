import { crc32 } from "node:zlib";
import { ThroughlineError, type RandomSource } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import { quote } from "@throughline/core/store";
import { withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { describeLockHolder, describeProcess } from "./lock-holder.ts";
import { openclawLocks, ownerOf } from "./openclaw-lock.ts";
import type { LockFile, LockPort } from "./lock-file.ts";

/** Exclusion between everything that writes to an agent's folder, in this process and in others. */
export interface SessionLocks {
  /** Whether they are the kernel's. */
  readonly isKernels: boolean;
  /**
   * Runs `work` while holding all the locks. `work` is synchronous: a lock is never held while anything is waited for.
   * All or none are held while it waits, so that the order of the paths does not matter.
   * @throws {ThroughlineError} STORE_LOCKED at the deadline, ABORTED, STORE_READ_ONLY, PATH_UNSAFE
   */
  hold<T>(paths: readonly string[], work: () => T, signal?: AbortSignal): Promise<T>;
  close(): void;
}

export interface SessionLocksOptions {
  readonly files: Files;
  readonly port: LockPort;
  readonly random: RandomSource;
  readonly timeoutMs: number;
}

function isOpenclaws(path: string): boolean {
  return path.endsWith(".lock");
}

/** The kernel's locks first: who holds them is the only one of ours to look at the others. */
function byKindAndName(one: string, other: string): number {
  return Number(isOpenclaws(one)) - Number(isOpenclaws(other)) || (one < other ? -1 : 1);
}

/** The lock file of a session: one of sixteen, so that sessions seldom wait for one another. */
export function lockNameOf(sessionId: string): string {
  return (crc32(sessionId) & 0xf).toString(16);
}

interface Shared {
  file: LockFile;
  readonly port: LockPort;
  users: number;
  /** Settles when the last in this process who asked has let go. */
  queue: Promise<void>;
}

// One connection a lock file and process, whichever store handles use it: they wait in line instead of spinning.
const sharedByPort = new WeakMap<LockPort, Map<string, Shared>>();

/** A line in front of each lock, and the locks themselves through the port. */
export function createSessionLocks(options: SessionLocksOptions): SessionLocks {
  const { files } = options;
  const mine = new Map<string, Shared>();
  const reachable = (path: string): Shared => {
    const known = mine.get(path);
    if (known !== undefined) return known;
    const split = path.lastIndexOf("/");
    const realPath = withFileErrors(path, () => files.realPath(path.slice(0, split))) + path.slice(split);
    const port = isOpenclaws(path) ? openclawLocks : options.port;
    const sharedByPath = sharedByPort.get(port) ?? new Map<string, Shared>();
    sharedByPort.set(port, sharedByPath);
    let shared = sharedByPath.get(realPath);
    if (shared === undefined)
      sharedByPath.set(
        realPath,
        (shared = { file: port.open(files, realPath), port, users: 0, queue: Promise.resolve() }),
      );
    shared.users++;
    mine.set(path, shared);
    return shared;
  };
  return {
    isKernels: options.port.isKernels,
    async hold(paths, work, signal) {
      const shared = [...new Set(paths)].toSorted(byKindAndName).map(reachable);
      const releases: (() => void)[] = [];
      try {
        for (const one of shared) releases.push(await takeTurn(one));
        return await attempt(shared, work, { ...options, signal });
      } finally {
        for (const release of releases) release();
      }
    },
    close() {
      for (const shared of mine.values()) {
        if (--shared.users > 0) continue;
        sharedByPort.get(shared.port)?.delete(shared.file.path);
        shared.file.close();
      }
      mine.clear();
    },
  };
}

async function takeTurn(shared: Shared): Promise<() => void> {
  const before = shared.queue;
  let release = (): void => undefined;
  shared.queue = new Promise((resolve) => (release = resolve));
  await before;
  return release;
}

const spinNaps = 7;
const napMs = 0.02;
const napCell = new Int32Array(new SharedArrayBuffer(4));

async function attempt<T>(
  shared: readonly Shared[],
  work: () => T,
  options: SessionLocksOptions & { readonly signal: AbortSignal | undefined },
): Promise<T> {
  // Real time, whatever clock the store was given: the others who hold locks live in it.
  const startMs = systemClock.nowMs();
  for (let naps = 0; ;) {
    if (options.signal?.aborted === true) throw aborted(options.signal);
    const held: Shared[] = [];
    try {
      const busy = shared.find((one) => !(tryLock(one, options) && held.push(one) > 0));
      if (busy === undefined) return work();
      const waitedMs = systemClock.nowMs() - startMs;
      if (waitedMs > options.timeoutMs) throw locked(busy.file.path, waitedMs, options.files);
      release(held);
      // Most holders are done within a write: a short nap is cheaper than giving the processor away.
      if (naps++ < spinNaps) Atomics.wait(napCell, 0, 0, napMs);
      else await systemClock.sleep(1 + (options.random.uint32() / 2 ** 32) * 3);
    } finally {
      release(held);
    }
  }
}

function release(held: Shared[]): void {
  for (const one of held.splice(0)) one.file.unlock();
}

/**
 * Someone may have replaced the file under its name; a lock on the old one would exclude nobody. One look at each lock:
 * two owners would lose acknowledged records, and it costs a hundredth of a flush.
 */
function tryLock(shared: Shared, { files }: SessionLocksOptions): boolean {
  for (;;) {
    const { file, port } = shared;
    if (!file.tryLock()) return false;
    if (file.identity === null || files.facts(file.path)?.identity === file.identity) return true;
    file.unlock();
    file.close();
    shared.file = port.open(files, file.path);
  }
}

function aborted(signal: AbortSignal): ThroughlineError {
  return new ThroughlineError("ABORTED", "The wait for a lock was aborted.", {
    outcome: "not-applied",
    cause: signal.reason,
  });
}

function locked(path: string, waitedMs: number, files: Files): ThroughlineError {
  const owner = isOpenclaws(path) ? ownerOf(files, path) : null;
  const holder = owner === null ? describeLockHolder(files, path) : describeProcess(files, owner.pid);
  const age = holder?.ageMs == null ? "" : `, begun ${Math.round(holder.ageMs / 1000)} s ago`;
  const who = holder === null ? "another process" : `process ${holder.pid} (${holder.state}${age})`;
  return new ThroughlineError("STORE_LOCKED", `${quote(path)} was held by ${who} for ${Math.round(waitedMs)} ms.`, {
    outcome: "not-applied",
    details: { path, waitedMs: Math.round(waitedMs), ...holder },
  });
}

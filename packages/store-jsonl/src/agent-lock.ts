import type { ThroughlineError } from "@throughline/core";
import type { StoreLockOptions } from "@throughline/core/internal";
import { holdLock } from "@throughline/store-kit/internal";
import type { ReleaseLock } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { LockFile } from "./lock-file.ts";
import { describeLockHolder } from "./lock-holder.ts";
import { foreignLockError, isHeldByOthers, lockFileOf } from "./openclaw-lock.ts";
import { lockedError } from "./session-lock.ts";
import type { StoreContext } from "./store-context.ts";

/** This name differs from the names of session locks, because the holder of this lock also takes session locks. */
const lockName = "callers";

/**
 * Runs a caller's work while no other holder runs, in this process or another. The lock ends with its process. It waits
 * while another program locks sessions.json, because the changes could not be written there.
 */
export async function holdAgentLock<Result>(
  { context, agent }: { readonly context: StoreContext; readonly agent: AgentSessionFiles },
  work: () => Promise<Result>,
  options: StoreLockOptions,
): Promise<Result> {
  const { files, clock, lockPort } = context;
  agent.prepareWriting();
  const path = `${agent.folder.own}/locks/${lockName}`;
  const sessionsLock = lockFileOf(agent.folder.sessionsJson);
  const timedOut = (waitedMs: number): ThroughlineError =>
    isByOthers
      ? foreignLockError(files, sessionsLock, waitedMs)
      : lockedError(path, waitedMs, describeLockHolder(files, path));
  let isByOthers = false;
  let file: LockFile | null = null;
  try {
    return await holdLock({ clock, tryLock, timedOut }, work, options);
  } finally {
    (file as LockFile | null)?.close();
  }

  function tryLock(): ReleaseLock | null {
    if (file !== null && isReplaced(file)) {
      file.close();
      file = null;
    }
    file ??= lockPort.open(files, path);
    const taken = file;
    isByOthers = false;
    if (!isTaken(taken)) return null;
    isByOthers = isHeldByOthers(files, sessionsLock);
    if (!isByOthers) return () => taken.unlock();
    taken.unlock();
    return null;
  }

  function isTaken(one: LockFile): boolean {
    if (!one.tryLock()) return false;
    if (!isReplaced(one)) return true;
    one.unlock();
    return false;
  }

  /**
   * Tests whether the lock file was deleted or replaced, because a lock on a deleted file excludes no other process.
   */
  function isReplaced({ identity }: LockFile): boolean {
    return identity !== null && files.facts(path)?.identity !== identity;
  }
}

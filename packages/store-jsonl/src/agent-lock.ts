import type { StoreLockOptions } from "@throughline/core";
import { holdLock, type ReleaseLock } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { LockFile } from "./lock-file.ts";
import { lockedError } from "./session-lock.ts";
import type { StoreContext } from "./store-context.ts";

/** Beside the locks of sessions, which are taken by whoever holds this one. */
const lockName = "callers";

/** Runs work of a caller while no other holder does, in this process or another. The lock ends with its process. */
export async function holdAgentLock<Result>(
  { context, agent }: { readonly context: StoreContext; readonly agent: AgentSessionFiles },
  work: () => Promise<Result>,
  options: StoreLockOptions,
): Promise<Result> {
  const { files, clock, lockPort } = context;
  agent.prepareWriting();
  const path = `${agent.folder.own}/locks/${lockName}`;
  let file: LockFile | null = null;
  try {
    return await holdLock(
      { clock, tryLock, timedOut: (waitedMs) => lockedError(path, waitedMs, files) },
      work,
      options,
    );
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
    return isTaken(taken) ? () => taken.unlock() : null;
  }

  function isTaken(one: LockFile): boolean {
    if (!one.tryLock()) return false;
    if (!isReplaced(one)) return true;
    one.unlock();
    return false;
  }

  /** A lock on a file that somebody deleted excludes nobody. */
  function isReplaced({ identity }: LockFile): boolean {
    return identity !== null && files.facts(path)?.identity !== identity;
  }
}

import type { StoreLockOptions } from "@throughline/core";
import { monotonicMs } from "@throughline/core/node";
import type { AgentSessions } from "./agent-sessions.ts";
import type { LockFile } from "./lock-file.ts";
import { lockedError } from "./session-lock.ts";
import type { StoreContext } from "./store-context.ts";

/** Beside the locks of sessions, which are taken by whoever holds this one. */
const lockName = "callers";

/** Runs work of a caller while no other holder does, in this process or another. The lock ends with its process. */
export async function holdAgentLock<Result>(
  { context, agent }: { readonly context: StoreContext; readonly agent: AgentSessions },
  work: () => Promise<Result>,
  { timeoutMs, pollIntervalMs }: StoreLockOptions,
): Promise<Result> {
  const { files, clock, lockPort } = context;
  agent.prepareWriting();
  const path = `${agent.folder.own}/locks/${lockName}`;
  const beganMs = monotonicMs();
  let file = lockPort.open(files, path);
  try {
    while (!isTaken(file)) {
      const waitedMs = monotonicMs() - beganMs;
      if (waitedMs >= timeoutMs) throw lockedError(path, waitedMs, files);
      await clock.sleep(pollIntervalMs);
      if (isReplaced(file)) {
        file.close();
        file = lockPort.open(files, path);
      }
    }
    try {
      return await work();
    } finally {
      file.unlock();
    }
  } finally {
    file.close();
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

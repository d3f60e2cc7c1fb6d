import {
  abortedBefore,
  assertAgentId,
  assertArgument,
  assertNamespace,
  assertStoreOptions,
  monotonicMs,
  optionKinds,
  refused,
} from "@throughline/core/internal";
import type { Clock, ListQuery, StoreLockOptions, ThroughlineError } from "@throughline/core";

/** Frees a lock. Throws when the lock had ended before, so that the work may not have been alone. */
export type ReleaseLock = () => void | Promise<void>;

/** A lock that is tried until it is free. */
interface LockAttempts {
  /** Measures the wait. */
  readonly clock: Clock;
  /** Takes the lock, or gives null at once while another holder has it. */
  tryLock(signal: AbortSignal | undefined): ReleaseLock | null | Promise<ReleaseLock | null>;
  /** The error after a wait of `waitedMs` milliseconds: STORE_LOCKED. */
  timedOut(waitedMs: number): ThroughlineError;
}

/**
 * Releases of locks that are held. A promise that nothing can settle any more, such as that of a server that runs until
 * it is killed, is garbage-collected with everything that awaits it. The file or connection behind the lock would be
 * closed with it.
 */
const held = new Set<ReleaseLock>();

/** The agent whose lock is meant. @throws {ThroughlineError} INPUT_INVALID, NAMESPACE_INVALID, AGENT_ID_INVALID */
export function lockedAgent(agent: Pick<ListQuery, "namespace" | "agentId">): {
  readonly namespace: string;
  readonly agentId: string;
} {
  if (typeof agent !== "object" || agent === null)
    throw refused("INPUT_INVALID", `exclusively(): agent must be an object; received ${String(agent)}.`, {});
  const { namespace = "", agentId = "main" } = agent;
  assertNamespace(namespace);
  assertAgentId(agentId);
  return { namespace, agentId };
}

/**
 * Runs work under a lock and frees the lock however the work ends.
 * @throws {ThroughlineError} STORE_LOCKED at the deadline, ABORTED while waiting, INPUT_INVALID, and what the work throws
 */
export async function holdLock<Result>(
  lock: LockAttempts,
  work: () => Promise<Result>,
  options: StoreLockOptions,
): Promise<Result> {
  assertHoldable(work, options);
  const release = await takenLock(lock, options);
  held.add(release);
  let result: Result;
  try {
    result = await work();
  } catch (error) {
    // What the work says counts more than a lock that ended on the way.
    await freed(release).catch(() => undefined);
    throw error;
  }
  await freed(release);
  return result;
}

async function freed(release: ReleaseLock): Promise<void> {
  held.delete(release);
  await release();
}

async function takenLock(
  lock: LockAttempts,
  { timeoutMs, pollIntervalMs, signal }: StoreLockOptions,
): Promise<ReleaseLock> {
  const beganMs = monotonicMs();
  for (;;) {
    assertNotAborted(signal);
    const release = await lock.tryLock(signal);
    if (release !== null) {
      if (signal?.aborted !== true) return release;
      await release();
      assertNotAborted(signal);
    }
    const waitedMs = monotonicMs() - beganMs;
    if (waitedMs >= timeoutMs) throw lock.timedOut(Math.round(waitedMs));
    await lock.clock.sleep(Math.min(pollIntervalMs, timeoutMs - waitedMs), signal).catch((error: unknown) => {
      assertNotAborted(signal);
      throw error;
    });
  }
}

function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortedBefore("the lock was free", signal);
}

function assertHoldable(work: unknown, options: unknown): void {
  assertArgument("exclusively", "work", work, optionKinds.callback);
  assertStoreOptions("exclusively", options);
}

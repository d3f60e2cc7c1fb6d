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
import type { Clock, ListQuery, ThroughlineError } from "@throughline/core";
import type { StoreLockOptions } from "@throughline/core/internal";

/** Frees a lock. Throws when the lock had ended before, because another process may have worked at the same time. */
export type ReleaseLock = () => void | Promise<void>;

/** Configures how a lock is acquired. */
interface LockAttempts {
  /** Measures the wait, and sleeps between two attempts. */
  readonly clock: Clock;
  /** Acquires the lock, or returns null at once while another holder has it. */
  tryLock(signal: AbortSignal | undefined): ReleaseLock | null | Promise<ReleaseLock | null>;
  /** Returns STORE_LOCKED for a wait of `waitedMs` milliseconds. */
  timedOut(waitedMs: number): ThroughlineError;
}

/**
 * Keeps the releases of held locks reachable. A server that runs until it is killed awaits a promise that nothing can
 * settle. Such a promise is garbage-collected with everything that awaits it. The file or connection behind the lock
 * would then be closed.
 */
const held = new Set<ReleaseLock>();

/**
 * Returns the namespace and the agent whose lock is requested, with defaults filled in.
 * @throws {ThroughlineError} INPUT_INVALID, NAMESPACE_INVALID, AGENT_ID_INVALID
 */
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
 * Runs work under a lock, and frees the lock however the work ends.
 * @throws {ThroughlineError} STORE_LOCKED at the deadline, ABORTED while waiting, INPUT_INVALID, and what the work
 * throws
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
    // The error of the work matters more than a lock that ended early.
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

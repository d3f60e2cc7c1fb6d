import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Clock,
  hasErrorCode,
  openSession,
  type RandomSource,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { KeyedQueues, quote, renewTurn, type StoreLockOptions } from "@throughline/core/internal";

/** Sets how long a function waits for the lock of the sessions. */
export interface LockOptions {
  /** Sets how long to wait for another holder, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number | undefined;
  /** Sets the time between two attempts in milliseconds. @default 25 */
  readonly pollIntervalMs?: number | undefined;
  /**
   * Sets the lease of a holder in milliseconds. A live holder renews it; a dead holder loses the lock when it ends.
   * @default 30_000
   */
  readonly staleMs?: number | undefined;
}

export interface StoreLock {
  /**
   * Runs `action` while no other holder has the lock, in this process or another. A nested call under the same name
   * runs at once.
   */
  run<Result>(name: string, action: () => Promise<Result>, options?: LockOptions): Promise<Result>;
}

/**
 * Creates the lock of a session store. It is the store's exclusive lock, or else the open turn of a session that exists
 * only for this purpose. Both work on one machine and on several. After a holder dies, the next one gets the lock when
 * the lease ends. A holder that was paused beyond its lease gets an error when it resumes, because another holder has
 * the lease.
 */
export function createStoreLock(
  store: SessionStore,
  place: {
    /** The open turn of this session is the lock when the store has no exclusive lock. */
    readonly refOf: (name: string) => SessionRef;
    readonly agentOf: (name: string) => Pick<SessionRef, "namespace" | "agentId">;
    readonly owner: string;
  },
  ports: { readonly clock: Clock; readonly random: RandomSource },
): StoreLock {
  const held = new AsyncLocalStorage<ReadonlySet<string>>();
  const queues = new KeyedQueues();
  return {
    async run(name, action, options = {}) {
      const names = held.getStore() ?? new Set<string>();
      if (names.has(name)) return action();
      const run = (): ReturnType<typeof action> => held.run(new Set([...names, name]), action);
      const hold = async (): Promise<Awaited<ReturnType<typeof action>>> => {
        const ref = place.refOf(name);
        if (store.exclusively !== undefined) return await store.exclusively(place.agentOf(name), run, waitOf(options));
        const lease = await acquire(store, ref, { ...ports, owner: place.owner }, options);
        try {
          return await run();
        } finally {
          await lease.release();
        }
      };
      return queues.run(name, hold);
    },
  };
}

function waitOf({ timeoutMs = 10_000, pollIntervalMs = 25 }: LockOptions): StoreLockOptions {
  return { timeoutMs, pollIntervalMs };
}

interface Lease {
  release(): Promise<void>;
}

interface Holder {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly owner: string;
}

async function acquire(
  store: SessionStore,
  ref: SessionRef,
  holder: Holder,
  { timeoutMs = 10_000, pollIntervalMs = 25, staleMs = 30_000 }: LockOptions,
): Promise<Lease> {
  const { clock, random, owner } = holder;
  const deadlineMs = clock.nowMs() + timeoutMs;
  await openSession(store, ref, { random });
  const turnId = random.uuid();
  for (;;) {
    const fence = ((await store.load(ref))?.head.fence ?? 0) + 1;
    try {
      const turn = { action: "open", turnId, owner, fence, leaseUntilMs: clock.nowMs() + staleMs } as const;
      await store.append(ref, [], {
        entry: { lockedBy: owner },
        turn,
        durability: store.capabilities.durabilities[0] ?? "none",
      });
      return keep(store, ref, { fence, staleMs, clock });
    } catch (error) {
      if (!hasErrorCode(error, "SESSION_BUSY", "TURN_FENCED")) throw error;
      if (clock.nowMs() >= deadlineMs) throw timedOut(ref, error, timeoutMs);
    }
    await clock.sleep(pollIntervalMs);
  }
}

function keep(
  store: SessionStore,
  ref: SessionRef,
  { fence, staleMs, clock }: { readonly fence: number; readonly staleMs: number; readonly clock: Clock },
): Lease {
  const durability = store.capabilities.durabilities[0] ?? "none";
  const renewed = renewTurn(store, ref, { fence, leaseMs: staleMs, clock, durability });
  return {
    async release() {
      await renewed.stop();
      // Another holder may have run at the same time after the lease was lost. The caller must learn that the action
      // was not exclusive.
      if (renewed.failure !== null) throw renewed.failure;
      await store.append(ref, [], { entry: {}, turn: { action: "close", fence }, durability });
    },
  };
}

function timedOut(ref: SessionRef, cause: unknown, timeoutMs: number): ThroughlineError {
  const details = ThroughlineError.isInstance(cause) ? cause.details : {};
  return new ThroughlineError(
    "STORE_LOCKED",
    `The session store of agent ${quote(ref.agentId)} was locked for ${timeoutMs} ms by ${quote(details["owner"] ?? "another process")}.`,
    { outcome: "not-applied", details: { ...details, timeoutMs }, cause },
  );
}

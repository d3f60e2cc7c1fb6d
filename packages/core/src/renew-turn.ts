import type { Clock } from "./ports.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { Durability } from "./store-capabilities.ts";

/** The lease of an open turn is renewed at a third of its length until `stop` is called. */
interface RenewedTurn {
  /** Holds the error that ended the renewals; null while they continue, and after `stop`. */
  readonly failure: unknown;
  /** Resolves when no renewal is running. */
  stop(): Promise<void>;
}

/** Renews the lease of the turn that was opened with this fence. The first renewal that fails is the last. */
export function renewTurn(
  store: SessionStore,
  ref: SessionRef,
  options: {
    readonly fence: number;
    readonly leaseMs: number;
    readonly clock: Clock;
    readonly durability?: Durability;
  },
): RenewedTurn {
  const { fence, leaseMs, clock, durability } = options;
  const ended = new AbortController();
  let failure: unknown = null;
  const renewing = (async () => {
    for (;;) {
      await clock.sleep(leaseMs / 3, ended.signal);
      const turn = { action: "renew", leaseUntilMs: clock.nowMs() + leaseMs, fence } as const;
      await store.append(ref, [], { entry: {}, turn, ...(durability === undefined ? {} : { durability }) });
    }
  })().catch((error: unknown) => {
    if (!ended.signal.aborted) failure = error;
  });
  return {
    get failure() {
      return failure;
    },
    stop: () => {
      ended.abort();
      return renewing;
    },
  };
}

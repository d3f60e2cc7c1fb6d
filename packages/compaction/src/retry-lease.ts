import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  portKinds,
  updateEntry,
  withSystemPorts,
} from "@throughline/core/internal";
import type { Clock, SessionRef, SessionStore } from "@throughline/core";

/** Lets one process at a time rewrite the summaries of a session. */
export interface RetryLease {
  /** Returns true when this owner holds the lease until it is released or expires. */
  acquire(ref: SessionRef): Promise<boolean>;
  /** Releases the lease; does nothing when another owner holds it. */
  release(ref: SessionRef): Promise<void>;
}

/** Configures `createEntryLease`. */
export interface EntryLeaseOptions {
  /** Holds the sessions whose entries store the lease. */
  readonly store: SessionStore;
  /** Times the lease; the clocks of all owners must agree. @default the system's clock */
  readonly clock?: Clock;
  /** Names this process. No other process may use the same name. */
  readonly owner: string;
  /**
   * Sets how long the lease lasts, in milliseconds: at least the time of all attempts of one session. @default 900000
   */
  readonly leaseMs?: number;
}

export const entryLeaseTable: OptionTable<EntryLeaseOptions> = {
  store: optionKinds.required(portKinds.store),
  clock: portKinds.clock,
  owner: optionKinds.required(optionKinds.filledText),
  leaseMs: optionKinds.number({ min: 1 }),
};

const field = "summaryRetryLease";

/**
 * Creates a lease that is stored in the session's entry, for processes that share the store. The clocks of the
 * processes must agree.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is not known, has another type, or is out of range
 */
export function createEntryLease(options: EntryLeaseOptions): RetryLease {
  assertKnownOptions<EntryLeaseOptions>("createEntryLease", options, entryLeaseTable);
  const { store, clock, owner, leaseMs = 900_000 } = withSystemPorts(options);
  return {
    async acquire(ref) {
      const state = await updateEntry(store, ref, (entry) => {
        const held = readLease(entry[field]);
        if (held !== null && held.owner !== owner && held.untilMs > clock.nowMs()) return entry;
        return { ...entry, [field]: { owner, untilMs: clock.nowMs() + leaseMs } };
      });
      return readLease(state.entry[field])?.owner === owner;
    },
    async release(ref) {
      await updateEntry(store, ref, (entry) => {
        if (readLease(entry[field])?.owner !== owner) return entry;
        const { [field]: _released, ...rest } = entry;
        return rest as typeof entry;
      });
    },
  };
}

function readLease(value: unknown): { readonly owner: string; readonly untilMs: number } | null {
  if (typeof value !== "object" || value === null) return null;
  const { owner, untilMs } = value as { readonly owner?: unknown; readonly untilMs?: unknown };
  return typeof owner === "string" && typeof untilMs === "number" ? { owner, untilMs } : null;
}

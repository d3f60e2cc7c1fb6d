import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  portKinds,
  updateEntry,
  withSystemPorts,
} from "@throughline/core/internal";
import { type Clock, type SessionRef, type SessionStore } from "@throughline/core";

/** Lets one process at a time write the summaries of a session again. */
export interface RetryLease {
  /** True: this owner has it until it is released or its time runs out. */
  acquire(ref: SessionRef): Promise<boolean>;
  /** Gives the lease back; does nothing when another owner has it. */
  release(ref: SessionRef): Promise<void>;
}

/** Options of `createEntryLease`. */
export interface EntryLeaseOptions {
  /** Holds the sessions whose entries get the lease. */
  readonly store: SessionStore;
  /** Times the lease; the clocks of all owners have to agree. @default the system's clock */
  readonly clock?: Clock;
  /** Of this process: no other may have the same. */
  readonly owner: string;
  /** At least as long as all attempts of one session may take. @default 900000 */
  readonly leaseMs?: number;
}

/** The kinds of the options of `createEntryLease`. */
export const entryLeaseTable: OptionTable<EntryLeaseOptions> = {
  store: optionKinds.required(portKinds.store),
  clock: portKinds.clock,
  owner: optionKinds.required(optionKinds.filledText),
  leaseMs: optionKinds.number({ min: 1 }),
};

const field = "summaryRetryLease";

/**
 * A lease in the session's entry, for processes that share the store. The clocks of the processes have to agree.
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

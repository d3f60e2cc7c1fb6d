import { updateEntry, type Clock, type SessionRef, type SessionStore } from "@throughline/core";

/** Lets one process at a time make the summaries of a session anew. */
export interface RetryLease {
  /** True: this owner has it until it is released or its time runs out. */
  acquire(ref: SessionRef): Promise<boolean>;
  release(ref: SessionRef): Promise<void>;
}

export interface EntryLeaseOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Of this process: no other may have the same. */
  readonly owner: string;
  /** At least as long as all attempts of one session may take. @default 900000 */
  readonly leaseMs?: number;
}

const field = "summaryRetryLease";

/** A lease in the session's entry, for processes that share the store. The clocks of the processes have to agree. */
export function createEntryLease({ store, clock, owner, leaseMs = 900_000 }: EntryLeaseOptions): RetryLease {
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

import {
  appendOnce,
  type Clock,
  hasErrorCode,
  type RecordDraft,
  type SessionEntry,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { loadExisting, updateEntry } from "@throughline/core/internal";
import { checkpointPatch, isClaimed, readCheckpointState, type CheckpointState } from "./checkpoint-state.ts";

export interface ClaimPlace {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly ref: SessionRef;
}

/**
 * Changes the state by compare-and-swap. An expired claim may belong to a process that is only suspended. Before the
 * claim is removed, an append of that process is made impossible.
 */
export async function changeState(
  { store, clock, ref }: ClaimPlace,
  change: (state: CheckpointState, entry: SessionEntry) => CheckpointState,
): Promise<CheckpointState> {
  const withdrawn = new Set<string>();
  for (;;) {
    let after: CheckpointState | null = null;
    let abandonedId: string | null = null;
    await updateEntry(store, ref, (entry) => {
      const before = readCheckpointState(entry);
      after = change(before, entry);
      abandonedId = after.running === before.running ? null : leftBehind(before, clock.nowMs());
      if (abandonedId !== null && withdrawn.has(abandonedId)) abandonedId = null;
      return abandonedId !== null || after === before ? entry : { ...entry, ...checkpointPatch(after) };
    });
    if (after === null) throw new ThroughlineError("INTERNAL", "The state of the checkpoints was not looked at.");
    if (abandonedId === null) return after;
    await withdraw(store, ref, abandonedId);
    withdrawn.add(abandonedId);
  }
}

function leftBehind(state: CheckpointState, nowMs: number): string | null {
  return isClaimed(state, nowMs) ? null : (state.running?.recordId ?? null);
}

/**
 * Withdraws a claim. The store accepts one append per claim key: the checkpoint, or this append without a record. It
 * decides under its write lock, so a suspended process cannot append later.
 */
async function withdraw(store: SessionStore, ref: SessionRef, recordId: string): Promise<void> {
  try {
    await appendOnce(store, ref, [], { entry: {}, idempotencyKey: claimKey(recordId) });
  } catch (error) {
    // The checkpoint was written a moment ago. The caller reads the entry again, which now states it.
    if (!hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) throw error;
  }
}

function claimKey(recordId: string): string {
  return `checkpoint:${recordId}`;
}

/** Limits how often an append is repeated because a turn moved the head after it was read. */
const mostAttempts = 64;

/**
 * Appends the checkpoint of a valid claim to the session of the claim. Otherwise returns why nothing was written.
 * `patch` receives the entry at the time of the append.
 */
export async function appendClaimed(
  { store, ref }: Pick<ClaimPlace, "store" | "ref">,
  draft: RecordDraft & { readonly id: string },
  sessionId: string,
  patch: (entry: SessionEntry) => Readonly<Record<string, unknown>>,
): Promise<"reset" | "overtaken" | null> {
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const now = await loadExisting(store, ref);
    // Messages of the session before a reset do not belong to the new session, so nothing is written.
    if (now.sessionId !== sessionId) return "reset";
    const { running, lastId } = readCheckpointState(now.entry);
    if (lastId === draft.id) return null;
    if (running?.recordId !== draft.id) return "overtaken";
    try {
      // After a reset, the new session would accept the same claim key again. The expected head prevents that.
      const expect = { head: now.head.headId };
      await appendOnce(store, ref, [draft], {
        expect,
        entry: patch(now.entry),
        idempotencyKey: claimKey(draft.id),
      });
      return null;
    } catch (error) {
      if (hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) return "overtaken";
      if (!hasErrorCode(error, "APPEND_CONFLICT")) throw error;
    }
  }
  throw new ThroughlineError("APPEND_CONFLICT", "Turns came between all the time.", { outcome: "not-applied" });
}

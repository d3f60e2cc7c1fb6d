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

/** Where claims are kept. */
export interface ClaimPlace {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly ref: SessionRef;
}

/**
 * Changes the state, by compare-and-swap. An expired claim may belong to a process that only sleeps: before the claim
 * is removed, the append of that process is ruled out.
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

/** The record of a claim that is not believed any more. */
function leftBehind(state: CheckpointState, nowMs: number): string | null {
  return isClaimed(state, nowMs) ? null : (state.running?.recordId ?? null);
}

/**
 * One append is ever done with a claim's key: its checkpoint, or this one without a record. A store decides between
 * them under its write lock, so that a sleeping process cannot append later.
 */
async function withdraw(store: SessionStore, ref: SessionRef, recordId: string): Promise<void> {
  try {
    await appendOnce(store, ref, [], { entry: {}, idempotencyKey: claimKey(recordId) });
  } catch (error) {
    // It was written after all, a moment ago: the entry says so, and is looked at again.
    if (!hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) throw error;
  }
}

function claimKey(recordId: string): string {
  return `checkpoint:${recordId}`;
}

/** So often turns may come between a look at the head and the append. */
const mostAttempts = 64;

/**
 * Writes the checkpoint of a claim that still holds, in the session it was made in; else says why nothing was written.
 * `patch` is made on the entry as it is by then.
 */
export async function appendClaimed(
  { store, ref }: Pick<ClaimPlace, "store" | "ref">,
  draft: RecordDraft & { readonly id: string },
  sessionId: string,
  patch: (entry: SessionEntry) => Readonly<Record<string, unknown>>,
): Promise<"reset" | "overtaken" | null> {
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const now = await loadExisting(store, ref);
    // What was said in the session before is none of the new one's.
    if (now.sessionId !== sessionId) return "reset";
    const { running, lastId } = readCheckpointState(now.entry);
    if (lastId === draft.id) return null;
    if (running?.recordId !== draft.id) return "overtaken";
    try {
      // The head tells the session from the one after a reset, whose keys are its own.
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

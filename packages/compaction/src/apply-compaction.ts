import {
  appendOnce,
  type AppendResult,
  hasErrorCode,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
  type TurnRequest,
} from "@throughline/core";
import {
  createWorkSlices,
  isFromNewerVersion,
  loadExisting,
  throughlineDraft,
  throughlineKind,
} from "@throughline/core/internal";
import type { CompactionPlan } from "./plan-compaction.ts";
import type { PreparedCompaction } from "./prepare-compaction.ts";
import { newRetry, retryPatch } from "./retry-entry.ts";

/** Options of the append that puts a compaction in place. */
export interface ApplyOptions {
  /** Within a turn: its fence. Without one the append is refused while a turn is open. @default none */
  readonly turn?: TurnRequest;
  /** Ends the wait with ABORTED; nothing is written then. */
  readonly signal?: AbortSignal;
  /** Told each time the head moved on under the append. @default none */
  readonly onMoved?: () => void;
}

export type ApplyOutcome =
  | { readonly kind: "applied"; readonly result: AppendResult }
  /** A turn is open and its fence was not given: to be applied again when it is closed. */
  | { readonly kind: "busy" }
  /** What was summarized was edited or redacted since: a new plan is needed. */
  | { readonly kind: "outdated" }
  /** Another compaction or a reset was faster, the branch was left, or the session is another one. */
  | { readonly kind: "overtaken" };

/** So often a lost race for the head is run again; each one needs another writer to have been faster. */
const mostAttempts = 32;

/**
 * Puts a prepared compaction in place with one append: the record, the entry's counts, the window. The head may have
 * moved on since it was planned: what arrived lies behind the cut and is kept. A crash leaves the old state or the new.
 * @throws {ThroughlineError} what the store throws, TURN_FENCED among it
 */
export async function applyCompaction(
  store: SessionStore,
  ref: SessionRef,
  prepared: PreparedCompaction,
  options: ApplyOptions = {},
): Promise<ApplyOutcome> {
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const state = await loadExisting(store, ref);
    const verdict = await judge(store, ref, prepared, state);
    // An earlier attempt whose answer was lost: its key gives the answer again.
    if (verdict === "applied") return { kind: "applied", result: await append(store, ref, prepared, state, options) };
    if (verdict !== "fits") return { kind: verdict };
    try {
      const result = await append(store, ref, prepared, state, options);
      await noteRedactedMeanwhile(store, ref, prepared);
      return { kind: "applied", result };
    } catch (error) {
      if (hasErrorCode(error, "SESSION_BUSY")) return { kind: "busy" };
      if (!hasErrorCode(error, "APPEND_CONFLICT")) throw error;
      options.onMoved?.();
    }
  }
  throw new ThroughlineError("APPEND_CONFLICT", `Others were faster ${mostAttempts} times in a row.`, {
    outcome: "not-applied",
    details: { recordId: prepared.recordId },
  });
}

function append(
  store: SessionStore,
  ref: SessionRef,
  { plan, drafts, recordId, tokensAfter, needsRetry }: PreparedCompaction,
  state: SessionState,
  { turn, signal }: ApplyOptions,
): Promise<AppendResult> {
  return appendOnce(store, ref, drafts, {
    expect: { head: state.head.headId },
    // A retry after an unknown outcome finds the first attempt by it.
    idempotencyKey: `compaction:${recordId}`,
    windowFromSeq: plan.windowFromSeq,
    entry: {
      compactionCount: (state.entry.compactionCount ?? 0) + 1,
      totalTokens: tokensAfter,
      totalTokensFresh: false,
      ...(needsRetry ? retryPatch(state.entry, recordId, newRetry(retryFromSeq(plan))) : {}),
    },
    ...(turn === undefined ? {} : { turn }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** What is needed to make the summary again: also what the one before stands for, when that is to be made again first. */
function retryFromSeq({ removedFromSeq, previous }: CompactionPlan): number {
  if (previous === null) return removedFromSeq;
  const before = previous.isOutdated ? (previous.details?.summarizedFromSeq ?? 1) : previous.seq;
  return Math.min(removedFromSeq, previous.seq, before);
}

/** Whether the compaction still says the truth about the session as it is now. */
async function judge(
  store: SessionStore,
  ref: SessionRef,
  { plan, sessionId, sizes, recordId }: PreparedCompaction,
  state: SessionState,
): Promise<"fits" | "applied" | "outdated" | "overtaken"> {
  if (state.sessionId !== sessionId || state.archived) return "overtaken";
  const arrived: StoredRecord[] = [];
  for await (const page of store.read(ref, { afterSeq: plan.lastSeq })) arrived.push(...page.records);
  if (arrived.some(({ id }) => id === recordId)) return "applied";
  if (!goesOn(arrived, state.head.headId, plan.headId)) return "overtaken";
  const main = arrived.filter(({ side }) => !side);
  if (main.some(({ type }) => type === "compaction" || type === "reset")) return "overtaken";
  const removedIds = new Set(plan.removed.map((message) => message.recordId));
  if (main.some(({ record }) => isFromNewerVersion(record) || removedIds.has(editedId(record) ?? "")))
    return "outdated";
  return (await changedSeqs(store, ref, sizes)).length > 0 ? "outdated" : "fits";
}

/** Whether the head was reached from the planned one by going on, not by leaving the branch. */
function goesOn(arrived: readonly StoredRecord[], headId: string | null, plannedHeadId: string): boolean {
  const parents = new Map(arrived.map(({ id, parentId }) => [id, parentId]));
  let id = headId;
  while (id !== null && id !== plannedHeadId) {
    const parent = parents.get(id) ?? null;
    parents.delete(id);
    id = parent;
  }
  return id === plannedHeadId;
}

/** The record that an edit changes. */
function editedId(record: StoredRecord["record"]): string | null {
  if (record.type === "context_edit") return String(record["targetId"]);
  if (throughlineKind(record) !== "edit") return null;
  return String((record["data"] as { readonly targetId?: unknown } | null)?.targetId);
}

/** Records that are no longer what was summarized: a redaction leaves nothing behind it but another size. */
async function changedSeqs(
  store: SessionStore,
  ref: SessionRef,
  sizes: ReadonlyMap<number, number>,
): Promise<readonly number[]> {
  if (sizes.size === 0) return [];
  const seqs = [...sizes.keys()];
  const range = { afterSeq: (seqs[0] ?? 1) - 1, beforeSeq: (seqs.at(-1) ?? 0) + 1 };
  const changed: number[] = [];
  const slices = createWorkSlices();
  for await (const page of store.read(ref, { ...range, payload: "head" })) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    changed.push(...page.records.filter(({ seq, bytes }) => sizes.get(seq) !== bytes).map(({ seq }) => seq));
  }
  return changed;
}

/**
 * A redaction between the last look and the append has marked the summaries it saw, but not this one. So the note is
 * written here, and the next compaction writes the summary again.
 */
async function noteRedactedMeanwhile(
  store: SessionStore,
  ref: SessionRef,
  prepared: PreparedCompaction,
): Promise<void> {
  const redactedSeqs = await changedSeqs(store, ref, prepared.sizes);
  if (redactedSeqs.length === 0) return;
  const note = { kind: "summary-outdated", summaryIds: [prepared.recordId], redactedSeqs };
  // More is redacted with time, never less: the count names this note among those of the compaction.
  const idempotencyKey = `compaction-outdated:${prepared.recordId}:${redactedSeqs.length}`;
  await appendOnce(store, ref, [throughlineDraft("note", note)], { idempotencyKey });
}

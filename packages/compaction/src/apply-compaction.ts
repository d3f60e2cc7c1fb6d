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

/** Sets how a prepared compaction is appended. */
export interface ApplyOptions {
  /** Holds the fence of the caller's turn. Without a fence nothing is appended while a turn is open. @default none */
  readonly turn?: TurnRequest;
  /** Ends the wait with ABORTED; nothing is written then. */
  readonly signal?: AbortSignal;
  /** Is called each time another append moved the head first, before the next attempt. @default none */
  readonly onMoved?: () => void;
}

export type ApplyOutcome =
  | { readonly kind: "applied"; readonly result: AppendResult }
  /** A turn is open and its fence is missing. The caller applies again when the turn is closed. */
  | { readonly kind: "busy" }
  /** A summarized record was edited or redacted since the plan, so a new plan is needed. */
  | { readonly kind: "outdated" }
  /** Another compaction or a reset came first, or the plan belongs to another branch or session. */
  | { readonly kind: "overtaken" };

/** Limits the attempts after a lost race for the head. Each attempt needs another writer that was faster. */
const mostAttempts = 32;

/**
 * Applies a prepared compaction with one append: the record, the count in the entry and the window. The head may have
 * moved since the plan: records that arrived lie behind the cut and stay. A crash leaves the old state or the new one.
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
    // The answer of an earlier attempt was lost. Its idempotency key returns that answer again.
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
    // A retry after an unknown outcome finds the first attempt by this key.
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

/**
 * Returns the lowest seq that a rewrite of the summary reads. An outdated previous summary is rewritten first, so its
 * messages count too.
 */
function retryFromSeq({ removedFromSeq, previous }: CompactionPlan): number {
  if (previous === null) return removedFromSeq;
  const before = previous.isOutdated ? (previous.details?.summarizedFromSeq ?? 1) : previous.seq;
  return Math.min(removedFromSeq, previous.seq, before);
}

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

/** Distinguishes growth of the planned branch from a switch to another branch: only growth keeps the plan valid. */
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

function editedId(record: StoredRecord["record"]): string | null {
  if (record.type === "context_edit") return String(record["targetId"]);
  if (throughlineKind(record) !== "edit") return null;
  return String((record["data"] as { readonly targetId?: unknown } | null)?.targetId);
}

/**
 * Finds records that changed since they were summarized. A redacted record keeps its seq, so only its size shows it.
 */
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
 * A redaction between the last read and the append marked the summaries it saw, but not this new summary. This note
 * marks it as well, so that the next compaction rewrites it.
 */
async function noteRedactedMeanwhile(
  store: SessionStore,
  ref: SessionRef,
  prepared: PreparedCompaction,
): Promise<void> {
  const redactedSeqs = await changedSeqs(store, ref, prepared.sizes);
  if (redactedSeqs.length === 0) return;
  const note = { kind: "summary-outdated", summaryIds: [prepared.recordId], redactedSeqs };
  // Redacted records never come back, so their count names the note uniquely within this compaction.
  const idempotencyKey = `compaction-outdated:${prepared.recordId}:${redactedSeqs.length}`;
  await appendOnce(store, ref, [throughlineDraft("note", note)], { idempotencyKey });
}

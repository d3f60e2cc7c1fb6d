import type { CompactionResult } from "@throughline/compaction";
import type { CompactionPlan, NothingReason, NothingToCompact } from "@throughline/compaction/internal";
import { readWindow, type SessionRef, type SessionStore } from "@throughline/core";
import type { SessionNames } from "./json-shapes.ts";

/** A compaction as `--json` and the routes show it. What was only planned, or came to nothing, has no record. */
export interface CompactionRow {
  readonly kind: "compaction";
  readonly key: string;
  readonly sessionId: string;
  readonly state: "compacted" | "planned" | "nothing" | "superseded";
  /** Why nothing was done; null otherwise. */
  readonly reason: NothingReason | null;
  readonly id: string | null;
  readonly seq: number | null;
  readonly firstKeptSeq: number | null;
  readonly tokensBefore: number | null;
  readonly tokensAfter: number | null;
  readonly messagesRemoved: number | null;
  readonly source: string | null;
  readonly provider: string | null;
  readonly needsRetry: boolean | null;
  readonly [field: string]: unknown;
}

const unknown = {
  kind: "compaction",
  reason: null,
  id: null,
  seq: null,
  firstKeptSeq: null,
  tokensBefore: null,
  tokensAfter: null,
  messagesRemoved: null,
  source: null,
  provider: null,
  needsRetry: null,
} as const;

/** What a compaction would do. */
export async function plannedCompaction(
  store: SessionStore,
  ref: SessionRef,
  names: SessionNames,
  plan: CompactionPlan | NothingToCompact,
): Promise<CompactionRow> {
  if (plan.kind === "nothing")
    return { ...unknown, ...names, state: "nothing", reason: plan.reason, tokensBefore: plan.tokens };
  const { tokensBefore, removedMessages: messagesRemoved, firstKeptId } = plan;
  const firstKeptSeq = await seqOf(store, ref, firstKeptId);
  return { ...unknown, ...names, state: "planned", tokensBefore, messagesRemoved, firstKeptSeq };
}

/** What became of a compaction. */
export async function compactionRow(
  store: SessionStore,
  ref: SessionRef,
  names: SessionNames,
  result: Exclude<CompactionResult, { readonly kind: "busy" }>,
): Promise<CompactionRow> {
  if (result.kind === "superseded") return { ...unknown, ...names, state: "superseded" };
  if (result.kind === "nothing") return plannedCompaction(store, ref, names, result);
  const { recordId, tokensBefore, tokensAfter, messagesRemoved, source, provider, needsRetry, appended } = result;
  return {
    ...unknown,
    ...names,
    state: "compacted",
    id: recordId,
    seq: appended.records.find(({ id }) => id === recordId)?.seq ?? null,
    firstKeptSeq: await seqOf(store, ref, result.firstKeptId),
    tokensBefore,
    tokensAfter,
    messagesRemoved,
    source,
    provider,
    needsRetry,
  };
}

/** The seq of the first message that is kept, which the window holds. */
async function seqOf(store: SessionStore, ref: SessionRef, id: string): Promise<number | null> {
  const { records } = await readWindow(store, ref);
  return records.find((record) => record.id === id)?.seq ?? null;
}

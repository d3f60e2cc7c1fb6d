import type { CompactionResult } from "@throughline/compaction";
import {
  readCompactionDetails,
  type CompactionPlan,
  type NothingReason,
  type NothingToCompact,
} from "@throughline/compaction/internal";
import { readWindow } from "@throughline/core";
import type { SessionRecord, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { SessionNames } from "./json-shapes.ts";

/**
 * Holds a compaction in the form that `--json` and the routes show. A planned compaction and one that changed nothing
 * have no record, so their record fields are null.
 */
export interface CompactionRow {
  readonly kind: "compaction";
  readonly key: string;
  readonly sessionId: string;
  readonly state: "compacted" | "planned" | "nothing" | "superseded";
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

/** Bounds the search for an idempotency key, because the store has no index of compaction keys. */
const mostLookedThrough = 20_000;

/**
 * Returns the stored answer of an earlier compaction request with the same key, or null.
 * @param recordId the hash of the key, `-`, and the hash of the body
 * @throws {ThroughlineError} IDEMPOTENCY_MISMATCH when the key was used for another body
 */
export async function compactionByKey(
  store: SessionStore,
  { ref, sessionId }: SessionState,
  recordId: string,
): Promise<CompactionRow | null> {
  const ofKey = recordId.slice(0, recordId.lastIndexOf("-") + 1);
  const options = { order: "descending", limit: mostLookedThrough, payload: "head" } as const;
  for await (const { records } of store.read(ref, options)) {
    const found = records.find(({ id }) => id.startsWith(ofKey));
    if (found === undefined) continue;
    if (found.id !== recordId || found.type !== "compaction")
      throw refused("IDEMPOTENCY_MISMATCH", "The idempotency key was used for another compaction.", { id: found.id });
    for await (const page of store.read(ref, { afterSeq: found.seq - 1, limit: 1 }))
      for (const { seq, record } of page.records) return rowOfRecord(store, { ref, sessionId }, seq, record);
  }
  return null;
}

async function rowOfRecord(
  store: SessionStore,
  { ref, sessionId }: Pick<SessionState, "ref" | "sessionId">,
  seq: number,
  record: SessionRecord,
): Promise<CompactionRow> {
  const { id, firstKeptEntryId, tokensBefore, tokensAfter, messagesRemoved } = record;
  const details = readCompactionDetails(record["details"]);
  return {
    ...unknown,
    key: ref.key,
    sessionId,
    state: "compacted",
    id: String(id),
    seq,
    firstKeptSeq: await seqOf(store, ref, String(firstKeptEntryId)),
    tokensBefore: numberOf(tokensBefore),
    tokensAfter: numberOf(tokensAfter),
    messagesRemoved: numberOf(messagesRemoved),
    source: details?.source ?? null,
    provider: details?.provider ?? null,
    needsRetry: details?.needsRetry ?? null,
  };
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

/** Looks only in the window: the first kept message is always part of it. */
async function seqOf(store: SessionStore, ref: SessionRef, id: string): Promise<number | null> {
  const { records } = await readWindow(store, ref);
  return records.find((record) => record.id === id)?.seq ?? null;
}

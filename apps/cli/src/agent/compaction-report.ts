import type { NothingReason } from "@throughline/compaction/internal";
import { readWindow } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { ManualCompaction } from "@throughline/session/whole-turn";
import { counted } from "../counted.ts";

/** Events that the line at the end repeats, of the plan that was carried out. */
export const compactionReports: ReadonlySet<string> = new Set([
  "compaction.planned",
  "compaction.replanned",
  "compaction.applied",
  "compaction.superseded",
]);

/** A compaction as `--json` shows it. What was only planned, or came to nothing, has no record. */
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

type CompactionPlanned = Pick<CompactionRow, "reason" | "firstKeptSeq" | "tokensBefore" | "messagesRemoved" | "state">;

const unknown = {
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

export function plannedRow(session: SessionNames, planned: CompactionPlanned): CompactionRow {
  return { kind: "compaction", ...session, ...unknown, ...planned };
}

export interface SessionNames {
  readonly key: string;
  readonly sessionId: string;
}

/** What became of a compaction. `firstKeptSeq` is looked up in the window, which begins at or before it. */
export async function compactionRow(
  store: SessionStore,
  ref: SessionRef,
  session: SessionNames,
  result: Exclude<ManualCompaction, { readonly kind: "busy" }>,
): Promise<CompactionRow> {
  const base = { kind: "compaction", ...session, ...unknown } as const;
  if (result.kind === "superseded") return { ...base, state: "superseded" };
  if (result.kind === "nothing") {
    return { ...base, state: "nothing", reason: result.reason, tokensBefore: result.tokens };
  }
  const { recordId, tokensBefore, tokensAfter, messagesRemoved, source, provider, needsRetry, appended } = result;
  return {
    ...base,
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

export async function seqOf(store: SessionStore, ref: SessionRef, id: string): Promise<number | null> {
  const { records } = await readWindow(store, ref);
  return records.find((record) => record.id === id)?.seq ?? null;
}

/** One line for people. */
export function compactionText(row: CompactionRow, messages: number | null): string {
  const { state, tokensBefore, tokensAfter, messagesRemoved, source, provider, needsRetry, firstKeptSeq } = row;
  const before = (tokensBefore ?? 0).toLocaleString("en");
  const removed = counted(messagesRemoved ?? 0, "message");
  const from = firstKeptSeq === null ? "" : `, word for word from #${firstKeptSeq} on`;
  switch (state) {
    case "planned":
      return `Would summarize ${removed} of a context of ~${before} tokens${from}. Nothing was changed.`;
    case "compacted": {
      const by = provider === null || provider === source ? source : `${source}, ${provider}`;
      const later = needsRetry === true ? " No model wrote it; a better one is tried later." : "";
      return `Compacted: ~${before} to ~${(tokensAfter ?? 0).toLocaleString("en")} tokens; ${removed} summarized (${by})${from}.${later}`;
    }
    case "superseded":
      return "Another process compacted first; its summary stands.";
    case "nothing":
      return `Nothing was compacted: ${nothingText(row.reason, messages)}`;
  }
}

function nothingText(reason: NothingReason | null, messages: number | null): string {
  const has = messages === null ? "too few messages" : counted(messages, "message");
  switch (reason) {
    case "too-few-messages":
      return `the context has ${has}, and more than 4 are needed.`;
    case "no-place":
      return "there is no place at which the conversation could be cut.";
    case "no-gain":
      return "a summary would be no shorter than what it replaces.";
    default:
      return "there is no checkpoint that could stand for it.";
  }
}

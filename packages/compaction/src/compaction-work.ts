import {
  readWindow,
  type Clock,
  type RecordIds,
  type SessionRef,
  type SessionStore,
  type Summarizer,
} from "@throughline/core";
import { buildContext, type NeutralMessage } from "@throughline/history";
import { tell, type CompactionListener } from "./compaction-event.ts";
import { settingsForWindow, type CompactionSettings } from "./compaction-settings.ts";
import { findCheckpoints } from "./find-checkpoints.ts";
import { findSummary } from "./find-summary.ts";
import { planCompaction, type CompactionInput, type NothingToCompact } from "./plan-compaction.ts";
import { prepareCompaction, type PreparedCompaction } from "./prepare-compaction.ts";

/** How tokens are counted. */
export interface TokenMeasure {
  /** What one message adds to a request. */
  readonly countMessage: (message: NeutralMessage) => number;
  readonly countText: (text: string) => number;
}

/** Everything one compaction needs. */
export interface CompactionWork extends TokenMeasure {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly summarizers: readonly Summarizer[];
  readonly extractive: Summarizer | null;
  readonly settings: CompactionSettings;
  readonly windowTokens: number | null;
  /** Of the whole next request; null: of the messages alone. */
  readonly totalTokens: number | null;
  readonly targetTokens: number | null;
  readonly preferCheckpoint: boolean;
  readonly deadlineMs: number;
  readonly memoryFolder: string;
  readonly memorySearchTool: string | null;
  readonly signal: AbortSignal | null;
  readonly onEvent: CompactionListener | undefined;
}

/** Plans on the session as it is, and finds a summary. Writes nothing. */
export async function prepareOnce(
  work: CompactionWork,
  onPlanned: () => void,
): Promise<PreparedCompaction | NothingToCompact> {
  const { store, ref, signal } = work;
  const { state, records: read } = await readWindow(store, ref, signal === null ? {} : { signal });
  const { headId, lastSeq } = state.head;
  // What was appended between the two reads is behind the head that is planned on: it arrived meanwhile.
  const records = read.filter(({ seq }) => seq <= lastSeq);
  const input: CompactionInput = {
    records,
    headId,
    totalTokens: work.totalTokens,
    countMessage: work.countMessage,
    settings: settingsForWindow(work.settings, work.windowTokens),
    targetTokens: work.targetTokens,
  };
  const plan = planCompaction(input);
  if (plan.kind === "nothing") return plan;
  onPlanned();
  const { removedMessages, keptMessages, tokensBefore } = plan;
  tell(work.onEvent, { name: "compaction.planned", ref, removedMessages, keptMessages, tokensBefore });
  const found = await findSummary({
    ...work,
    plan,
    replan: (how) => planCompaction({ ...input, ...how }),
    checkpoints: findCheckpoints(records, headId),
    onFailed: (failed) => tell(work.onEvent, { name: "compaction.rung-failed", ref, ...failed }),
  });
  if (found === null) return { kind: "nothing", reason: "no-gain" };
  const { messages } = buildContext(records, { headId });
  const kept = messages.slice(messages.findIndex(({ recordId }) => recordId === found.plan.firstKeptId));
  return prepareCompaction(found, kept, { state, records }, work);
}

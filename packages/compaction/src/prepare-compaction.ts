import type { RecordDraft, RecordIds, SessionState, StoredRecord } from "@throughline/core";
import { isRecordOfType } from "@throughline/core";
import { type NeutralMessage } from "@throughline/history/internal";
import { walkBranch } from "@throughline/history";
import type { CompactionDetails, ExtractedDetails, SummarySource, SummaryUsage } from "./compaction-details.ts";
import { extractDetailsInSlices, shorten, type ExtractOptions } from "./extract-details.ts";
import type { FoundSummary } from "./find-summary.ts";
import type { CompactionPlan } from "./plan-compaction.ts";
import { summaryText } from "./summary-text.ts";

/** A compaction with its summary, ready to be put in place. Nothing is written yet. */
export interface PreparedCompaction {
  /** What the compaction replaces; with another cut than the first plan where the summary needed one. */
  readonly plan: CompactionPlan;
  /** The session that was planned on; a session that a reset began has another id. */
  readonly sessionId: string;
  /** Where the summary came from. */
  readonly source: SummarySource;
  /** Who wrote the summary, as its summarizer calls itself; null for a checkpoint and a stub. */
  readonly provider: string | null;
  /** The checkpoint that is the summary; null where none is. */
  readonly checkpointId: string | null;
  /** Whether the summary is to be made again, because no model wrote it or it may repeat redacted text. */
  readonly needsRetry: boolean;
  /** Of the calls for the summary; null where no provider stated any. */
  readonly usage: SummaryUsage | null;
  /** The estimated size of the next request in tokens, with the compaction. */
  readonly tokensAfter: number;
  /** The record, and settings of the branch that would fall out of the window with what is removed. */
  readonly drafts: readonly RecordDraft[];
  /** The id that the compaction's record gets. */
  readonly recordId: string;
  /** Sizes of the removed records when they were read: one that was redacted since has another. */
  readonly sizes: ReadonlyMap<number, number>;
}

export interface PrepareOptions extends Pick<ExtractOptions, "memoryFolder" | "writeTools"> {
  readonly ids: RecordIds;
  readonly countText: (text: string) => number;
  readonly memorySearchTool: string | null;
}

const requestChars = 800;
const retriedSources: ReadonlySet<SummarySource> = new Set(["older-checkpoint", "extractive", "stub"]);

/** Puts the record together: the prose, the details that no model may lose, the cut. */
export async function prepareCompaction(
  found: FoundSummary,
  kept: readonly NeutralMessage[],
  session: { readonly state: SessionState; readonly records: readonly StoredRecord[] },
  options: PrepareOptions,
): Promise<PreparedCompaction> {
  const { plan, source, provider, checkpointId, usage } = found;
  const extracted = await extractDetailsInSlices(plan.removed, {
    ...options,
    previous: plan.previous?.isOutdated === true ? null : (plan.previous?.details ?? null),
    kept,
    memoryAfterSeq: session.records.find(({ id }) => id === plan.previous?.id)?.seq ?? 0,
  });
  const summary = wholeSummary(found, extracted, kept, options);
  const needsRetry = retriedSources.has(source) || plan.previous?.isOutdated === true;
  const details: CompactionDetails = {
    v: 1,
    source,
    provider,
    needsRetry,
    summarizedFromSeq: plan.removedFromSeq,
    summarizedToSeq: plan.removedToSeq,
    previousSummaryId: plan.previous?.id ?? null,
    ...(usage === null ? {} : { usage }),
    ...extracted,
  };
  const tokensAfter = plan.keptTokens + options.countText(summary);
  const recordId = options.ids.next();
  const record: RecordDraft = {
    type: "compaction",
    id: recordId,
    summary,
    firstKeptEntryId: plan.firstKeptId,
    tokensBefore: plan.tokensBefore,
    tokensAfter,
    messagesRemoved: plan.removedMessages,
    ...(checkpointId === null ? {} : { fromCheckpoint: true, checkpointId }),
    details,
  };
  const drafts = [record, ...settingDrafts(session.records, plan)];
  const sizes = sizesOf(session.records, plan);
  return {
    plan,
    sessionId: session.state.sessionId,
    source,
    provider,
    checkpointId,
    needsRetry,
    usage,
    tokensAfter,
    drafts,
    recordId,
    sizes,
  };
}

/** Prose and details, smaller than what they replace, whatever the details would like. */
function wholeSummary(
  { plan, prose }: FoundSummary,
  details: ExtractedDetails,
  kept: readonly NeutralMessage[],
  { countText, memorySearchTool }: PrepareOptions,
): string {
  const text = {
    prose,
    details,
    countText,
    visibleText: kept.map(textOf).join("\n"),
    splitRequest: plan.splitRequest === null ? null : shorten(textOf(plan.splitRequest), requestChars),
    memorySearchTool,
  };
  const room = plan.replacedTokens - 1 - countText(summaryText({ ...text, maxDetailTokens: 0 }));
  if (room < 0) return prose;
  return summaryText({ ...text, maxDetailTokens: Math.min(plan.settings.maxDetailTokens, room) });
}

/** A thinking level or model set before the window would be forgotten by whoever reads the window alone. */
function settingDrafts(records: readonly StoredRecord[], plan: CompactionPlan): readonly RecordDraft[] {
  const { path } = walkBranch(records, plan.headId);
  const drafts: RecordDraft[] = [];
  const level = path.findLast(({ record }) => isRecordOfType(record, "thinking_level_change"));
  if (level !== undefined && level.seq < plan.windowFromSeq) {
    drafts.push({ type: "thinking_level_change", thinkingLevel: level.record["thinkingLevel"] });
  }
  const model = path.findLast(({ record }) => isRecordOfType(record, "model_change"));
  if (model !== undefined && model.seq < plan.windowFromSeq && !hasReplyFrom(path, plan.windowFromSeq)) {
    const { provider, modelId } = model.record;
    drafts.push({ type: "model_change", provider, modelId });
  }
  return drafts;
}

/** A reply names its model. */
function hasReplyFrom(path: readonly StoredRecord[], fromSeq: number): boolean {
  return path.some(({ seq, type, record }) => {
    const message = seq >= fromSeq && type === "message" ? (record["message"] as { role?: unknown } | null) : null;
    return message?.role === "assistant";
  });
}

function sizesOf(records: readonly StoredRecord[], plan: CompactionPlan): ReadonlyMap<number, number> {
  const { removedFromSeq, removedToSeq } = plan;
  return new Map(
    records.flatMap(({ seq, bytes }) => (seq >= removedFromSeq && seq <= removedToSeq ? [[seq, bytes] as const] : [])),
  );
}

function textOf(message: NeutralMessage): string {
  return message.content
    .map((block) => {
      if (block.type === "text") return block.text;
      return block.type === "toolCall" ? JSON.stringify(block.arguments) : "";
    })
    .join("\n");
}

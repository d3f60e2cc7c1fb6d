import type { RecordDraft, RecordIds, SessionState, StoredRecord } from "@throughline/core";
import { isRecordOfType } from "@throughline/core";
import type { NeutralMessage } from "@throughline/history/internal";
import { walkBranch } from "@throughline/history";
import type { CompactionDetails, ExtractedDetails, SummarySource, SummaryUsage } from "./compaction-details.ts";
import { extractDetailsInSlices, shorten, type ExtractOptions } from "./extract-details.ts";
import type { FoundSummary } from "./find-summary.ts";
import type { CompactionPlan } from "./plan-compaction.ts";
import { summaryText } from "./summary-text.ts";

/** Holds a compaction with its summary, ready to be applied. Nothing is written yet. */
export interface PreparedCompaction {
  /**
   * Describes which messages the compaction replaces. The cut may differ from the first plan when the summary needed
   * it.
   */
  readonly plan: CompactionPlan;
  /** Holds the id of the planned session. A session that a reset started has another id. */
  readonly sessionId: string;
  /** States which source the summary came from. */
  readonly source: SummarySource;
  /** Names the summarizer that wrote the summary; null for a checkpoint and a stub. */
  readonly provider: string | null;
  /** Holds the id of the checkpoint that became the summary; null for any other source. */
  readonly checkpointId: string | null;
  /** Is true when the summary needs a retry, because no model wrote it or because it may repeat redacted text. */
  readonly needsRetry: boolean;
  /** Counts the calls for the summary and their tokens; null when no provider stated them. */
  readonly usage: SummaryUsage | null;
  /** Holds the estimated size of the next request in tokens, with the compaction. */
  readonly tokensAfter: number;
  /**
   * Lists the drafts to append: the compaction, then settings of the branch that would leave the window with the
   * removed messages.
   */
  readonly drafts: readonly RecordDraft[];
  /** Holds the id of the compaction's record. */
  readonly recordId: string;
  /**
   * Maps the sequence numbers of removed records to their sizes at the time of reading. A redaction changes the size.
   */
  readonly sizes: ReadonlyMap<number, number>;
}

export interface PrepareOptions extends Pick<ExtractOptions, "memoryFolder" | "writeTools"> {
  readonly ids: RecordIds;
  readonly countText: (text: string) => number;
  readonly memorySearchTool: string | null;
}

const requestChars = 800;
const retriedSources: ReadonlySet<SummarySource> = new Set(["older-checkpoint", "extractive", "stub"]);

/** Adds the details that no model may lose, because a summarizer can omit facts that the next turn needs. */
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

/** Limits the details so that the summary stays smaller than the part it replaces. */
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

/** A reader of the window alone would miss a thinking level or model that was set before the window. */
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

/** A reply states its model, so a window with a reply needs no copy of the model change. */
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

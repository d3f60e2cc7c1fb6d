import { findRecordProblem, isFlushMessage, outdatedSummaryIds, proseOf } from "@throughline/core/internal";
import { isRecordOfType, type StoredRecord } from "@throughline/core";
import { buildContext, type Context, renderText, walkBranch } from "@throughline/history";

/** What a checkpoint is made of. */
export interface CheckpointMaterial {
  readonly text: string;
  /** Of the newest checkpoint behind the last compaction, else of that compaction. */
  readonly previousSummary: string | null;
  /** The compaction the whole chain of summaries begins with; null when there is none. */
  readonly previousSummaryId: string | null;
  /** The last record that is covered. */
  readonly coversToId: string;
  /** Of the context, without what a flush put in. */
  readonly messageCount: number;
}

const toolResultChars = 2000;

/** What is new since the summary before; null when nothing is. */
export function checkpointMaterial(records: readonly StoredRecord[], headId: string | null): CheckpointMaterial | null {
  const context = buildContext(records, { headId });
  if (context.headId === null) return null;
  const { path } = walkBranch(records, headId);
  const flushIds = new Set(records.flatMap(({ id, record }) => (isFlushMessage(record) ? [id] : [])));
  const spoken = context.messages.filter(
    ({ role, recordId }) => role !== "compactionSummary" && !flushIds.has(recordId),
  );
  const before = newestCheckpoint(records, path);
  const covered = before === null ? -1 : path.findIndex(({ id }) => id === before.coversToId);
  const after = new Set(path.slice(covered + 1).map(({ id }) => id));
  const messages = spoken.filter(({ recordId }) => after.has(recordId));
  if (messages.length === 0) return null;
  const compaction = context.messages[0]?.role === "compactionSummary" ? context.messages[0] : null;
  const prose = compaction?.content.map((block) => (block.type === "text" ? block.text : "")).join("\n") ?? null;
  return {
    text: renderText(only(context, messages), { toolResultChars }),
    previousSummary: before?.summary ?? (prose === null ? null : proseOf(prose)),
    previousSummaryId: compaction?.recordId ?? null,
    coversToId: context.headId,
    messageCount: spoken.length,
  };
}

function only(context: Context, messages: Context["messages"]): Context {
  return { ...context, messages };
}

/** The newest checkpoint that covers a part of the branch behind its newest compaction or reset. */
function newestCheckpoint(
  records: readonly StoredRecord[],
  path: readonly StoredRecord[],
): { readonly summary: string; readonly coversToId: string } | null {
  const boundary = path.findLastIndex(({ type, side }) => !side && (type === "compaction" || type === "reset"));
  const places = new Map(path.map(({ id }, index) => [id, index]));
  const outdated = outdatedSummaryIds(records);
  for (const { id, record } of records.toReversed()) {
    if (outdated.has(id) || !isRecordOfType(record, "checkpoint") || findRecordProblem(record) !== null) continue;
    const { summary, coversToId = record.parentId ?? "" } = record.checkpoint;
    if ((places.get(coversToId) ?? -1) > boundary && summary.trim() !== "") return { summary, coversToId };
  }
  return null;
}

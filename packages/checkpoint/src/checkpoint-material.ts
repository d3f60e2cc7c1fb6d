import { findRecordProblem, isFlushMessage, outdatedSummaryIds, proseOf, type Steps } from "@throughline/core/internal";
import { isRecordOfType, type StoredRecord } from "@throughline/core";
import type { Context } from "@throughline/history";
import { contextSteps, renderTextPieces, walkSteps } from "@throughline/history/internal";

export interface CheckpointMaterial {
  readonly text: string;
  /**
   * Holds the summary of the newest checkpoint after the last compaction. Without one it is the summary of that
   * compaction.
   */
  readonly previousSummary: string | null;
  /** Names the compaction at the start of the summary chain. Null means that there was no compaction. */
  readonly previousSummaryId: string | null;
  /** Names the last covered record. */
  readonly coversToId: string;
  /** Counts the messages of the context; messages of a memory flush do not count. */
  readonly messageCount: number;
}

const toolResultChars = 2000;

/**
 * Collects the messages since the previous summary, with one step per record so that it can run in slices. Null when
 * there are none.
 */
export function* checkpointMaterial(
  records: readonly StoredRecord[],
  headId: string | null,
): Steps<CheckpointMaterial | null> {
  const context = yield* contextSteps(records, { headId });
  if (context.headId === null) return null;
  const { indexes } = yield* walkSteps(records, headId);
  const path = indexes.map((index) => records[index] as StoredRecord);
  const flushIds = new Set<string>();
  for (const { id, record } of records) {
    if (isFlushMessage(record)) flushIds.add(id);
    yield;
  }
  const spoken = context.messages.filter(
    ({ role, recordId }) => role !== "compactionSummary" && !flushIds.has(recordId),
  );
  const before = newestCheckpoint(records, path);
  yield;
  const covered = before === null ? -1 : path.findIndex(({ id }) => id === before.coversToId);
  const after = new Set(path.slice(covered + 1).map(({ id }) => id));
  const messages = spoken.filter(({ recordId }) => after.has(recordId));
  if (messages.length === 0) return null;
  const compaction = context.messages[0]?.role === "compactionSummary" ? context.messages[0] : null;
  const prose = compaction?.content.map((block) => (block.type === "text" ? block.text : "")).join("\n") ?? null;
  return {
    text: yield* textOf(only(context, messages)),
    previousSummary: before?.summary ?? (prose === null ? null : proseOf(prose)),
    previousSummaryId: compaction?.recordId ?? null,
    coversToId: context.headId,
    messageCount: spoken.length,
  };
}

function* textOf(context: Context): Steps<string> {
  const pieces: string[] = [];
  for (const piece of renderTextPieces(context, { toolResultChars })) {
    pieces.push(piece);
    yield;
  }
  return pieces.join("");
}

function only(context: Context, messages: Context["messages"]): Context {
  return { ...context, messages };
}

/**
 * Returns the newest checkpoint that covers records after the newest compaction or reset of the branch. An older
 * checkpoint covers content that is no longer in the context.
 */
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

import { type Checkpoint, findRecordProblem, outdatedSummaryIds, type Steps } from "@throughline/core/internal";
import { isRecordOfType, type StoredRecord } from "@throughline/core";
import { walkSteps } from "@throughline/history/internal";

export interface UsableCheckpoint {
  readonly id: string;
  readonly coversToId: string;
  readonly tokensAtCheckpoint: number;
  readonly prose: string;
  /**
   * Holds the id of the compaction whose summary the checkpoint continues; null when the checkpoint does not state it.
   */
  readonly previousSummaryId: string | null;
}

/**
 * Returns the checkpoints that a compaction may use, newest first. Checkpoints before the newest compaction or reset
 * would repeat its range. Checkpoints that may repeat redacted text are left out as well.
 */
export function* findCheckpoints(
  records: readonly StoredRecord[],
  headId: string | null,
): Steps<readonly UsableCheckpoint[]> {
  const { indexes } = yield* walkSteps(records, headId);
  const path = indexes.map((index) => records[index] as StoredRecord);
  const boundary = path.findLastIndex(({ type, side }) => !side && (type === "compaction" || type === "reset"));
  const places = new Map(path.map(({ id }, index) => [id, index]));
  yield;
  const outdated = outdatedSummaryIds(records);
  yield;
  return records.toReversed().flatMap((stored) => {
    const { record } = stored;
    if (outdated.has(stored.id) || !isRecordOfType(record, "checkpoint") || findRecordProblem(record) !== null)
      return [];
    const { checkpoint } = record;
    const coversToId = checkpoint.coversToId ?? record.parentId ?? "";
    const place = places.get(coversToId);
    if (place === undefined || place <= boundary || checkpoint.summary.trim() === "") return [];
    const { previousSummaryId } = checkpoint as { readonly previousSummaryId?: unknown };
    return [
      {
        id: stored.id,
        coversToId,
        tokensAtCheckpoint: checkpoint.tokensAtCheckpoint,
        prose: proseOfCheckpoint(checkpoint),
        previousSummaryId: typeof previousSummaryId === "string" ? previousSummaryId : null,
      },
    ];
  });
}

function proseOfCheckpoint({ summary, topics, keyDecisions, openQuestions }: Checkpoint): string {
  return [
    summary.trim(),
    ...section("Topics", topics),
    ...section("Decisions", keyDecisions),
    ...section("Open questions", openQuestions),
  ].join("\n\n");
}

function section(heading: string, items: readonly string[] | undefined): readonly string[] {
  return items === undefined || items.length === 0
    ? []
    : [`${heading}:\n${items.map((item) => `- ${item}`).join("\n")}`];
}

import { type Checkpoint, findRecordProblem, outdatedSummaryIds, type Steps } from "@throughline/core/internal";
import { isRecordOfType, type StoredRecord } from "@throughline/core";
import { walkSteps } from "@throughline/history/internal";

/** A checkpoint that covers a part of the branch behind its newest compaction. */
export interface UsableCheckpoint {
  readonly id: string;
  readonly coversToId: string;
  readonly tokensAtCheckpoint: number;
  /** The summary with its decisions and open questions. */
  readonly prose: string;
  /** The compaction whose summary it already builds on; null when it does not say. */
  readonly previousSummaryId: string | null;
}

/** The checkpoints a compaction may use, the newest first. One from before the newest compaction or reset is none,
 * nor is one that may repeat what was redacted. */
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

import { assertKnownOptions, findRecordProblem, optionKinds, type OptionTable } from "@throughline/core/internal";
import { isRecordOfType, type SessionRef, type SessionStore } from "@throughline/core";

/** Shows a checkpoint of a session. */
export interface ListedCheckpoint {
  /** States the id of the checkpoint's record. */
  readonly id: string;
  /** States the sequence number of the checkpoint's record. */
  readonly seq: number;
  /** States the seq of the last covered record. Null when the log does not have that record. */
  readonly coversToSeq: number | null;
  /** Counts the tokens of the context at the checkpoint; 0 when the number was unknown. */
  readonly tokensAtCheckpoint: number;
  /** Counts the messages of the context at the checkpoint, without those of a memory flush. */
  readonly messageCountAtCheckpoint: number;
  /** Summarizes the conversation up to the checkpoint in prose. */
  readonly summary: string;
  /** Lists the topics as short phrases; empty when the checkpoint names none. */
  readonly topics: readonly string[];
  /** Lists the decisions; empty when the checkpoint names none. */
  readonly keyDecisions: readonly string[];
  /** Lists the open questions; empty when the checkpoint names none. */
  readonly openQuestions: readonly string[];
  /** Names the writer, such as `anthropic/claude-haiku-4-5`. Null when the record names none. */
  readonly model: string | null;
  /** States the time of the record in UTC milliseconds. Null when its timestamp is invalid. */
  readonly atMs: number | null;
}

export const listTable: OptionTable<{ readonly signal?: AbortSignal }> = { signal: optionKinds.signal };

/**
 * Returns the checkpoints of a session, oldest first. It reads the heads of all records and then the checkpoint
 * records.
 *
 * @throws {ThroughlineError} SESSION_NOT_FOUND, INPUT_INVALID, and what the store throws
 */
export async function listCheckpoints(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<readonly ListedCheckpoint[]> {
  assertKnownOptions("listCheckpoints", options, listTable);
  const seqById = new Map<string, number>();
  const seqs: number[] = [];
  for await (const page of store.read(ref, { ...options, payload: "head" })) {
    for (const { id, seq, type } of page.records) {
      seqById.set(id, seq);
      if (type === "checkpoint") seqs.push(seq);
    }
  }
  const listed: ListedCheckpoint[] = [];
  for (const seq of seqs) {
    for await (const page of store.read(ref, { ...options, afterSeq: seq - 1, beforeSeq: seq + 1 })) {
      for (const { record, id, tsMs } of page.records) {
        if (!isRecordOfType(record, "checkpoint") || findRecordProblem(record) !== null) continue;
        const { checkpoint } = record;
        const { model } = checkpoint as { readonly model?: unknown };
        listed.push({
          id,
          seq,
          coversToSeq: seqById.get(checkpoint.coversToId ?? record.parentId ?? "") ?? null,
          tokensAtCheckpoint: checkpoint.tokensAtCheckpoint,
          messageCountAtCheckpoint: checkpoint.messageCountAtCheckpoint,
          summary: checkpoint.summary,
          topics: checkpoint.topics ?? [],
          keyDecisions: checkpoint.keyDecisions ?? [],
          openQuestions: checkpoint.openQuestions ?? [],
          model: typeof model === "string" ? model : null,
          atMs: tsMs,
        });
      }
    }
  }
  return listed;
}

import { assertKnownOptions, findRecordProblem, optionKinds, type OptionTable } from "@throughline/core/internal";
import { isRecordOfType, type SessionRef, type SessionStore } from "@throughline/core";

/** A checkpoint as it is shown. */
export interface ListedCheckpoint {
  /** The id of the checkpoint's record. */
  readonly id: string;
  /** The sequence number of the checkpoint's record. */
  readonly seq: number;
  /** Null when the record it covers to is not in the log. */
  readonly coversToSeq: number | null;
  /** How many tokens the context had; 0 when that was unknown. */
  readonly tokensAtCheckpoint: number;
  /** How many messages the context had, without those of a memory flush. */
  readonly messageCountAtCheckpoint: number;
  /** The conversation up to there in prose. */
  readonly summary: string;
  /** The topics as short phrases; empty when the checkpoint names none. */
  readonly topics: readonly string[];
  /** What was decided; empty when the checkpoint names nothing. */
  readonly keyDecisions: readonly string[];
  /** What was still open; empty when the checkpoint names nothing. */
  readonly openQuestions: readonly string[];
  /** The name of the writer, such as `anthropic/claude-haiku-4-5`; null when the record names none. */
  readonly model: string | null;
  /** When the record was written, UTC milliseconds; null when its timestamp is no time. */
  readonly atMs: number | null;
}

/** The kinds of the options of `listCheckpoints`. */
export const listTable: OptionTable<{ readonly signal?: AbortSignal }> = { signal: optionKinds.signal };

/**
 * The checkpoints of a session, oldest first. Reads the heads of all records and the checkpoints themselves.
 *
 * @throws {ThroughlineError} SESSION_NOT_FOUND, INPUT_INVALID, and what the store throws
 */
export async function listCheckpoints(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal } = {},
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

import { ThroughlineError } from "@throughline/core";
import type { Finding, RecordDraft, StoredRecord } from "@throughline/core";
import { runSteps, type Steps } from "@throughline/core/internal";
import { findBoundary } from "./find-boundary.ts";
import { walkBranch, walkSteps } from "./walk-branch.ts";

/** What to append, and with which options, for the head to move. Nothing is removed: the branch left stays readable. */
export interface RewindPlan {
  /** The records to append; they state where the head goes. */
  readonly drafts: readonly RecordDraft[];
  /** The options of that append. */
  readonly options: {
    /** The record that becomes the head; null for before the first. */
    readonly rewindTo: string | null;
    /** Nobody may have written in between. */
    readonly expect: {
      /** The head that the plan was made for. */
      readonly head: string | null;
    };
    /** The oldest record the context needs from now on. */
    readonly windowFromSeq: number;
  };
  /** Main records of the current branch that are behind the head no more, oldest first. */
  readonly leftIds: readonly string[];
}

/** A plan with the text of the request it goes back to. */
export interface TurnPlan extends RewindPlan {
  /** The message of the user that the turn begins with. */
  readonly request: StoredRecord;
}

/**
 * Moves the head to a main record, on this branch or another; null moves it before the first.
 *
 * @param records all of the session, or a window that holds the target
 * @throws {ThroughlineError} RECORD_NOT_FOUND when no main record has the id
 */
export function planRewind(
  records: readonly StoredRecord[],
  headId: string | null,
  targetId: string | null,
): RewindPlan {
  return runSteps(rewindSteps(records, headId, targetId));
}

/** What `planRewind` gives, a record a step. */
export function* rewindSteps(
  records: readonly StoredRecord[],
  headId: string | null,
  targetId: string | null,
): Steps<RewindPlan> {
  if (targetId !== null && !records.some(({ id, side }) => id === targetId && !side)) {
    throw new ThroughlineError("RECORD_NOT_FOUND", `no main record has the id ${targetId}`, { details: { targetId } });
  }
  const target = new Set((yield* pathSteps(records, targetId)).map(({ id }) => id));
  const left = (yield* pathSteps(records, headId)).filter(({ id, side }) => !side && !target.has(id));
  const windowFromSeq = yield* fromSeqSteps(records, targetId);
  return {
    drafts: targetId === headId ? [] : [{ type: "leaf", targetId }],
    options: { rewindTo: targetId, expect: { head: headId }, windowFromSeq },
    leftIds: left.map(({ id }) => id),
  };
}

/** Takes the last turns back, including their requests; null if there are fewer turns. */
export function planUndo(records: readonly StoredRecord[], headId: string | null, turns: number = 1): TurnPlan | null {
  const requests = pathOf(records, headId).filter(isRequest);
  const request = requests.at(-turns);
  if (request === undefined || turns < 1) return null;
  const path = pathOf(records, headId);
  const before = path.slice(0, path.indexOf(request)).findLast(({ side }) => !side);
  return { ...planRewind(records, headId, before?.id ?? null), request };
}

/** Goes back to the last request, for another reply to it; null when there is none. Nothing to append when it is the head. */
export function planRetry(records: readonly StoredRecord[], headId: string | null): TurnPlan | null {
  const request = pathOf(records, headId).findLast(isRequest);
  return request === undefined ? null : { ...planRewind(records, headId, request.id), request };
}

/**
 * The oldest seq that the context at a head needs: the boundary a writer states to its store. 1 when the records do not
 * show it.
 */
export function contextFromSeq(records: readonly StoredRecord[], headId: string | null): number {
  return runSteps(fromSeqSteps(records, headId));
}

function* fromSeqSteps(records: readonly StoredRecord[], headId: string | null): Steps<number> {
  const path = yield* pathSteps(records, headId);
  const findings: Finding[] = [];
  const boundary = findBoundary(path, records, findings);
  const isWindow = (records[0]?.seq ?? 1) > 1;
  if (boundary === null || (isWindow && findings.length > 0)) return 1;
  // A parent may be stored after its child: what counts is the lowest number, not the first on the way.
  return path.slice(boundary.keptFrom).reduce((lowest, { seq }) => Math.min(lowest, seq), path[boundary.at]?.seq ?? 1);
}

function* pathSteps(records: readonly StoredRecord[], headId: string | null): Steps<readonly StoredRecord[]> {
  const { indexes } = yield* walkSteps(records, headId);
  return indexes.map((index) => records[index] as StoredRecord);
}

function pathOf(records: readonly StoredRecord[], headId: string | null): readonly StoredRecord[] {
  return walkBranch(records, headId).path;
}

function isRequest({ type, record, side }: StoredRecord): boolean {
  const message = type === "message" && !side ? record["message"] : null;
  return typeof message === "object" && message !== null && (message as { role?: unknown }).role === "user";
}

import { ThroughlineError } from "@throughline/core";
import type { Finding, RecordDraft, StoredRecord } from "@throughline/core";
import { isFields, runSteps, type Steps } from "@throughline/core/internal";
import { findBoundary } from "./find-boundary.ts";
import { messageTreeSteps } from "./message-tree.ts";
import { walkBranch, walkSteps } from "./walk-branch.ts";

/** Describes the append that moves the head. It removes no records: the branch that is left stays readable. */
export interface RewindPlan {
  /** Lists the records to append. They state the new head. */
  readonly drafts: readonly RecordDraft[];
  /** Holds the options of that append. */
  readonly options: {
    /** States the record that becomes the head; null means before the first record. */
    readonly rewindTo: string | null;
    /** Guards against another process that writes in between. */
    readonly expect: {
      /** States the head for which the plan was made. */
      readonly head: string | null;
    };
    /** States the oldest record that the context needs from now on. */
    readonly windowFromSeq: number;
    /** Ends the wait of tool calls for a decision, which a rewind leaves behind. */
    readonly entry: {
      /** Removes the field. */
      readonly waiting: undefined;
    };
  };
  /** Lists the main records of the current branch that are no longer behind the head, oldest first. */
  readonly leftIds: readonly string[];
}

/** Holds a rewind plan with the request to which it returns. */
export interface TurnPlan extends RewindPlan {
  /** Holds the user message that starts the turn. */
  readonly request: StoredRecord;
}

/**
 * Plans to move the head to a main record on any branch; null moves it before the first record.
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

/** Plans like `planRewind`, one record per step, so that a long session does not block the process. */
export function* rewindSteps(
  records: readonly StoredRecord[],
  headId: string | null,
  targetId: string | null,
): Steps<RewindPlan> {
  if (targetId !== null) findMain(records, targetId);
  const target = new Set((yield* pathSteps(records, targetId)).map(({ id }) => id));
  const left = (yield* pathSteps(records, headId)).filter(({ id, side }) => !side && !target.has(id));
  const windowFromSeq = yield* fromSeqSteps(records, targetId);
  return {
    drafts: targetId === headId ? [] : [{ type: "leaf", targetId }],
    options: { rewindTo: targetId, expect: { head: headId }, windowFromSeq, entry: { waiting: undefined } },
    leftIds: left.map(({ id }) => id),
  };
}

/** Plans to undo the last turns, including their requests. Returns null if there are fewer turns. */
export function planUndo(records: readonly StoredRecord[], headId: string | null, turns: number = 1): TurnPlan | null {
  const requests = pathOf(records, headId).filter(isRequest);
  const request = requests.at(-turns);
  if (request === undefined || turns < 1) return null;
  const path = pathOf(records, headId);
  const before = path.slice(0, path.indexOf(request)).findLast(({ side }) => !side);
  return { ...planRewind(records, headId, before?.id ?? null), request };
}

/**
 * Plans to return to the last request, to get another reply to it. Returns null if there is no request. The plan
 * appends nothing if the request is the head.
 */
export function planRetry(records: readonly StoredRecord[], headId: string | null): TurnPlan | null {
  return runSteps(retrySteps(records, headId));
}

/** Plans like `planRetry`, one record per step. */
export function* retrySteps(records: readonly StoredRecord[], headId: string | null): Steps<TurnPlan | null> {
  const request = (yield* pathSteps(records, headId)).findLast(isRequest);
  return request === undefined ? null : { ...(yield* rewindSteps(records, headId, request.id)), request };
}

/**
 * Plans to return to the place before a request of any branch, so that another request takes its place.
 * @throws {ThroughlineError} RECORD_NOT_FOUND, INPUT_INVALID for a record that is no message of a user
 */
export function* editSteps(
  records: readonly StoredRecord[],
  headId: string | null,
  requestId: string,
): Steps<RewindPlan> {
  if (!isRequest(findMain(records, requestId)))
    throw new ThroughlineError("INPUT_INVALID", `Record ${requestId} is not a message of the user.`, {
      outcome: "not-applied",
      details: { recordId: requestId },
    });
  const path = yield* pathSteps(records, requestId);
  const before = path.slice(0, -1).findLast(({ side }) => !side);
  return yield* rewindSteps(records, headId, before?.id ?? null);
}

/**
 * Plans to return to where a record led: to the newest main record behind it.
 * @throws {ThroughlineError} RECORD_NOT_FOUND
 */
export function* switchSteps(
  records: readonly StoredRecord[],
  headId: string | null,
  recordId: string,
): Steps<RewindPlan> {
  const stored = findMain(records, recordId);
  const newest = (yield* messageTreeSteps(records)).newest(stored.seq) ?? stored;
  return yield* rewindSteps(records, headId, newest.id);
}

/**
 * Returns the oldest seq that the context at a head needs. A writer states this boundary to its store. Returns 1 if the
 * records do not show the boundary.
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
  // A parent may be stored after its child, so the lowest seq counts and not the first one on the path.
  return path.slice(boundary.keptFrom).reduce((lowest, { seq }) => Math.min(lowest, seq), path[boundary.at]?.seq ?? 1);
}

function* pathSteps(records: readonly StoredRecord[], headId: string | null): Steps<readonly StoredRecord[]> {
  const { indexes } = yield* walkSteps(records, headId);
  return indexes.map((index) => records[index] as StoredRecord);
}

/** @throws {ThroughlineError} RECORD_NOT_FOUND */
function findMain(records: readonly StoredRecord[], targetId: string): StoredRecord {
  const found = records.findLast(({ id, side }) => id === targetId && !side);
  if (found !== undefined) return found;
  throw new ThroughlineError("RECORD_NOT_FOUND", `no main record has the id ${targetId}`, {
    outcome: "not-applied",
    details: { targetId },
  });
}

function pathOf(records: readonly StoredRecord[], headId: string | null): readonly StoredRecord[] {
  return walkBranch(records, headId).path;
}

function isRequest({ type, record, side }: StoredRecord): boolean {
  const message = type === "message" && !side ? record["message"] : null;
  if (!isFields(message)) return false;
  // A correction asks for another form of the answer; the request is the message before it.
  return message["role"] === "user" && message["source"] !== "correction";
}

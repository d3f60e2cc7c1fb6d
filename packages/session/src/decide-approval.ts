import {
  appendOnce,
  type AppendOptions,
  type Clock,
  hasErrorCode,
  type RecordDraft,
  readWindow,
  type SessionHead,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import {
  assertArgument,
  optionKinds,
  sessionBusy,
  waitingCalls,
  waitingSign,
  type WaitingCalls,
} from "@throughline/core/internal";
import { digest } from "./begin-turn.ts";
import { approvalDraft, expiredText, isApproval, readApproval } from "./approval-record.ts";
import { pendingApprovals, type ApprovalPlace } from "./pending-approvals.ts";
import { processOwners } from "./process-owners.ts";
import type { ApprovalAnswer } from "./session-options.ts";
import type { TurnHost } from "./turn-host.ts";
import { type PendingApproval, turnMarkDraft } from "./turn-mark.ts";
import { WindowFacts } from "./window-facts.ts";

/** Holds a decision that the log has. */
export interface DecidedApproval {
  readonly callId: string;
  readonly isAllowed: boolean;
  /** Holds what the model reads of a refusal; null for an approval. */
  readonly words: string | null;
  /** Is true when an earlier request stored the same decision. */
  readonly replayed: boolean;
}

export interface DecideApprovalOptions {
  readonly callId: string;
  readonly answer: ApprovalAnswer;
  readonly clock: Clock;
}

interface ReadPlace extends ApprovalPlace {
  readonly records: readonly StoredRecord[];
}

/** Lists the calls that wait for a decision, from the store alone. The list is empty while a turn runs. */
export async function listApprovals(
  store: SessionStore,
  ref: SessionRef,
  clock: Clock,
): Promise<readonly PendingApproval[]> {
  const place = await readPlace(store, ref);
  return ref.archiveId === undefined && runningTurn(place, clock) === null
    ? pendingApprovals(place, clock.nowMs())
    : [];
}

/**
 * Stores a decision on a call that waits, outside of a turn. No tool runs: the program that resumes the turn runs it. The
 * first decision holds, and the same decision again changes nothing.
 *
 * @throws {ThroughlineError} APPROVAL_DECIDED for another decision and for a call that does not wait, SESSION_BUSY while
 *   a turn runs, and what the store throws
 */
export async function decideApproval(
  store: SessionStore,
  ref: SessionRef,
  options: DecideApprovalOptions,
): Promise<DecidedApproval> {
  const { callId, clock } = options;
  const place = await readPlace(store, ref);
  const earlier = decisionIn(place, callId);
  if (earlier !== null) return sameDecision(earlier, options, ref);
  const turn = runningTurn(place, clock);
  if (turn !== null) throw sessionBusy(turn, clock.nowMs());
  const nowMs = clock.nowMs();
  const expiredAtMs = place.facts.openCalls.expiredAtMs(callId, nowMs);
  if (expiredAtMs !== null) throw decided(ref, callId, expiredText(expiredAtMs));
  const pending = pendingApprovals(place, nowMs).find((call) => call.callId === callId);
  if (pending === undefined) throw decided(ref, callId, "The call waits for no decision.");
  await append(store, ref, place, pending, options);
  const after = await readPlace(store, ref);
  const winner = decisionIn(after, callId);
  // A turn that began meanwhile does not see the decision, because its record came after the turn's beginning.
  if (winner === null && after.head.turn !== null) throw sessionBusy(after.head.turn, clock.nowMs());
  if (winner === null) throw decided(ref, callId, "The conversation continued before the decision was stored.");
  return { ...sameDecision(winner, options, ref), replayed: false };
}

/** Creates the decision with which a program takes its question back. */
export function withdrawal(words: string = withdrawnText): ApprovalAnswer {
  return { refuse: words, decision: "cancel", by: "program" };
}

const withdrawnText = "The program took its question back. The call was not run.";

/** Takes the question about a call back, for the program that asked. @throws {ThroughlineError} as `decideApproval` */
export async function withdrawApproval(host: TurnHost, callId: string, words: string = withdrawnText): Promise<void> {
  assertArgument("withdrawApproval", "callId", callId, optionKinds.filledText);
  assertArgument("withdrawApproval", "words", words, optionKinds.filledText);
  host.assertOpen();
  const { log, shared } = host;
  await decideApproval(log.store, log.ref, { callId, answer: withdrawal(words), clock: shared.clock });
  await log.catchUp();
}

async function readPlace(store: SessionStore, ref: SessionRef): Promise<ReadPlace> {
  const { state, records } = await readWindow(store, ref);
  const facts = new WindowFacts();
  for (const record of records) facts.take(record);
  return { head: state.head, entry: state.entry, facts, records };
}

function runningTurn({ head: { turn } }: ReadPlace, clock: Clock): SessionHead["turn"] {
  const isRunning =
    turn !== null && turn.leaseUntilMs > clock.nowMs() && processOwners().stateOf(turn.owner) !== "gone";
  return isRunning ? turn : null;
}

async function append(
  store: SessionStore,
  ref: SessionRef,
  { head, entry, facts }: ReadPlace,
  { turnId, tool, askedAtMs, expiresAtMs, callId }: PendingApproval,
  { answer, clock }: DecideApprovalOptions,
): Promise<void> {
  const decidedMs = clock.nowMs();
  const waiting = waitingCalls({ entry, head });
  // A decision counts in the newest turn only, which may have resumed the turn that asked.
  const newest = head.turn?.turnId ?? facts.turn?.mark.turnId ?? turnId;
  const told = typeof answer === "object" && "refuse" in answer ? { words: answer.refuse, ...answer } : answer;
  const call = { turnId: newest, callId, tool, askedMs: askedAtMs ?? decidedMs, decidedMs };
  const drafts: readonly RecordDraft[] = [
    // The process of the turn is gone. The decision must come after the end of its turn, or it may have run the call.
    ...(head.turn === null ? [] : [turnMarkDraft({ turnId: newest, state: "interrupted" })]),
    approvalDraft(told, call),
  ];
  const options: AppendOptions = {
    ...(head.turn === null ? {} : { turn: { action: "close", fence: head.turn.fence } }),
    ...(waiting === null ? {} : { entry: { waiting: withoutCall(waiting, expiresAtMs) } }),
  };
  // The key is that of the call, so that the store refuses a second decision that comes at the same time.
  const idempotencyKey = `approval-${digest(JSON.stringify([newest, callId]))}`;
  try {
    await appendOnce(store, ref, drafts, { ...options, idempotencyKey });
  } catch (error) {
    if (!hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) throw error;
  }
}

function withoutCall({ calls, deadlinesMs = [], ...sign }: WaitingCalls, expiresAtMs: number | null): WaitingCalls {
  const at = expiresAtMs === null ? -1 : deadlinesMs.indexOf(expiresAtMs);
  return waitingSign({ ...sign, calls: Math.max(0, calls - 1), deadlinesMs: deadlinesMs.filter((_, i) => i !== at) });
}

type Decision = Omit<DecidedApproval, "replayed">;

/** The records of a call that has its result already answer a repeated request, too. */
function decisionIn({ facts, records }: ReadPlace, callId: string): Decision | null {
  const open = facts.openCalls.decision(callId);
  if (open !== null) return { callId, ...open };
  if (facts.openCalls.calls.some(({ id }) => id === callId)) return null;
  const found = records.findLast(({ record }) => isDecisionOn(record, callId));
  const approval = found === undefined ? null : readApproval(found.record);
  return approval === null ? null : { callId, isAllowed: approval.state === "allowed", words: approval.words };
}

function isDecisionOn(record: StoredRecord["record"], callId: string): boolean {
  const approval = readApproval(record);
  return approval?.callId === callId && approval.state !== "waiting";
}

function sameDecision(known: Decision, { answer, callId }: DecideApprovalOptions, ref: SessionRef): DecidedApproval {
  const isAllowed = isApproval(answer);
  const words = typeof answer === "object" && "refuse" in answer ? answer.refuse : null;
  if (known.isAllowed === isAllowed && (isAllowed || known.words === words)) return { ...known, replayed: true };
  const message = known.isAllowed ? "The call was approved before." : "The call was refused before.";
  throw decided(ref, callId, message);
}

function decided(ref: SessionRef, callId: string, message: string): ThroughlineError {
  return new ThroughlineError("APPROVAL_DECIDED", message, { outcome: "not-applied", details: { ...ref, callId } });
}

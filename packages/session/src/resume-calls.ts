import { ThroughlineError, type RecordDraft } from "@throughline/core";
import { expiredText } from "./approval-record.ts";
import { readInterruptedTurn } from "./begin-turn.ts";
import { leftResults, notRunResults, undecidableHere } from "./left-results.ts";
import { isDecidable, pendingApprovals } from "./pending-approvals.ts";
import { keepsWaiting, type RunToolsOptions } from "./run-tools.ts";
import type { SessionLog } from "./session-log.ts";
import type { TurnHost, TurnInput } from "./turn-host.ts";
import type { TurnSettings } from "./turn-settings.ts";
import type { RunTurnOptions } from "./turn.ts";

/** @throws {ThroughlineError} INPUT_INVALID when the last turn is done, or there is none; APPROVAL_DECIDED */
export function resumedTurnId({ log, shared }: TurnHost, input: TurnInput): string {
  const nowMs = shared.clock.nowMs();
  assertUndecided(log, input, nowMs);
  const { turn } = log.facts;
  const open = log.head.turn;
  if (open !== null) return readInterruptedTurn(log, open, nowMs).turnId;
  if (turn !== null && turn.mark.state !== "done") return turn.mark.turnId;
  throw new ThroughlineError("INPUT_INVALID", "There is no turn to resume: the last one is done.");
}

/** Creates the results of open calls with which a turn is resumed. The turn itself decides on the others. */
export function resumedResults(
  { log, shared }: TurnHost,
  input: TurnInput,
  settings: TurnSettings,
): readonly RecordDraft[] {
  const nowMs = shared.clock.nowMs();
  assertUndecided(log, input, nowMs);
  const isDecided = canDecide(log, input, settings);
  return leftResults(log.facts, {
    nowMs,
    isLeft: (state) => !isDecided || state === "may-have-run",
    ...(isDecidable(log) ? {} : { undecided: undecidableHere }),
  });
}

/**
 * Creates the results of open calls for a turn with a new message.
 * @throws {ThroughlineError} APPROVAL_PENDING
 */
export function refusedResults({ log, shared }: TurnHost, { whenWaiting }: RunTurnOptions): readonly RecordDraft[] {
  const { openCalls } = log.facts;
  const nowMs = shared.clock.nowMs();
  const waiting = pendingApprovals(log, nowMs).filter(({ callId }) => openCalls.isWaiting(callId));
  if (whenWaiting !== "reject" || waiting.length === 0) return notRunResults(log.facts, { nowMs });
  const calls = waiting.map(({ callId, tool }) => ({ callId, tool }));
  const message = `${calls.length === 1 ? "1 tool call waits" : `${calls.length} tool calls wait`} for a decision.`;
  const details = { ...log.ref, calls };
  throw new ThroughlineError("APPROVAL_PENDING", message, { outcome: "not-applied", details });
}

/**
 * Answers the questions about open calls in a resumed turn: by their deadlines, by the given decisions, by `approveTool`,
 * or not yet.
 */
export function answersOf(
  { log, shared }: TurnHost,
  input: TurnInput,
  settings: TurnSettings,
): RunToolsOptions["approve"] {
  const { approveTool } = settings;
  return (call, context) => {
    const expiredAtMs = log.facts.openCalls.expiredAtMs(call.id, shared.clock.nowMs());
    if (expiredAtMs !== null) return { refuse: expiredText(expiredAtMs), decision: "no", by: "deadline" };
    const given = input.approvals?.[call.id];
    if (given !== undefined) return given;
    const isLeft = approveTool === null || input.approvals !== undefined;
    return isLeft || log.facts.openCalls.isWaiting(call.id) ? keepsWaiting : approveTool(call, context);
  };
}

/** Without a hook and without an answer, the calls of an interrupted turn are answered as not run. */
function canDecide(log: SessionLog, input: TurnInput, { approveTool }: TurnSettings): boolean {
  const { openCalls } = log.facts;
  if (!openCalls.asksApproval || !isDecidable(log)) return false;
  if (approveTool !== null || input.approvals !== undefined) return true;
  return openCalls.calls.some(({ id }) => openCalls.stateOf(id) === "approved" || openCalls.isWaiting(id));
}

/** Refuses decisions on calls that have one, because the first decision on a call holds. */
function assertUndecided(log: SessionLog, { approvals }: TurnInput, nowMs: number): void {
  if (approvals === undefined) return;
  const pending = new Set(pendingApprovals(log, nowMs).map(({ callId }) => callId));
  const decided = Object.keys(approvals).filter((callId) => !pending.has(callId));
  if (decided.length === 0) return;
  const message = `No decision is awaited on the call ${JSON.stringify(decided[0])}: it was decided on before, its deadline is over, or there is no such call.`;
  throw new ThroughlineError("APPROVAL_DECIDED", message, {
    outcome: "not-applied",
    details: { ...log.ref, callIds: decided },
  });
}

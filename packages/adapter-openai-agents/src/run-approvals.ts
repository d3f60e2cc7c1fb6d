import type { Agent, RunState, RunToolApprovalItem } from "@openai/agents-core";
import { ThroughlineError } from "@throughline/core";
import type { DecidedCall, FrameworkCall, LoggedDecision } from "@throughline/foreign-formats/internal";

type State = RunState<unknown, Agent>;

/** Returns the calls for whose approval a run stopped. A call of a hosted tool has no id by which to decide on it. */
export function interruptedCalls(interruptions: readonly RunToolApprovalItem[]): readonly FrameworkCall[] {
  return interruptions.flatMap((item) => {
    const { rawItem } = item;
    const callId = "callId" in rawItem ? rawItem.callId : undefined;
    return callId === undefined ? [] : [{ callId, tool: item.name ?? rawItem.type }];
  });
}

/**
 * Puts the decisions of the log into the state of a run, which then carries them out.
 * @returns the decisions of the program, which the log does not have yet
 * @throws {ThroughlineError} APPROVAL_DECIDED when the program decided otherwise than the log
 */
export function decideState(state: State, decisions: ReadonlyMap<string, LoggedDecision>): readonly DecidedCall[] {
  return state.getInterruptions().flatMap((item) => {
    const [call] = interruptedCalls([item]);
    if (call === undefined) return [];
    const { callId, tool } = call;
    const own = state._context.isToolApproved({ toolName: tool, callId });
    const logged = decisions.get(callId);
    if (logged === undefined) return own === undefined ? [] : [{ ...call, isAllowed: own, words: null }];
    if (own !== undefined && own !== logged.isAllowed) throw decidedBefore(callId);
    if (own !== undefined) return [];
    if (logged.isAllowed) state.approve(item);
    else state.reject(item, logged.words === null ? {} : { message: logged.words });
    return [];
  });
}

function decidedBefore(callId: string): ThroughlineError {
  const message = `Another decision on the call ${JSON.stringify(callId)} was stored first.`;
  return new ThroughlineError("APPROVAL_DECIDED", message, { outcome: "not-applied", details: { callId } });
}

import type { RecordDraft, SessionState, StoredRecord } from "@throughline/core";
import { type Fields, isFields, throughlineDraft, throughlineKind, waitingCalls } from "@throughline/core/internal";

/** Describes a call of a framework's tool that waits for a decision. */
export interface FrameworkCall {
  /** Holds the id of the call, as the model stated it. */
  readonly callId: string;
  /** Holds the name of the tool. */
  readonly tool: string;
}

/** Holds the decision of a person on a waiting call, as the log states it. */
export interface LoggedDecision {
  /** Is true for an approval and false for a refusal. */
  readonly isAllowed: boolean;
  /** Holds what the model reads of a refusal; null without a text. */
  readonly words: string | null;
}

interface ReadLog {
  readonly state: SessionState | null;
  readonly records: readonly Pick<StoredRecord, "record">[];
}

/** Describes a call with the decision on it. */
export interface DecidedCall extends FrameworkCall, LoggedDecision {}

/** Describes what an append adds so that calls of its last reply wait, or wait no more. */
export interface WaitChange {
  /** Holds the records, which follow those of the reply. */
  readonly drafts: readonly RecordDraft[];
  readonly entry: Fields;
}

/**
 * Builds the records and the field of the entry that make calls wait, as a turn of a session makes them wait. A list of
 * sessions then shows them, and a decision may come from any process.
 *
 * @param turn names the turn that asked, with the number of the session's newest turn
 */
export function waitingChange(
  calls: readonly FrameworkCall[],
  { turnId, fence, nowMs }: { readonly turnId: string; readonly fence: number; readonly nowMs: number },
): WaitChange {
  const waits = calls.map((call) =>
    throughlineDraft("approval", { turnId, ...call, decision: "wait", askedMs: nowMs }),
  );
  return {
    // The mark comes first, because a reader takes a question only from the newest turn.
    drafts: [throughlineDraft("turn", { turnId, state: "waiting" }), ...waits],
    entry: { waiting: { turnId, fence, sinceMs: nowMs, calls: calls.length } },
  };
}

/** Builds the record of a decision that the turn of a framework carries out. */
export function decisionDraft(
  { callId, tool, isAllowed, words }: DecidedCall,
  { turnId, nowMs }: { readonly turnId: string; readonly nowMs: number },
): RecordDraft {
  return throughlineDraft("approval", {
    turnId,
    callId,
    tool,
    decision: isAllowed ? "once" : "no",
    by: "person",
    ...(words === null ? {} : { words }),
    decidedMs: nowMs,
  });
}

/** Ends the wait of a session. A session without one stays as it is. */
export function noWait(state: SessionState | null): WaitChange {
  return { drafts: [], entry: state?.entry["waiting"] === undefined ? {} : { waiting: undefined } };
}

/** Returns the decisions on the calls that wait, by call. They were stored over HTTP, by a command or in another process. */
export function loggedDecisions({ state, records }: ReadLog): ReadonlyMap<string, LoggedDecision> {
  const decisions = new Map<string, LoggedDecision>();
  const turnId = state === null ? undefined : waitingCalls(state)?.turnId;
  if (turnId === undefined) return decisions;
  for (const { record } of records) {
    const { data } = record;
    if (throughlineKind(record) !== "approval" || !isFields(data) || data["turnId"] !== turnId) continue;
    const { callId, decision, words } = data;
    // The first decision on a call holds.
    if (decision === "wait" || typeof callId !== "string" || decisions.has(callId)) continue;
    const isAllowed = decision === "once" || decision === "session";
    decisions.set(callId, { isAllowed, words: typeof words === "string" ? words : null });
  }
  return decisions;
}

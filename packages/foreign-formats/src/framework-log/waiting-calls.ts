import type { RecordDraft, SessionState } from "@throughline/core";
import { type Fields, isFields, throughlineDraft, throughlineKind, waitingCalls } from "@throughline/core/internal";
import type { LogView } from "./framework-log.ts";

/** Describes a call of a framework's tool that waits for a decision. */
export interface FrameworkCall {
  readonly callId: string;
  readonly tool: string;
}

/** Holds the decision of a person on a waiting call, as the log states it. */
export interface LoggedDecision {
  readonly isAllowed: boolean;
  /** Holds what the model reads of a refusal; null without a text. */
  readonly words: string | null;
}

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
 * @param turnId names the run that asked; it must be new
 */
export function waitingChange(
  calls: readonly FrameworkCall[],
  state: SessionState | null,
  { turnId, nowMs }: { readonly turnId: string; readonly nowMs: number },
): WaitChange {
  if (calls.length === 0) return noWait(state);
  const waits = calls.map((call) =>
    throughlineDraft("approval", { turnId, ...call, decision: "wait", askedMs: nowMs }),
  );
  const fence = state?.head.fence ?? 0;
  return {
    // The mark comes first, because a reader takes a question only from the newest turn.
    drafts: [throughlineDraft("turn", { turnId, state: "waiting" }), ...waits],
    entry: { waiting: { turnId, fence, sinceMs: nowMs, calls: calls.length } },
  };
}

/** Ends the wait of a session. A session without one stays as it is. */
export function noWait(state: SessionState | null): WaitChange {
  return { drafts: [], entry: state?.entry["waiting"] === undefined ? {} : { waiting: undefined } };
}

/** Returns the decisions on the calls that wait, by call. They were stored over HTTP, by a command or in another process. */
export function loggedDecisions({ state, records }: LogView): ReadonlyMap<string, LoggedDecision> {
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

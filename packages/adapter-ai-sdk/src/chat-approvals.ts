import { type RandomSource, ThroughlineError } from "@throughline/core";
import { type Fields, waitingCalls } from "@throughline/core/internal";
import {
  loggedDecisions,
  type LogView,
  noWait,
  otherDecisions,
  requestedApprovals,
  type WaitChange,
  waitingChange,
  withDecisions,
} from "@throughline/foreign-formats/internal";
import { type ChatChange, isUnchanged, type StoredText } from "./chat-changes.ts";

/**
 * Returns the messages with the decisions that the log has on calls of the last one, because a page may not know them
 * yet. Without a decision it returns the same list.
 * @throws {ThroughlineError} APPROVAL_DECIDED when the message states another decision
 */
export function decidedTexts(view: LogView, texts: readonly string[]): readonly string[] {
  const decisions = loggedDecisions(view);
  const last = texts.at(-1);
  if (decisions.size === 0 || last === undefined) return texts;
  const message = JSON.parse(last) as Fields;
  const [callId] = otherDecisions(message, decisions);
  if (callId !== undefined)
    throw new ThroughlineError(
      "APPROVAL_DECIDED",
      `Another decision on the call ${JSON.stringify(callId)} was first.`,
      {
        outcome: "not-applied",
        details: { callId },
      },
    );
  const decided = withDecisions(message, decisions);
  return decided === message ? texts : [...texts.slice(0, -1), JSON.stringify(decided)];
}

/** Returns what makes the calls of the chat's last message wait, or ends their wait. */
export function waitOf(
  { state }: LogView,
  stored: readonly StoredText[],
  change: ChatChange,
  { random, nowMs }: { readonly random: RandomSource; readonly nowMs: number },
): WaitChange {
  const { keep, added } = change;
  const kept = stored[(keep ?? stored.length) - 1];
  const last = added.at(-1) ?? (kept === undefined ? {} : (JSON.parse(kept.text) as Fields));
  const calls = requestedApprovals(last);
  const isKnown = calls.length === 0 || (state !== null && waitingCalls(state) !== null);
  // Another program may have made calls of the same messages wait.
  if (isUnchanged(change) && isKnown) return { drafts: [], entry: {} };
  if (calls.length === 0) return noWait(state);
  return waitingChange(calls, { turnId: random.uuid(), fence: state?.head.fence ?? 0, nowMs });
}

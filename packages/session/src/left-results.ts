import type { RecordDraft, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import type { CallState } from "./open-calls.ts";
import { expiredText } from "./approval-record.ts";
import { refusedText, resultDraft } from "./run-tools.ts";
import { WindowFacts } from "./window-facts.ts";

const texts: Readonly<Record<CallState, string>> = {
  "may-have-run": "The process ended while this call was under way. It may have run.",
  undecided: "The process ended before anybody allowed this call. It was not run.",
  approved: "The call was approved, and the conversation continued before it ran. It was not run.",
  refused: refusedText,
};

const answeredInstead = "The user answered instead of deciding. The call was not run.";

/** Creates the results of calls that a turn left without one. The model reads whether a call may have run. */
export function leftResults(
  { openCalls }: WindowFacts,
  { isLeft, undecided, nowMs = 0 }: LeftResultsOptions,
): readonly RecordDraft[] {
  return openCalls.calls
    .filter(({ id }) => isLeft(openCalls.stateOf(id), id))
    .map(({ id, name }) => {
      const state = openCalls.stateOf(id);
      const expiredAtMs = openCalls.expiredAtMs(id, nowMs);
      const waited = expiredAtMs === null ? answeredInstead : expiredText(expiredAtMs);
      const why = undecided ?? (openCalls.isWaiting(id) ? waited : texts.undecided);
      const words = state === "refused" ? (openCalls.decision(id)?.words ?? null) : null;
      const content = state === "undecided" ? why : (words ?? texts[state]);
      return resultDraft(id, name, { content, isError: true });
    });
}

interface LeftResultsOptions extends Partial<LeftResultsTime> {
  readonly isLeft: (state: CallState, callId: string) => boolean;
  /** States why no decision came. @default the user answered instead of deciding, or the process ended */
  readonly undecided?: string;
}

interface LeftResultsTime {
  /** States the time of this process, in UTC milliseconds, for the deadlines of questions. */
  readonly nowMs: number;
}

/**
 * Creates results for calls that provably did not run. Without them a rebuilt history would state that the calls may
 * have run. Drafts that name a source or a parent, or that answer a call themselves, get none.
 */
export function notRunResults(
  facts: WindowFacts,
  { nowMs }: LeftResultsTime,
  drafts: readonly object[] = [],
): readonly RecordDraft[] {
  const fields = drafts as readonly Readonly<Record<string, unknown>>[];
  if (fields.some((draft) => "source" in draft || draft["parentId"] !== undefined)) return [];
  const answered = new Set(
    fields.map(({ message }) => (message as { readonly toolCallId?: unknown } | undefined)?.toolCallId),
  );
  return leftResults(facts, { nowMs, isLeft: (state, callId) => state !== "may-have-run" && !answered.has(callId) });
}

/** The model reads this text where the calls of another session cannot be decided on. */
export const undecidableHere =
  "Nobody decided on this call, and it cannot be decided on in this session. It was not run.";

/** Reads the log back to its newest reply, to find the calls of that reply without results. */
export async function readNewestCalls(store: SessionStore, ref: SessionRef): Promise<WindowFacts> {
  const newest: StoredRecord[] = [];
  const facts = new WindowFacts();
  reading: for await (const { records } of store.read(ref, { order: "descending" }))
    for (const record of records) {
      newest.push(record);
      if (beginsReply(record)) break reading;
    }
  for (const record of newest.toReversed()) facts.take(record);
  return facts;
}

/** Returns true for a reply, and for every record after which no call is open. */
function beginsReply({ type, side, record }: StoredRecord): boolean {
  if (side) return false;
  const { role } = (record["message"] ?? {}) as { readonly role?: unknown };
  return type !== "message" || role !== "toolResult";
}

import type { GuardChange } from "@throughline/guard/internal";
import type { CallFacts, CallSplice } from "./call-record.ts";
import { leaveThinkingOut, type ThinkingRange } from "./leave-thinking-out.ts";

/** What the changes alone do not tell of what was sent. */
export type CallDifference = Pick<CallFacts, "thinkingOut" | "splice">;

export const sameMessages: CallDifference = { thinkingOut: null, splice: null };

/**
 * What was sent beyond what the changes give: thinking that was taken out because something before it was shortened, or
 * messages in the place of others. A reply to such messages is bound to what no later call will say again, and so its
 * thinking is out from then on like all before it.
 */
export function differenceBetween(
  expected: readonly unknown[],
  sent: readonly unknown[],
  changes: readonly GuardChange[],
): CallDifference {
  if (spliceBetween(expected, sent) === null) return sameMessages;
  const first = Math.max(0, Math.min(...changes.map(({ index }) => index)));
  const range: ThinkingRange = [Number.isFinite(first) ? first : 0, expected.length];
  const splice = spliceBetween(leaveThinkingOut(expected, [range]), sent);
  if (splice === null) return { thinkingOut: range, splice };
  return { thinkingOut: [0, expected.length + 1], splice: spliceBetween(expected, sent) };
}

/** What has to be put in place to make one list of the other; null when they are the same. */
function spliceBetween(from: readonly unknown[], to: readonly unknown[]): CallSplice | null {
  const most = Math.min(from.length, to.length);
  let keepStart = 0;
  while (keepStart < most && isSame(from[keepStart], to[keepStart])) keepStart += 1;
  if (keepStart === from.length && keepStart === to.length) return null;
  let keepEnd = 0;
  while (keepEnd < most - keepStart && isSame(from[from.length - 1 - keepEnd], to[to.length - 1 - keepEnd]))
    keepEnd += 1;
  return { keepStart, keepEnd, insert: to.slice(keepStart, to.length - keepEnd) };
}

export function applySplice(
  messages: readonly unknown[],
  { keepStart, keepEnd, insert }: CallSplice,
): readonly unknown[] {
  return [...messages.slice(0, keepStart), ...insert, ...messages.slice(messages.length - keepEnd)];
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

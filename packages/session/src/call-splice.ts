import type { GuardChange } from "@throughline/guard/internal";
import type { CallFacts, CallSplice } from "./call-record.ts";
import { leaveThinkingOut, type ThinkingRange } from "./leave-thinking-out.ts";

/** Describes the part of a request that records and changes alone do not give. */
export type CallDifference = Pick<CallFacts, "thinkingOut" | "splice">;

export const sameMessages: CallDifference = { thinkingOut: null, splice: null };

/**
 * Computes how the sent messages differ from those that the changes give. The guard removes thinking when content
 * before it was shortened, or replaces messages for one call. A reply to replaced messages is bound to messages that no
 * later call repeats. Its thinking, and all thinking before it, is therefore removed from then on.
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

/** Computes the splice that turns one list into the other; null when they are the same. */
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

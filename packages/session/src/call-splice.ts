import type { CallSplice } from "./call-record.ts";

/** What has to be put in place to make one list of the other; null when they are the same. */
export function spliceBetween(from: readonly unknown[], to: readonly unknown[]): CallSplice | null {
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

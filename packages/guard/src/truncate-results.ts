import { bytesOf, type GuardChange, type RecordIdsOfMessages } from "./guard-change.ts";
import { findResults, replaceAt } from "./message-slots.ts";
import type { OverflowKind } from "./overflow.ts";
import { leastCharacters, type ShortenedText } from "./shorten-text.ts";

/** Limits the length of tool results. */
export interface ResultLimits {
  /** Limits one result, in characters. */
  readonly eachCharacters: number;
  /** Limits all results together, in characters. */
  readonly totalCharacters: number;
}

export interface TruncateOptions extends ResultLimits {
  readonly reason: OverflowKind;
  readonly recordIds: RecordIdsOfMessages;
  readonly shorten: (text: string, mostCharacters: number) => ShortenedText | null;
}

export interface Shrunk {
  readonly messages: readonly unknown[];
  readonly changes: readonly GuardChange[];
}

/**
 * Shortens the longest tool results first, and no more than both limits require. The outcome depends only on the
 * messages and the limits, so that the same request gives the same bytes.
 */
export function truncateResults(messages: readonly unknown[], options: TruncateOptions): Shrunk {
  const slots = findResults(messages);
  const most = Math.min(
    options.eachCharacters,
    levelFor(
      slots.map(({ text }) => text.length),
      options.totalCharacters,
    ),
  );
  const changes: GuardChange[] = [];
  let current = messages;
  for (const slot of slots) {
    const shortened = options.shorten(slot.text, most);
    if (shortened === null) continue;
    current = replaceAt(current, slot, shortened.text);
    changes.push({
      recordId: options.recordIds[slot.index] ?? null,
      index: slot.index,
      callId: slot.callId,
      what: "tool-result",
      reason: options.reason,
      beforeBytes: bytesOf(slot.text),
      afterBytes: bytesOf(shortened.text),
      path: slot.path,
      kept: {
        headCharacters: shortened.headCharacters,
        tailCharacters: shortened.tailCharacters,
        ofCharacters: slot.text.length,
      },
    });
  }
  return { messages: current, changes };
}

/** Computes the largest common length limit at which the sum of all results stays within the total. */
function levelFor(lengths: readonly number[], total: number): number {
  const sorted = lengths.toSorted((a, b) => a - b);
  let rest = total;
  for (const [index, length] of sorted.entries()) {
    const share = rest / (sorted.length - index);
    if (length > share) return Math.max(leastCharacters, Math.floor(share));
    rest -= length;
  }
  return Number.MAX_SAFE_INTEGER;
}

import { bytesOf, type GuardChange, type RecordIdsOfMessages } from "./guard-change.ts";
import { findResults, replaceAt } from "./message-slots.ts";
import type { OverflowKind } from "./overflow.ts";
import { leastCharacters, type ShortenedText } from "./shorten-text.ts";

/** How long tool results may be, in characters. */
export interface ResultLimits {
  /** The most characters of one result. */
  readonly eachCharacters: number;
  /** The most characters of all results together. */
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
 * Shortens tool results: the longest first, and no more than both limits ask for. Which results are shortened and
 * where depends on the messages and the limits alone.
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

/** The length that all of the results together may be cut to so that their sum is at most the total. */
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

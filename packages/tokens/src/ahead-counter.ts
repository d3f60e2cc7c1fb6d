import type { Steps } from "@throughline/core/internal";
import type { Countable } from "./message-parts.ts";
import type { TokenCount, TokenCounter } from "./token-counter.ts";

/**
 * Counts the messages of a long session ahead in steps, because one pass takes seconds. `countMessages` then reuses
 * these counts.
 */
export interface AheadCounter extends TokenCounter {
  /** Counts the messages from index `from` on that have no stored count. Each step counts one message. */
  countAhead(messages: readonly Countable[], from?: number): Steps<void>;
}

/** The counts live in a WeakMap, so the counter does not keep messages in memory. */
export function createAheadCounter(counter: TokenCounter): AheadCounter {
  const known = new WeakMap<object, TokenCount>();
  return {
    ...counter,
    *countAhead(messages, from = 0) {
      for (let at = from; at < messages.length; at++) {
        const message = messages[at] as Countable;
        if (typeof message === "string" || known.has(message)) continue;
        known.set(message, counter.countMessages([message]));
        yield;
      }
    },
    countMessages(asked) {
      const total = { bareTokens: 0, fixedTokens: 0, messages: 0 };
      for (const message of asked) {
        const one = (typeof message === "string" ? undefined : known.get(message)) ?? counter.countMessages([message]);
        total.bareTokens += one.bareTokens;
        total.fixedTokens += one.fixedTokens;
        total.messages += one.messages;
      }
      return total;
    },
  };
}

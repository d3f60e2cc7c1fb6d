import type { Steps } from "@throughline/core/internal";
import type { Countable } from "./message-parts.ts";
import type { TokenCount, TokenCounter } from "./token-counter.ts";

/** A counter that knows the counts of messages that were counted ahead: those of a long session take seconds. */
export interface AheadCounter extends TokenCounter {
  /** Counts the messages from a place on whose counts it does not have, a message a step. */
  countAhead(messages: readonly Countable[], from?: number): Steps<void>;
}

/** Creates a counter that keeps the count of each message object for as long as the object is in use. */
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

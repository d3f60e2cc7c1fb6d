import { setImmediate as nextTurn } from "node:timers/promises";
import type { TokenCounter } from "@throughline/tokens";

type Countable = Parameters<TokenCounter["countMessage"]>[0];
type TokenCount = ReturnType<TokenCounter["countMessages"]>;

/** How many messages are counted before others get their turn, and how many characters. */
export const sliceMessages = 200;
const sliceChars = 200_000;

/**
 * A counter that knows the counts of some messages. They are counted in slices, because those of a long session take seconds.
 *
 * @param onSlice called with the number of messages behind each slice
 */
export async function slicedCounter(
  counter: TokenCounter,
  messages: readonly Countable[],
  onSlice: (count: number) => void = () => {},
): Promise<TokenCounter> {
  const known = new Map<Countable, TokenCount>();
  let [count, characters] = [0, 0];
  for (const message of messages) {
    const counted = counter.countMessages([message]);
    known.set(message, counted);
    count += 1;
    // A token has about four characters.
    characters += counted.bareTokens * 4;
    if (count < sliceMessages && characters < sliceChars) continue;
    onSlice(count);
    [count, characters] = [0, 0];
    await nextTurn();
  }
  if (count > 0) onSlice(count);
  return {
    ...counter,
    countMessages(asked) {
      const total = { bareTokens: 0, fixedTokens: 0, messages: 0 };
      for (const message of asked) {
        const one = known.get(message) ?? counter.countMessages([message]);
        total.bareTokens += one.bareTokens;
        total.fixedTokens += one.fixedTokens;
        total.messages += one.messages;
      }
      return total;
    },
  };
}

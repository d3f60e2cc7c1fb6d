import { isFields } from "@throughline/core/internal";
import { compactInFlight, type CompactInFlightOptions } from "@throughline/guard/internal";
import type { TokenCounter } from "@throughline/tokens/internal";
import type { CompactedHistory, WireLog } from "@throughline/wire/internal";

type CompactionRequest = Parameters<ReturnType<typeof compactInFlight>>[0];

/** A conversation whose beginning may be summed up already. */
export interface SummedUp {
  /** The records that messages are kept as, by the index of their values. */
  readonly recordIds: readonly (string | null)[];
  readonly messageCount: number;
  /** Null: the log of the conversation is not at hand. */
  readonly log: WireLog | null;
  readonly options: CompactInFlightOptions;
  /** Counts what stands beside the messages. */
  readonly counter: TokenCounter;
}

/** A compaction that takes a summary from the log where it has one, and says what it did. */
export interface RememberingCompactor {
  readonly compact: ReturnType<typeof compactInFlight>;
  /** What to remember of the compaction; null without a compaction, and where nobody could write a summary. */
  readonly compacted: CompactedHistory | null;
}

/**
 * Compacts a list of messages with the newest summary that the log has of its beginning. A new one is written where the log
 * has none, or where the messages behind it do not fit any more: it sums up the earlier summary as well.
 */
export function rememberingCompactor({
  recordIds,
  messageCount,
  log,
  options,
  counter,
}: SummedUp): RememberingCompactor {
  let compacted: CompactedHistory | null = null;
  let hasFailed = false;
  const write = compactInFlight({
    ...options,
    onEvent: (event) => (hasFailed ||= event.name === "guard.summary-failed"),
  });
  const known = log === null ? null : rememberedIn(log, recordIds);
  return {
    get compacted() {
      return hasFailed ? null : compacted;
    },
    compact: async (request) => {
      // After another remedy the messages may no longer be those that were asked about.
      const isSame = request.messages.length === messageCount;
      const earlier = known === null || !isSame ? null : known;
      const messages =
        earlier === null ? request.messages : [...earlier.messages, ...request.messages.slice(earlier.count)];
      if (earlier !== null) {
        compacted = { last: earlier.last };
        if (request.estimate(messages) <= mostTokens(request, counter)) return { messages };
      }
      const made = await write({ ...request, messages });
      if (made === null) return earlier === null ? null : { messages };
      compacted = isSame ? madeOf(made.messages, request.messages, recordIds) : null;
      return made;
    },
  };
}

/** A new summary stands for half of the messages: a known one must leave about as much where nobody knows the window. */
const leftShare = 0.55;

/** What messages may have for the request to fit. */
function mostTokens(request: CompactionRequest, counter: TokenCounter): number {
  const { tools = [], system, targetTokens, messages, estimate } = request;
  if (targetTokens === null) return estimate(messages) * leftShare;
  return targetTokens - counter.countText(`${system ?? ""}${tools.length === 0 ? "" : JSON.stringify(tools)}`);
}

interface Remembered {
  readonly last: string;
  /** How many messages it stands for. */
  readonly count: number;
  readonly messages: readonly unknown[];
}

function rememberedIn(log: WireLog, recordIds: readonly (string | null)[]): Remembered | null {
  for (let count = recordIds.length; count > 0; count--) {
    const last = recordIds[count - 1] ?? null;
    // Several values may be one message: it is replaced as a whole.
    if (last === null || recordIds[count] === last) continue;
    const text = log.summaryUpTo(last);
    const messages: unknown = text === null ? null : JSON.parse(text);
    if (Array.isArray(messages) && messages.every(isFields)) return { last, count, messages };
  }
  return null;
}

/** What stands in place of the beginning of a list. */
function madeOf(
  made: readonly unknown[],
  given: readonly unknown[],
  recordIds: readonly (string | null)[],
): CompactedHistory | null {
  const own = made.findIndex((message) => given.includes(message));
  const count = given.indexOf(made[own]);
  const last = recordIds[count - 1] ?? null;
  if (own <= 0 || last === null || recordIds[count] === last) return null;
  return { last, text: JSON.stringify(made.slice(0, own)) };
}

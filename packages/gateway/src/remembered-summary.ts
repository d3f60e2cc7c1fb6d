import { isFields } from "@throughline/core/internal";
import { compactInFlight, type CompactInFlightOptions } from "@throughline/guard/internal";
import type { TokenCounter } from "@throughline/tokens/internal";
import type { CompactedHistory, WireLog } from "./wire/index.ts";

type CompactionRequest = Parameters<ReturnType<typeof compactInFlight>>[0];

export interface SummedUp {
  readonly recordIds: readonly (string | null)[];
  readonly messageCount: number;
  /** Is null when the log is not available. Then no earlier summary can be reused. */
  readonly log: WireLog | null;
  readonly options: CompactInFlightOptions;
  readonly counter: TokenCounter;
}

export interface RememberingCompactor {
  readonly compact: ReturnType<typeof compactInFlight>;
  /** Is null when there was no compaction, or when no summarizer succeeded. */
  readonly compacted: CompactedHistory | null;
}

/**
 * Compacts messages with the newest summary in the log that covers their beginning. A new summary is written when the
 * log has none, or when the messages after it no longer fit. The new summary includes the earlier one.
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
      // Another remedy may have removed messages, so the record ids no longer match the indexes.
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

/**
 * Without a known window, a new summary replaces half of the messages. A remembered summary has to leave about as much.
 */
const leftShare = 0.55;

/** The target covers the whole request, so the tokens of the system prompt and the tools are subtracted. */
function mostTokens(request: CompactionRequest, counter: TokenCounter): number {
  const { tools = [], system, targetTokens, messages, estimate } = request;
  if (targetTokens === null) return estimate(messages) * leftShare;
  return targetTokens - counter.countText(`${system ?? ""}${tools.length === 0 ? "" : JSON.stringify(tools)}`);
}

interface Remembered {
  readonly last: string;
  readonly count: number;
  readonly messages: readonly unknown[];
}

function rememberedIn(log: WireLog, recordIds: readonly (string | null)[]): Remembered | null {
  for (let count = recordIds.length; count > 0; count--) {
    const last = recordIds[count - 1] ?? null;
    // One record may be several values. They must be replaced together, so the summary may not end between them.
    if (last === null || recordIds[count] === last) continue;
    const text = log.summaryUpTo(last);
    const messages: unknown = text === null ? null : JSON.parse(text);
    if (Array.isArray(messages) && messages.every(isFields)) return { last, count, messages };
  }
  return null;
}

/**
 * Returns null when the summary does not replace whole records at the beginning, because later requests could not match
 * it.
 */
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

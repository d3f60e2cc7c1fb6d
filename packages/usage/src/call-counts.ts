import type { SessionRecord } from "@throughline/core";
import { isFields, readUsage, sourceFormatOf, type CallUsage } from "@throughline/core/internal";

/** Holds the checked counts of a call. */
export interface CallCounts extends Omit<CallUsage, "occupancyTokens"> {
  /** States the cost in US dollars as the program that wrote the call stated it; null without a usable statement. */
  readonly statedUsd: number | null;
}

/** A prompt may hold this many tokens beside the records: system prompt, tools and thinking that is not stored. */
const mostBesideRecords = 200_000;
/** Models cost less than 1,000 dollars for a million tokens. */
const mostUsdOfToken = 0.001;

const countNames = ["input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning"] as const;

/**
 * Reads the counts of a call from a record. Null means that no call was counted; `doubtful` that a count is negative,
 * no whole number, or larger than the records so far could be.
 * @param sum whether the counts are those of several calls, which may exceed the text together
 */
export function callCounts(
  record: SessionRecord,
  usage: unknown,
  { recordBytes, isSum }: { readonly recordBytes: number; readonly isSum: boolean },
): CallCounts | "doubtful" | null {
  if (!isFields(usage)) return null;
  const read = readUsage(usage) ?? withoutPrompt(usage);
  if (read === null) return hasCounts(usage) ? "doubtful" : null;
  if (!countNames.every((name) => Number.isSafeInteger(read[name]))) return "doubtful";
  const tokens = read.promptTokens + read.output;
  if (!isSum && tokens > mostBesideRecords + recordBytes) return "doubtful";
  const { occupancyTokens: _, ...counts } = read;
  return { ...counts, statedUsd: statedUsd(record, usage, read) };
}

/** Some programs state only what the model wrote. */
function withoutPrompt(usage: Readonly<Record<string, unknown>>): CallUsage | null {
  const { output, reasoning = 0 } = usage;
  const isOutputAlone = countNames.every(
    (name) => name === "output" || name === "reasoning" || (usage[name] ?? 0) === 0,
  );
  if (!isOutputAlone || typeof output !== "number" || typeof reasoning !== "number" || output <= 0) return null;
  const none = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, promptTokens: 0 };
  return { ...none, output, reasoning, occupancyTokens: output };
}

function hasCounts(usage: Readonly<Record<string, unknown>>): boolean {
  return Object.values(usage).some((value) => typeof value === "number" && value !== 0);
}

/** Programs state 0 for a subscription and for a model without a known price, so 0 is no statement. */
function statedUsd(record: SessionRecord, usage: Readonly<Record<string, unknown>>, counts: CallUsage): number | null {
  const { cost } = usage;
  const { native } = record;
  const stated = isFields(cost)
    ? cost["total"]
    : sourceFormatOf(record) === "opencode" && isFields(native)
      ? native["cost"]
      : null;
  const mostUsd = (counts.promptTokens + counts.output) * mostUsdOfToken;
  return typeof stated === "number" && stated > 0 && stated <= mostUsd ? stated : null;
}

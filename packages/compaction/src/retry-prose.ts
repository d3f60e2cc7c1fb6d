import { type Clock, type SessionRef, type StoredRecord, ThroughlineError } from "@throughline/core";
import {
  type AuditProblem,
  auditSummary,
  Deadline,
  proseOf,
  runInSlices,
  type Steps,
  tellListener,
  untilAborted,
} from "@throughline/core/internal";
import type { NeutralMessage } from "@throughline/history/internal";
import type { SummaryUsage } from "./compaction-details.ts";
import type { TokenMeasure } from "./compaction-work.ts";
import { defaultToolResultChars } from "./compaction-settings.ts";
import { conversationText } from "./find-summary.ts";
import type { SummaryRetryOptions } from "./retry-options.ts";
import { betterBefore, removedMessages, summaryTextOf, type ChainedSummary } from "./summary-chain.ts";

export interface WrittenProse {
  readonly prose: string;
  readonly source: string;
  /** Is null when no provider stated any usage. */
  readonly usage: SummaryUsage | null;
}

/** Holds the reply. A number in `pausedMs` means that every summarizer was paused, and for how long. */
export interface RetriedProse {
  readonly reply: WrittenProse | null;
  readonly pausedMs: number | null;
}

export interface WriteProseOptions extends Pick<
  SummaryRetryOptions,
  "deadlineMs" | "maxSummaryTokens" | "toolResultChars" | "onEvent" | "summarizers"
> {
  readonly clock: Clock;
  readonly ref: SessionRef;
  readonly measure: TokenMeasure;
  readonly summary: ChainedSummary;
  readonly records: readonly StoredRecord[];
  readonly signal: AbortSignal | null;
}

const noProse: RetriedProse = { reply: null, pausedMs: null };

/**
 * Asks the summarizers for a new summary of the original messages. The reply is null when no summary passes the audit.
 */
export async function writeProse({
  ref,
  measure,
  summary,
  records,
  ...options
}: WriteProseOptions): Promise<RetriedProse> {
  const { clock, deadlineMs = 600_000, maxSummaryTokens: maxOutputTokens = 2000, onEvent } = options;
  const { toolResultChars = defaultToolResultChars } = options;
  const removed = await runInSlices(removedMessages(summary, records));
  if (removed.length === 0) return noProse;
  const { previousSummaryId } = summary.details;
  const before = summaryTextOf(records, previousSummaryId);
  const further = betterBefore(summary, records).filter(({ stored }) => stored.id !== previousSummaryId);
  const earlier = further.map((one) => `[Summary of the earlier messages]: ${proseOf(one.summary)}`);
  const text = [...earlier, await conversationText(removed, toolResultChars)].join("\n\n");
  const previousSummary = before === null ? null : proseOf(before);
  const replacedTokens = await runInSlices(tokensOf(removed, measure));
  const most = replacedTokens + measure.countText(previousSummary ?? "");
  const audit = (written: string): AuditProblem | null =>
    auditSummary(written, { maxOutputTokens, countText: measure.countText, replacedTokens: most });
  await using deadline = new Deadline(clock, deadlineMs, options.signal);
  const { signal } = deadline;
  const pauses: (number | null)[] = [];
  for (const [index, summarizer] of options.summarizers.entries()) {
    if (signal.aborted) return noProse;
    const failed = { name: "compaction.rung-failed", ref, rung: "model", index } as const;
    try {
      const work = summarizer.summarize({ text, previousSummary, maxOutputTokens, audit, signal });
      const { summary: written, source, usage } = await untilAborted(work, signal);
      const problem = audit(written);
      if (problem === null) return { reply: { prose: written.toWellFormed().trim(), source, usage }, pausedMs: null };
      pauses.push(null);
      tellListener(onEvent, { ...failed, problem, cause: null });
    } catch (cause) {
      pauses.push(pauseOf(cause));
      tellListener(onEvent, { ...failed, problem: null, cause });
    }
  }
  const known = pauses.filter((pause) => pause !== null);
  return { reply: null, pausedMs: known.length > 0 && known.length === pauses.length ? Math.min(...known) : null };
}

function* tokensOf(messages: readonly NeutralMessage[], { countMessage }: TokenMeasure): Steps<number> {
  let tokens = 0;
  for (const message of messages) {
    tokens += countMessage(message);
    yield;
  }
  return tokens;
}

/** Returns how long a summarizer stays paused; null for every other failure, which counts as an attempt. */
function pauseOf(cause: unknown): number | null {
  if (!ThroughlineError.isInstance(cause) || cause.code !== "SUMMARIZER_PAUSED") return null;
  const { retryInMs } = cause.details;
  return typeof retryInMs === "number" ? retryInMs : 0;
}

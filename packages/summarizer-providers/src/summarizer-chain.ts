import { hasErrorCode, type Summarizer, type SummaryRequest, ThroughlineError } from "@throughline/core";
import {
  causeText,
  assertKnownOptions,
  type AuditProblem,
  auditSummary,
  optionKinds,
  type OptionTable,
} from "@throughline/core/internal";
import type { SummarizerBreakers } from "./summarizer-breakers.ts";

/** Describes a failed summarizer. */
interface FailedSummarizer {
  /** States the name of the summarizer in the chain. */
  readonly name: string;
  /** Holds the error of the summarizer, or SUMMARY_REJECTED when its text failed the audit. */
  readonly cause: unknown;
}

/** Names a summarizer of a chain. */
export interface ChainedSummarizer {
  /** Names the summarizer in failures, and its breaker. */
  readonly name: string;
  /** Writes the summaries. */
  readonly summarizer: Summarizer;
  /** Sets whether the summarizer has a breaker. The last summarizer of the chain never has one. @default true */
  readonly hasBreaker?: boolean;
}

/** Sets the members, the breakers and the audit of `createSummarizerChain`. */
export interface SummarizerChainOptions {
  /** Lists the summarizers in the order in which they are tried. */
  readonly summarizers: readonly ChainedSummarizer[];
  /** Excludes summarizers that keep failing. @default none: every one is asked every time */
  readonly breakers?: SummarizerBreakers | undefined;
  /** Is called for each failed summarizer, before the next one is tried. */
  readonly onFailed?: ((failed: FailedSummarizer) => void) | undefined;
  /** Counts the tokens of a text, for the audit of its length. @default a token for four characters */
  readonly countText?: ((text: string) => number) | undefined;
}

const table: OptionTable<SummarizerChainOptions> = {
  summarizers: optionKinds.required(
    optionKinds.listOf(
      optionKinds.objectOf<ChainedSummarizer>({
        name: optionKinds.required(optionKinds.filledText),
        summarizer: optionKinds.required(optionKinds.objectWith("summarize")),
        hasBreaker: optionKinds.flag,
      }),
    ),
  ),
  breakers: optionKinds.objectWith("guard"),
  onFailed: optionKinds.callback,
  countText: optionKinds.callback,
};

/**
 * Creates a summarizer that tries others in order and returns the first usable summary. The `source` of the reply names
 * the summarizer that wrote it. A text that fails the audit counts as a failure, also for the breaker.
 * @throws {ThroughlineError} from `summarize`: ABORTED; SUMMARIZER_PAUSED if every summarizer is paused, with
 *   `retryInMs` of the first that is tried again; SUMMARY_FAILED if none gave a summary, with every attempt in its
 *   details
 */
export function createSummarizerChain(options: SummarizerChainOptions): Summarizer {
  assertKnownOptions<SummarizerChainOptions>("createSummarizerChain", options, table);
  const { summarizers, breakers, onFailed, countText } = options;
  const members = summarizers.map(({ name, summarizer, hasBreaker = true }, index) => {
    const audited = audit(name, summarizer, countText);
    // The last summarizer has no successor, so excluding it would only delay the summary.
    const isGuarded = hasBreaker && index < summarizers.length - 1;
    return { name, summarizer: breakers === undefined || !isGuarded ? audited : breakers.guard(name, audited) };
  });
  return {
    async summarize(request) {
      const failed: FailedSummarizer[] = [];
      for (const { name, summarizer } of members) {
        if (isAborted(request.signal)) {
          throw new ThroughlineError("ABORTED", "The summary was aborted.", { cause: request.signal?.reason });
        }
        try {
          return await summarizer.summarize(request);
        } catch (cause) {
          if (isAborted(request.signal) && hasErrorCode(cause, "ABORTED")) throw cause;
          failed.push({ name, cause });
          onFailed?.({ name, cause });
        }
      }
      const pausedMs = pauseOf(failed);
      if (pausedMs !== null) {
        const message = "Every summarizer failed several times in a row and is not asked for a while.";
        throw new ThroughlineError("SUMMARIZER_PAUSED", message, { details: { retryInMs: pausedMs } });
      }
      const attempts = failed.map(({ name, cause }) => ({ name, message: messageOf(cause) }));
      const told = attempts.length === 0 ? "none was given" : attempts.map(({ name }) => name).join(", ");
      throw new ThroughlineError("SUMMARY_FAILED", `No summarizer gave a usable summary (${told}).`, {
        details: { attempts },
        cause: failed.at(-1)?.cause,
      });
    },
  };
}

/** Returns the shortest pause in milliseconds. Null when a summarizer was asked, or when the chain is empty. */
function pauseOf(failed: readonly FailedSummarizer[]): number | null {
  const waits = failed.map(({ cause }) =>
    ThroughlineError.isInstance(cause) && cause.code === "SUMMARIZER_PAUSED" ? cause.details["retryInMs"] : null,
  );
  const known = waits.filter((wait): wait is number => typeof wait === "number");
  return known.length === 0 || known.length < waits.length ? null : Math.min(...known);
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function audit(name: string, summarizer: Summarizer, countText: ((text: string) => number) | undefined): Summarizer {
  return {
    async summarize(request) {
      const reply = await summarizer.summarize(request);
      const problem = (request.audit ?? usualAudit(request, countText))(reply.summary);
      if (problem === null) return reply;
      const details = { source: name, problem, characters: reply.summary.length };
      throw new ThroughlineError("SUMMARY_REJECTED", `What ${name} wrote is no summary: ${problem}.`, { details });
    },
  };
}

function usualAudit(
  { text, previousSummary, maxOutputTokens }: SummaryRequest,
  countText: (text: string) => number = (body) => Math.ceil(body.length / 4),
): (summary: string) => AuditProblem | null {
  const coveredTokens = countText(text) + countText(previousSummary ?? "");
  return (summary) => auditSummary(summary, { maxOutputTokens, coveredTokens, countText });
}

function messageOf(cause: unknown): string {
  return causeText(cause).slice(0, 200).toWellFormed();
}

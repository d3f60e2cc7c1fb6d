import { ThroughlineError } from "@throughline/core";
import type { GuardAttempt } from "./guard-options.ts";
import type { LearnedLimits } from "./learned-limits.ts";
import type { OverflowKind } from "./overflow.ts";

interface OverflowSituation {
  readonly kind: OverflowKind;
  readonly estimatedTokens: number;
  readonly windowTokens: number | null;
  readonly attempts: readonly GuardAttempt[];
  readonly limits: LearnedLimits;
}

/**
 * Creates the `CONTEXT_OVERFLOW` error with every attempt in its details, and with the provider's error as its cause.
 */
export function contextOverflowError(situation: OverflowSituation, calls: number, cause: unknown): ThroughlineError {
  const { kind, estimatedTokens: tokens, windowTokens: limit } = situation;
  const size = limit === null ? `about ${tokens} tokens` : `about ${tokens} of ${limit} tokens`;
  const message = `the request does not fit (${kind}): ${size} after ${calls === 1 ? "1 call" : `${calls} calls`}`;
  return new ThroughlineError("CONTEXT_OVERFLOW", message, {
    details: { ...situation },
    ...(cause === null ? {} : { cause }),
  });
}

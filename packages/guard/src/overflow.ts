/**
 * States what does not fit; each kind has its own remedy. `input` is the prompt, `io` the prompt together with the
 * output budget, `bytes` the size of the request, and `item` one part of it. `ceiling` is a rate limit smaller than the
 * request, for which the guard has no remedy.
 */
export type OverflowKind = "input" | "io" | "bytes" | "item" | "ceiling";

/** States what an error is about when it is no overflow. */
export type FailureCategory =
  | "auth"
  | "cancel"
  | "config"
  | "entitlement"
  | "image"
  | "memory"
  | "network"
  | "output"
  | "output_cap"
  | "overloaded"
  | "param"
  | "parse"
  | "quota"
  | "rate_limit"
  | "server"
  | "template"
  | "timeout"
  | "unknown"
  | "validity";

/** Classifies an error by its meaning for the window. Sizes are null when the error does not state them. */
export interface OverflowClassification {
  /** States whether the request did not fit. */
  readonly overflow: boolean;
  /** States what does not fit; null when the error is no overflow. */
  readonly kind: OverflowKind | null;
  /** States what the error is about. */
  readonly category: "context_overflow" | FailureCategory;
  /** Holds the size of the prompt, in tokens. */
  readonly inputTokens: number | null;
  /** Holds the window, or for `ceiling` the rate limit, in tokens. */
  readonly limitTokens: number | null;
  /** Holds the requested output for kind `io`, or for `output_cap` the most tokens that the model writes. */
  readonly maxOutputTokens: number | null;
  /** Holds the most bytes that the provider accepts. */
  readonly limitBytes: number | null;
  /** Holds the most characters that the provider accepts. */
  readonly limitCharacters: number | null;
  /** Holds the wait that the provider asks for, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** States whether the same request, unchanged, may succeed later. */
  readonly isRetryable: boolean;
  /** Names the rule that decided, for people and tests. */
  readonly rule: string;
}

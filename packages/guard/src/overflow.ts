/**
 * What does not fit; each kind has its own remedy. `input` is the prompt, `io` the prompt together with the output
 * budget, `bytes` the size of the request, `item` one part of it. `ceiling` is a rate limit smaller than the request,
 * for which the guard has no remedy.
 */
export type OverflowKind = "input" | "io" | "bytes" | "item" | "ceiling";

/** What an error is about, when it is no overflow. */
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

/** What an error means for the window. Sizes are null when the error does not state them. */
export interface OverflowClassification {
  /** True when the request did not fit. */
  readonly overflow: boolean;
  /** Null when it is no overflow. */
  readonly kind: OverflowKind | null;
  /** What the error is about. */
  readonly category: "context_overflow" | FailureCategory;
  /** The size of the prompt. */
  readonly inputTokens: number | null;
  /** The window, or for `ceiling` the rate limit. */
  readonly limitTokens: number | null;
  /** For an overflow of kind `io` the output asked for; for `output_cap` the most the model writes. */
  readonly maxOutputTokens: number | null;
  /** The most bytes that the provider takes. */
  readonly limitBytes: number | null;
  /** The most characters that the provider takes. */
  readonly limitCharacters: number | null;
  /** How long the provider asks to wait, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** The same request, unchanged, may be answered later. */
  readonly isRetryable: boolean;
  /** The rule that decided, for people and tests. */
  readonly rule: string;
}

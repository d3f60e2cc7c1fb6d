/** What a breaker says of a summarizer; `SPEC.md` is normative. */
export type BreakerState =
  /** It is asked. */
  | "closed"
  /** It failed too often and is not asked. */
  | "open"
  /** One call is under way to see whether it works again; no other is let through. */
  | "half-open";

export type BreakerStep =
  /** A call gave a summary. */
  | "succeeded"
  /** A call failed, and fewer than the threshold in a row did. */
  | "failed"
  /** A call failed that made it too many. */
  | "tripped"
  /** A call comes after the pause is over. */
  | "probed"
  /** The caller ended the call: it says nothing of the summarizer. */
  | "aborted";

/** The state after each step; null where the step cannot happen. */
export const breakerSteps: Readonly<Record<BreakerState, Readonly<Record<BreakerStep, BreakerState | null>>>> = {
  closed: { succeeded: "closed", failed: "closed", tripped: "open", probed: null, aborted: "closed" },
  // Calls that began before it opened may end while it is open.
  open: { succeeded: "closed", failed: "open", tripped: "open", probed: "half-open", aborted: "open" },
  "half-open": { succeeded: "closed", failed: "open", tripped: "open", probed: null, aborted: "open" },
};

/** Names the state of a summarizer's circuit breaker. `SPEC.md` is normative. */
export type BreakerState =
  /** The summarizer is asked. */
  | "closed"
  /** The summarizer failed too often and is not asked. */
  | "open"
  /** One trial call is running. Other calls are refused until it ends. */
  | "half-open";

export type BreakerStep =
  /** A call returned a summary. */
  | "succeeded"
  /** A call failed, and the number of consecutive failures is below the threshold. */
  | "failed"
  /** A call failed, and the number of consecutive failures reached the threshold. */
  | "tripped"
  /** The first call after the pause starts. */
  | "probed"
  /** The caller aborted the call, so its end says nothing about the summarizer. */
  | "aborted";

/** Maps state and step to the next state. Null marks a step that cannot occur in the state. */
export const breakerSteps: Readonly<Record<BreakerState, Readonly<Record<BreakerStep, BreakerState | null>>>> = {
  closed: { succeeded: "closed", failed: "closed", tripped: "open", probed: null, aborted: "closed" },
  // Calls that started before the breaker opened may end while it is open, so every result must be possible in this
  // state.
  open: { succeeded: "closed", failed: "open", tripped: "open", probed: "half-open", aborted: "open" },
  "half-open": { succeeded: "closed", failed: "open", tripped: "open", probed: null, aborted: "open" },
};

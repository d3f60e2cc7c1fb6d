/**
 * States whether the agent was asked to store memories in this cycle, and whether it answered. `SPEC.md` is normative.
 */
export type FlushPhase = "quiet" | "asked" | "answered";

export type FlushStep =
  /** A threshold that is delivered as a message fires: it was crossed, or a compaction follows. */
  | "fires"
  /** The turn in which the agent was asked ended. */
  | "turn-ended"
  /** The call failed before the agent could answer. */
  | "failed"
  /** A compaction or a reset started a new cycle. */
  | "compacted";

/** Maps each phase and step to the next phase, and states whether a message is sent. */
export const flushSteps: Readonly<
  Record<FlushPhase, Readonly<Record<FlushStep, { readonly to: FlushPhase; readonly sends: boolean }>>>
> = {
  quiet: { fires: sends("asked"), "turn-ended": to("quiet"), failed: to("quiet"), compacted: to("quiet") },
  asked: { fires: sends("asked"), "turn-ended": to("answered"), failed: to("quiet"), compacted: to("quiet") },
  answered: { fires: sends("asked"), "turn-ended": to("answered"), failed: to("answered"), compacted: to("quiet") },
};

function to(phase: FlushPhase): { readonly to: FlushPhase; readonly sends: boolean } {
  return { to: phase, sends: false };
}

function sends(phase: FlushPhase): { readonly to: FlushPhase; readonly sends: boolean } {
  return { to: phase, sends: true };
}

import type { OverflowClassification, OverflowKind } from "./overflow.ts";

/** `SPEC.md` in this package defines the states and is normative. */
export type GuardState = "checking" | "calling" | "shrinking" | "done" | "kept" | "raised" | "passed-on";

export type GuardStep =
  | "fits"
  | "over"
  | "answered"
  | "overflowed"
  | "broke-off"
  | "failed"
  | "shrunk"
  | "stuck"
  | "stuck-unsure"
  | "aborted";

/**
 * Each remedy works at most once between two calls, and the number of calls is bounded. That is why a guarded call
 * always ends.
 */
export type Remedy = "output-budget" | "media" | "item" | "truncate" | "compact" | "squeeze" | "drop";

/** Null marks a step that cannot happen in the state, so such a step is detected as a defect. */
export const guardSteps: Readonly<Record<GuardState, Readonly<Record<GuardStep, GuardState | null>>>> = {
  checking: row({ fits: "calling", over: "shrinking", failed: "passed-on", aborted: "passed-on" }),
  calling: row({
    answered: "done",
    overflowed: "shrinking",
    "broke-off": "kept",
    failed: "passed-on",
    aborted: "passed-on",
  }),
  shrinking: row({
    shrunk: "checking",
    failed: "passed-on",
    stuck: "raised",
    "stuck-unsure": "calling",
    aborted: "passed-on",
  }),
  done: row({}),
  kept: row({}),
  raised: row({}),
  "passed-on": row({}),
};

/** The order is by loss: a remedy that loses less content comes first. */
export const remedyLadders: Readonly<Record<OverflowKind, readonly Remedy[]>> = {
  input: ["truncate", "compact", "squeeze", "drop"],
  io: ["output-budget", "truncate", "compact", "squeeze", "drop"],
  bytes: ["media", "truncate", "compact", "squeeze", "drop"],
  item: ["item", "compact", "drop"],
  ceiling: [],
};

/** These remedies cure exactly one kind. The call after such a remedy is not counted as a retry. */
export const ownCures: ReadonlySet<Remedy> = new Set(["output-budget", "media", "item"]);

export function nextRemedy(kind: OverflowKind, used: ReadonlySet<Remedy>): Remedy | null {
  return remedyLadders[kind].find((remedy) => !used.has(remedy)) ?? null;
}

/** A prompt that fits alone was refused because of the output budget. The cures of `io` apply then. */
export function kindToCure({ kind, inputTokens, limitTokens }: OverflowClassification): OverflowKind {
  const fitsAlone = kind === "input" && inputTokens !== null && limitTokens !== null && inputTokens < limitTokens;
  return fitsAlone ? "io" : (kind ?? "input");
}

export function isFinal(state: GuardState): boolean {
  return finalStates.has(state);
}

const finalStates: ReadonlySet<string> = new Set(
  Object.entries(guardSteps).flatMap(([state, steps]) =>
    Object.values(steps).every((next) => next === null) ? [state] : [],
  ),
);

function row(steps: Partial<Record<GuardStep, GuardState>>): Record<GuardStep, GuardState | null> {
  return {
    fits: null,
    over: null,
    answered: null,
    overflowed: null,
    "broke-off": null,
    failed: null,
    shrunk: null,
    stuck: null,
    "stuck-unsure": null,
    aborted: null,
    ...steps,
  };
}

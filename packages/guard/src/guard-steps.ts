import type { OverflowClassification, OverflowKind } from "./overflow.ts";

/** Where a guarded call stands. `SPEC.md` is normative. */
export type GuardState = "checking" | "calling" | "shrinking" | "done" | "kept" | "raised" | "passed-on";

/** What happens to it. */
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

/** A way to make a request smaller. Each works at most once between two calls, and calls are bounded, which is why it always ends. */
export type Remedy = "output-budget" | "media" | "item" | "truncate" | "compact" | "squeeze" | "drop";

/** The state after each step; null where the step cannot happen. */
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

/** What is tried for each kind, in this order. */
export const remedyLadders: Readonly<Record<OverflowKind, readonly Remedy[]>> = {
  input: ["truncate", "compact", "squeeze", "drop"],
  io: ["output-budget", "truncate", "compact", "squeeze", "drop"],
  bytes: ["media", "truncate", "compact", "squeeze", "drop"],
  item: ["item", "compact", "drop"],
  ceiling: [],
};

/** Remedies that are a kind's own cure; the call after one is not counted as a retry. */
export const ownCures: ReadonlySet<Remedy> = new Set(["output-budget", "media", "item"]);

/** The first remedy for a kind that has not been used; null when there is none left. */
export function nextRemedy(kind: OverflowKind, used: ReadonlySet<Remedy>): Remedy | null {
  return remedyLadders[kind].find((remedy) => !used.has(remedy)) ?? null;
}

/** The kind whose cures are tried. A prompt that fits by itself was refused for the answer that is to follow it. */
export function kindToCure({ kind, inputTokens, limitTokens }: OverflowClassification): OverflowKind {
  const fitsAlone = kind === "input" && inputTokens !== null && limitTokens !== null && inputTokens < limitTokens;
  return fitsAlone ? "io" : (kind ?? "input");
}

/** True when nothing follows. */
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

/** Names the states of a compaction. `SPEC.md` is normative for both tables here. */
export type CompactionState = "planning" | "summarizing" | "ready" | "applied" | "nothing" | "superseded" | "stopped";

export type CompactionStep =
  | "planned"
  /** The plan has nothing to replace, or every summary is longer than the part it replaces. */
  | "no-gain"
  | "written"
  | "committed"
  /** The head moved. Records that arrived stay behind the cut. */
  | "moved"
  /** Another turn is open, so the summary waits. */
  | "busy"
  /** A summarized record was edited or redacted. */
  | "outdated"
  /** Another compaction or a reset came first, or the plan belongs to another branch or session. */
  | "overtaken"
  /** The caller's signal was aborted, or the store failed. */
  | "aborted";

/** Maps each state and step to the next state; null marks a step that cannot happen there. */
export const compactionSteps: Readonly<
  Record<CompactionState, Readonly<Record<CompactionStep, CompactionState | null>>>
> = {
  planning: row({ planned: "summarizing", "no-gain": "nothing", aborted: "stopped" }),
  summarizing: row({ written: "ready", "no-gain": "nothing", aborted: "stopped" }),
  ready: row({
    committed: "applied",
    moved: "ready",
    busy: "ready",
    outdated: "planning",
    overtaken: "superseded",
    aborted: "stopped",
  }),
  applied: row({}),
  nothing: row({}),
  superseded: row({}),
  stopped: row({}),
};

export type LadderState =
  | "checkpoint"
  | "models"
  | "older-checkpoint"
  | "extractive"
  | "stub"
  | "written"
  | "no-gain"
  | "stopped";

export type LadderStep =
  /** The rung gave a summary that passed the audit. */
  | "passed"
  /** The rung has no summary, failed, or gave a summary that failed the audit. */
  | "failed"
  /** The deadline of all summarizers together has passed. */
  | "timed-out"
  | "aborted";

export const ladderSteps: Readonly<Record<LadderState, Readonly<Record<LadderStep, LadderState | null>>>> = {
  checkpoint: rung({ passed: "written", failed: "models" }),
  models: rung({ passed: "written", failed: "older-checkpoint", "timed-out": "older-checkpoint", aborted: "stopped" }),
  "older-checkpoint": rung({ passed: "written", failed: "extractive" }),
  extractive: rung({ passed: "written", failed: "stub", "timed-out": "stub", aborted: "stopped" }),
  stub: rung({ passed: "written", failed: "no-gain" }),
  written: rung({}),
  "no-gain": rung({}),
  stopped: rung({}),
};

/** Returns the next state. A step that cannot happen is a defect of the caller, hence TypeError. */
export function stepFrom<State extends string, Step extends string>(
  table: Readonly<Record<State, Readonly<Record<Step, State | null>>>>,
  state: State,
  step: Step,
): State {
  const next = table[state][step];
  if (next === null) throw new TypeError(`${step} cannot happen in ${state}`);
  return next;
}

function row(steps: Partial<Record<CompactionStep, CompactionState>>): Record<CompactionStep, CompactionState | null> {
  return {
    planned: null,
    "no-gain": null,
    written: null,
    committed: null,
    moved: null,
    busy: null,
    outdated: null,
    overtaken: null,
    aborted: null,
    ...steps,
  };
}

function rung(steps: Partial<Record<LadderStep, LadderState>>): Record<LadderStep, LadderState | null> {
  return { passed: null, failed: null, "timed-out": null, aborted: null, ...steps };
}

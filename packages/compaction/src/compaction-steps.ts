/** Where a compaction stands. `SPEC.md` is normative for both tables here. */
export type CompactionState = "planning" | "summarizing" | "ready" | "applied" | "nothing" | "superseded" | "stopped";

export type CompactionStep =
  /** There is something to replace. */
  | "planned"
  /** There is not, or no summary is shorter than what it replaces. */
  | "no-gain"
  /** A summary is in hand. */
  | "written"
  /** The store took the record. */
  | "committed"
  /** The head moved on; what arrived is kept behind the cut. */
  | "moved"
  /** Another turn is open: the summary waits. */
  | "busy"
  /** What was summarized has been edited or redacted. */
  | "outdated"
  /** Another compaction or a reset was faster, the branch was left, or the session is another one. */
  | "overtaken"
  /** The caller's signal, or an error of the store. */
  | "aborted";

/** The state after each step; null where the step cannot happen. */
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

/** Where the search for a summary stands. */
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
  /** It has none, failed, or gave one that did not pass. */
  | "failed"
  /** The time for summarizing is over. */
  | "timed-out"
  /** The caller's signal. */
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

/** The next state. A step that cannot happen is a defect of the caller. */
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

/** Where the checkpoints of a session stand. `SPEC.md` is normative. */
export type CheckpointPhase = "idle" | "running" | "backing-off";

export type CheckpointStep =
  /** A turn ended, and no trigger is met. */
  | "not-due"
  /** A turn ended, and one is. */
  | "due"
  /** The checkpoint is in the log. */
  | "written"
  /** No writer gave one, or the store refused it. */
  | "failed"
  /** The wait after a failure is over. */
  | "elapsed"
  /** The process that worked on it is gone. */
  | "expired";

/** The phase after each step, and whether a writer is asked; null where the step cannot happen. */
export const checkpointSteps: Readonly<
  Record<
    CheckpointPhase,
    Readonly<Record<CheckpointStep, { readonly to: CheckpointPhase; readonly starts: boolean } | null>>
  >
> = {
  idle: row({ "not-due": quiet("idle"), due: { to: "running", starts: true } }),
  running: row({
    "not-due": quiet("running"),
    due: quiet("running"),
    written: quiet("idle"),
    failed: quiet("backing-off"),
    expired: quiet("backing-off"),
  }),
  "backing-off": row({ "not-due": quiet("backing-off"), due: quiet("backing-off"), elapsed: quiet("idle") }),
};

function quiet(to: CheckpointPhase): { readonly to: CheckpointPhase; readonly starts: boolean } {
  return { to, starts: false };
}

type Row = Record<CheckpointStep, { readonly to: CheckpointPhase; readonly starts: boolean } | null>;

function row(steps: Partial<Row>): Row {
  return { "not-due": null, due: null, written: null, failed: null, elapsed: null, expired: null, ...steps };
}

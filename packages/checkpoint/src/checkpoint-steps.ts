/** Names the phase of a session's checkpoints. `SPEC.md` is normative. */
export type CheckpointPhase = "idle" | "running" | "backing-off";

export type CheckpointStep =
  /** A turn ended without a trigger. */
  | "not-due"
  /** A turn ended with a trigger. */
  | "due"
  /** The checkpoint is in the log. */
  | "written"
  /** No writer gave a checkpoint, or the store refused it. */
  | "failed"
  /** The wait after a failure is over. */
  | "elapsed"
  /** The process that held the claim is gone. */
  | "expired";

/**
 * Maps phase and step to the next phase, and to whether a writer is asked. Null marks a step that cannot occur in the
 * phase.
 */
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

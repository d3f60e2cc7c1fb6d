/**
 * States how a turn ended. A `failed` turn throws, and the log holds the outcome. `denied` means that the send policy
 * denies answers in this session: the user's message is stored, and the model was not asked.
 */
export type TurnOutcome = "done" | "aborted" | "failed" | "step-limit" | "denied";

/** Describes a turn that a process left open when it ended. */
export interface InterruptedTurn {
  /** Holds the id of the turn that was left open. */
  readonly turnId: string;
  /** Names the process that owned the turn, as its mark states it. */
  readonly owner: string;
  /**
   * States when the turn began, by the clock of its process, in UTC milliseconds. Null when the mark is before the
   * window.
   */
  readonly sinceMs: number | null;
  /** Holds the user's message. Null when the turn was resumed, or when the message is before the window. */
  readonly text: string | null;
}

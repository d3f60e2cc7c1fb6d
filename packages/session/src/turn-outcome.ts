/**
 * How a turn ended. `failed` ones are thrown, with the outcome in the log. `denied`: the send policy denies answers in this
 * session; the user's words are stored and the model was not asked.
 */
export type TurnOutcome = "done" | "aborted" | "failed" | "step-limit" | "denied";

/** What a process left behind that ended in the middle of a turn. */
export interface InterruptedTurn {
  /** The id of the turn that was left open. */
  readonly turnId: string;
  /** The process that held it, as its mark names it. */
  readonly owner: string;
  /** When it began, by its writer's clock; null when the mark lies before the window. */
  readonly sinceMs: number | null;
  /** What the user had said; null when the turn was resumed, or the text lies before the window. */
  readonly text: string | null;
}

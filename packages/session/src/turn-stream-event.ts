import type { SessionTurnEvent } from "./session-event.ts";
import type { Turn } from "./turn.ts";

/** What a reader of a turn's events gets. */
export type TurnStreamEvent =
  /** A piece of the answer, or of the model's thinking. */
  | { readonly name: "text.delta" | "thinking.delta"; readonly text: string }
  /** The model called a tool; the arguments are complete. */
  | { readonly name: "tool-call.delta"; readonly callId: string; readonly toolName: string }
  /**
   * The reader was too slow: a number of events, with a number of characters of text, were dropped. The session has all
   * records.
   */
  | { readonly name: "stream.gap"; readonly events: number; readonly characters: number }
  /** The last event of a turn that did not fail. */
  | { readonly name: "turn.result"; readonly turn: Turn }
  | SessionTurnEvent;

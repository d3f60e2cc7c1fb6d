import type { SessionTurnEvent } from "./session-event.ts";
import type { Turn } from "./turn.ts";

/** What a reader of a turn's events gets. */
export type TurnStreamEvent =
  /** A piece of the answer, or of the model's thinking. */
  | {
      /** Whether the text is part of the answer or of the thinking. */
      readonly name: "text.delta" | "thinking.delta";
      /** The piece that arrived, which may be part of a word. */
      readonly text: string;
    }
  /** The model called a tool; the arguments are complete. */
  | {
      readonly name: "tool-call.delta";
      /** The id of the call, as the model gave it. */
      readonly callId: string;
      /** The name of the tool that is called. */
      readonly toolName: string;
    }
  /**
   * The reader was too slow: a number of events, with a number of characters of text, were dropped. The session has all
   * records.
   */
  | {
      readonly name: "stream.gap";
      /** The number of events that were dropped. */
      readonly events: number;
      /** The number of characters of text in them. */
      readonly characters: number;
    }
  /** The last event of a turn that did not fail. */
  | {
      readonly name: "turn.result";
      /** What `runTurn` would have returned. */
      readonly turn: Turn;
    }
  | SessionTurnEvent;

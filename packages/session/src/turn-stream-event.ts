import type { ChatDelta } from "@throughline/core";
import type { SessionTurnEvent } from "./session-event.ts";
import type { Turn } from "./turn.ts";

/** Describes the events that the reader of a turn stream receives. */
export type TurnStreamEvent =
  /**
   * Begins the events of `attach`, and is sent again when the model is asked again. It also holds the whole text of a
   * turn that an `idempotencyKey` repeats.
   */
  | {
      readonly name: "text.snapshot";
      /** Holds the text so far. It replaces all text of earlier events. */
      readonly text: string;
    }
  /** Holds a piece of the answer, or of the model's thinking. */
  | {
      /** States whether the text is part of the answer or of the thinking. */
      readonly name: "text.delta" | "thinking.delta";
      /** Holds the piece that arrived, which may be part of a word. */
      readonly text: string;
    }
  /** Reports a tool call of the model; the arguments are complete. */
  | {
      readonly name: "tool-call.delta";
      /** Holds the id of the call, as the model stated it. */
      readonly callId: string;
      /** Holds the name of the tool. */
      readonly toolName: string;
    }
  /** Reports that events were dropped because the reader was too slow. The session has all records. */
  | {
      readonly name: "stream.gap";
      /** Counts the dropped events. */
      readonly events: number;
      /** Counts the characters of text in the dropped events. */
      readonly characters: number;
    }
  /** Ends the events of a turn that did not fail. */
  | {
      readonly name: "turn.result";
      /** Holds the result that `runTurn` would have returned. */
      readonly turn: Turn;
    }
  | SessionTurnEvent;

export function deltaEvent(delta: ChatDelta): TurnStreamEvent {
  if (delta.type === "tool-call") return { name: "tool-call.delta", callId: delta.id, toolName: delta.name };
  return { name: delta.type === "text" ? "text.delta" : "thinking.delta", text: delta.text };
}

import type { ChatDelta, SessionRef, SessionStore } from "@throughline/core";
import { sessionRefText } from "@throughline/core/internal";
import { isReply } from "./message-parts.ts";
import type { SessionTurnEvent } from "./session-event.ts";
import { deltaEvent, type TurnStreamEvent } from "./turn-stream-event.ts";
import type { Turn } from "./turn.ts";

/** Receives the events of a turn that runs already. */
export interface LiveReader {
  readonly signal: AbortSignal;
  push(event: TurnStreamEvent): void;
  finish(event: TurnStreamEvent): void;
  fail(error: unknown): void;
}

/** Holds a turn that runs in this process, for readers that attach to it. */
export class LiveTurn {
  turnId = "";
  /** Holds the text of the reply that is being written. */
  #text = "";
  /** Holds the text of the replies that were stored since each reader came. */
  readonly #readers = new Map<LiveReader, string>();

  /** Adds a reader until it leaves. Its first event is the text so far. */
  attach(reader: LiveReader): void {
    reader.push({ name: "text.snapshot", text: this.#text });
    this.#readers.set(reader, "");
    reader.signal.addEventListener("abort", () => this.#readers.delete(reader), { once: true });
  }

  readonly takeEvent = (event: SessionTurnEvent): void => {
    this.#push(event);
    if (event.name === "record.appended" && isReply(event.record)) this.#settle();
    // Another attempt begins its text again.
    if (event.name !== "call.started" || this.#text === "") return;
    this.#text = "";
    for (const [reader, settled] of this.#readers) reader.push({ name: "text.snapshot", text: settled });
  };

  /** Shows each piece to the readers as well. */
  shows(onDelta: (delta: ChatDelta) => void): (delta: ChatDelta) => void {
    return (delta) => {
      if (delta.type === "text") this.#text += delta.text;
      this.#push(deltaEvent(delta));
      onDelta(delta);
    };
  }

  /** Runs the turn. Readers get its result or its error as `streamTurn` gives it. */
  async run(store: SessionStore, ref: SessionRef, turnId: string, work: () => Promise<Turn>): Promise<Turn> {
    this.turnId = turnId;
    const turns = liveTurns(store);
    const key = sessionRefText(ref);
    turns.set(key, this);
    try {
      const turn = await work();
      for (const reader of this.#readers.keys()) reader.finish({ name: "turn.result", turn });
      return turn;
    } catch (error) {
      for (const reader of this.#readers.keys()) reader.fail(error);
      throw error;
    } finally {
      if (turns.get(key) === this) turns.delete(key);
    }
  }

  #settle(): void {
    for (const [reader, settled] of this.#readers) this.#readers.set(reader, settled + this.#text);
    this.#text = "";
  }

  #push(event: TurnStreamEvent): void {
    for (const reader of this.#readers.keys()) reader.push(event);
  }
}

const turnsOf = new WeakMap<SessionStore, Map<string, LiveTurn>>();

/** Holds the turns that this process runs in a store, by session. */
export function liveTurns(store: SessionStore): Map<string, LiveTurn> {
  const known = turnsOf.get(store);
  if (known !== undefined) return known;
  const turns = new Map<string, LiveTurn>();
  turnsOf.set(store, turns);
  return turns;
}

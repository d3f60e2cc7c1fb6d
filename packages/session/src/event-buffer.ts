import type { TurnStreamEvent } from "./turn-stream-event.ts";

/** Limit the events that wait for a reader, and the characters of text in them. */
const maxEvents = 1000;
const maxCharacters = 1_048_576;
/** While no reader waits, pieces of text are joined up to this length. */
const joinedCharacters = 65_536;

/**
 * Buffers events between a turn and a slower reader. The turn never waits and the memory is bounded. Pieces of text are
 * joined first. Then the oldest events are dropped, text first, and one `stream.gap` event stands for them.
 */
export class EventBuffer {
  #events: TurnStreamEvent[] = [];
  #characters = 0;
  #dropped = { events: 0, characters: 0 };
  #end: { readonly error: unknown } | "done" | null = null;
  #wake: (() => void) | null = null;

  push(event: TurnStreamEvent): void {
    if (this.#end !== null) return;
    const last = this.#events.at(-1);
    const joined = last === undefined ? null : join(last, event);
    if (joined === null) this.#events.push(event);
    else this.#events[this.#events.length - 1] = joined;
    this.#characters += lengthOf(event);
    while (this.#events.length > maxEvents || this.#characters > maxCharacters) this.#dropOldest();
    this.#wake?.();
  }

  /** Adds the last event without the limits, so that it is never dropped. */
  finish(event: TurnStreamEvent): void {
    if (this.#end !== null) return;
    this.#events.push(event);
    this.#end = "done";
    this.#wake?.();
  }

  fail(error: unknown): void {
    if (this.#end !== null) return;
    this.#end = { error };
    this.#wake?.();
  }

  /** Drops the waiting events and ignores all later ones. */
  close(): void {
    this.#events = [];
    this.#characters = 0;
    this.#dropped = { events: 0, characters: 0 };
    this.#end = "done";
    this.#wake?.();
  }

  /**
   * Resolves to the next event; null after the last one.
   * @throws the error that ended the turn, once all events were read
   */
  async next(): Promise<TurnStreamEvent | null> {
    for (;;) {
      const { events, characters } = this.#dropped;
      if (events > 0) {
        this.#dropped = { events: 0, characters: 0 };
        return { name: "stream.gap", events, characters };
      }
      const event = this.#events.shift();
      if (event !== undefined) {
        this.#characters -= lengthOf(event);
        return event;
      }
      if (this.#end === "done") return null;
      if (this.#end !== null) throw this.#end.error;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = null;
    }
  }

  #dropOldest(): void {
    const at = Math.max(0, this.#events.findIndex(isText));
    const [event] = this.#events.splice(at, 1);
    if (event === undefined) return;
    const characters = lengthOf(event);
    this.#characters -= characters;
    this.#dropped = { events: this.#dropped.events + 1, characters: this.#dropped.characters + characters };
  }
}

type TextEvent = Extract<TurnStreamEvent, { readonly name: "text.delta" | "thinking.delta" }>;

function isText(event: TurnStreamEvent): event is TextEvent {
  return event.name === "text.delta" || event.name === "thinking.delta";
}

function lengthOf(event: TurnStreamEvent): number {
  return isText(event) ? event.text.length : 0;
}

/** Joins two pieces of the same kind of text; null when the events must stay separate. */
function join(first: TurnStreamEvent, second: TurnStreamEvent): TextEvent | null {
  if (!isText(first) || !isText(second) || first.name !== second.name) return null;
  return first.text.length > joinedCharacters ? null : { name: first.name, text: first.text + second.text };
}

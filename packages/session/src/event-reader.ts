import { ThroughlineError } from "@throughline/core";
import type { EventBuffer } from "./event-buffer.ts";
import type { TurnStreamEvent } from "./turn-stream-event.ts";

/**
 * Gives the events of a buffer to one reader.
 *
 * @param leave runs when the reader leaves the loop
 * @param remedy states how to give the events to several readers
 */
export class EventReader {
  readonly #buffer: EventBuffer;
  readonly #leave: () => Promise<void>;
  readonly #remedy: string;
  #isRead = false;

  constructor(buffer: EventBuffer, leave: () => Promise<void>, remedy: string) {
    this.#buffer = buffer;
    this.#leave = leave;
    this.#remedy = remedy;
  }

  /** @throws {ThroughlineError} INPUT_INVALID for a second reader */
  read(): AsyncIterator<TurnStreamEvent, void, void> {
    if (this.#isRead)
      throw new ThroughlineError(
        "INPUT_INVALID",
        "The events of this turn have a reader already; they are read once.",
        { outcome: "not-applied", remedy: this.#remedy },
      );
    this.#isRead = true;
    return {
      next: async () => {
        const event = await this.#buffer.next();
        return event === null ? { done: true, value: undefined } : { done: false, value: event };
      },
      return: async () => {
        await this.#leave();
        return { done: true, value: undefined };
      },
    };
  }
}

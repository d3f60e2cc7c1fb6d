import { type Clock, hasErrorCode, type PartialReply, type PartialsFacet } from "@throughline/core";
import { isUnreadablePartial } from "@throughline/core/internal";
import { eventText } from "./event-text.ts";
import type { SessionFeed } from "./session-feed.ts";

const everyMs = 500;

/**
 * Reads the reply of the open turn once for all streams of a session on this node. Without an open turn it leaves the
 * store alone.
 */
export class PartialFeed {
  readonly #partials: PartialsFacet;
  readonly #feed: SessionFeed;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<(event: string) => void>();
  #running: AbortController | null = null;
  #last: string | null = null;

  /** @param onError receives an error that ends the reading; the next stream that joins begins it again */
  constructor(partials: PartialsFacet, feed: SessionFeed, clock: Clock, onError: (error: unknown) => void) {
    this.#partials = partials;
    this.#feed = feed;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** @param tell takes each event. Returns a function that ends it */
  join(tell: (event: string) => void): () => void {
    this.#listeners.add(tell);
    if (this.#last !== null && this.#feed.state.head.turn !== null) tell(this.#last);
    if (this.#running === null) {
      this.#running = new AbortController();
      void this.#run(this.#running.signal);
    }
    return () => {
      this.#listeners.delete(tell);
      if (this.#listeners.size > 0) return;
      this.#running?.abort();
      this.#running = null;
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted && this.#feed.end === null) {
        const event = this.#feed.state.head.turn === null ? null : await this.#read();
        const isNew = event !== this.#last;
        this.#last = event;
        if (event !== null && isNew) for (const tell of this.#listeners) tell(event);
        await this.#clock.sleep(everyMs, signal);
      }
    } catch (error) {
      // The stream of records reports a store that is away; the text so far stays as it is. No caller awaits this
      // promise, so a rejection would end the process.
      if (!hasErrorCode(error, "ABORTED", "SESSION_NOT_FOUND", "STORE_UNREACHABLE", "STORE_IO")) this.#onError(error);
    } finally {
      if (this.#running?.signal === signal) this.#running = null;
    }
  }

  async #read(): Promise<string | null> {
    const partial = await this.#readText();
    if (partial === null || partial.sessionId !== this.#feed.sessionId) return null;
    const { sessionId, turnId, step, attempt, text, updatedMs } = partial;
    return eventText("partial", JSON.stringify({ sessionId, turnId, step, attempt, text, updatedMs }));
  }

  async #readText(): Promise<PartialReply | null> {
    try {
      return await this.#partials.read(this.#feed.ref);
    } catch (error) {
      if (isUnreadablePartial(error)) return null;
      throw error;
    }
  }
}

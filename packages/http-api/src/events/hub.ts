import {
  hasErrorCode,
  type Clock,
  type PartialsFacet,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { sessionRefText } from "@throughline/core/internal";
import { PartialFeed } from "./partial-feed.ts";
import { SessionFeed, type Listener } from "./session-feed.ts";

/**
 * Sets the pause between two feeds that are compared with the store. The comparison finds changes by other nodes that
 * no record announces.
 */
const checkEveryMs = 1000;
/** Delays a refresh after a record, so that one refresh covers the changes that follow the record. */
const lookAfterMs = 100;

/** Holds the feeds of this node: one feed for each followed session, shared by all of its streams. */
export interface Hub {
  join(state: SessionState, listener: Listener): SessionFeed;
  leave(feed: SessionFeed, listener: Listener): void;
  /** Returns the open reply of a feed, which its streams share. */
  partialsOf(feed: SessionFeed, partials: PartialsFacet): PartialFeed;
  /** Refreshes the feed of a session, because this process may have changed it. */
  touch(ref: SessionRef): void;
  readonly feeds: number;
  close(): void;
}

/**
 * @param onError receives the error of a failed refresh, which the watch of that session reports too, and an error of
 *   the store that ends the reading of open replies
 */
export function createHub(store: SessionStore, clock: Clock, onError: (error: unknown) => void): Hub {
  const hub = new FeedHub(store, clock, onError);
  void hub.checkInTurn();
  return hub;
}

class FeedHub implements Hub {
  readonly #store: SessionStore;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #feeds = new Map<string, SessionFeed>();
  readonly #closing = new AbortController();
  readonly #looking = new Set<SessionFeed>();
  readonly #partials = new WeakMap<SessionFeed, PartialFeed>();

  constructor(store: SessionStore, clock: Clock, onError: (error: unknown) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onError = onError;
  }

  get feeds(): number {
    return this.#feeds.size;
  }

  join(state: SessionState, listener: Listener): SessionFeed {
    const known = this.#feeds.get(sessionRefText(state.ref));
    const isCurrent = known !== undefined && known.sessionId === state.sessionId && known.end === null;
    const feed = isCurrent ? known : this.#begin(state);
    feed.add(listener);
    return feed;
  }

  leave(feed: SessionFeed, listener: Listener): void {
    feed.remove(listener);
    if (!feed.isIdle) return;
    feed.stop();
    this.#drop(feed);
  }

  partialsOf(feed: SessionFeed, partials: PartialsFacet): PartialFeed {
    const known = this.#partials.get(feed) ?? new PartialFeed(partials, feed, this.#clock, this.#onError);
    this.#partials.set(feed, known);
    return known;
  }

  touch(ref: SessionRef): void {
    const feed = this.#feeds.get(sessionRefText(ref));
    if (feed !== undefined) void this.#look(feed);
  }

  close(): void {
    this.#closing.abort();
    for (const feed of this.#feeds.values()) feed.stop();
    this.#feeds.clear();
  }

  /** Compares one feed after the other with the store, until the hub closes. */
  async checkInTurn(): Promise<void> {
    try {
      for (;;) {
        for (const feed of this.#feeds.values()) {
          await this.#clock.sleep(checkEveryMs, this.#closing.signal);
          await this.#look(feed);
        }
        await this.#clock.sleep(checkEveryMs, this.#closing.signal);
      }
    } catch (error) {
      // `sleep` rejects with ABORTED when the hub is closed, which is not an error.
      if (!hasErrorCode(error, "ABORTED")) this.#onError(error);
    }
  }

  #begin(state: SessionState): SessionFeed {
    const feed = new SessionFeed(this.#store, state);
    this.#feeds.set(sessionRefText(state.ref), feed);
    void feed.follow(() => void this.#look(feed)).finally(() => this.#drop(feed));
    return feed;
  }

  /** A later feed of the same session stays. */
  #drop(feed: SessionFeed): void {
    const name = sessionRefText(feed.ref);
    if (this.#feeds.get(name) === feed) this.#feeds.delete(name);
  }

  async #look(feed: SessionFeed): Promise<void> {
    if (feed.end !== null || this.#looking.has(feed)) return;
    this.#looking.add(feed);
    try {
      await this.#clock.sleep(lookAfterMs, this.#closing.signal);
      this.#looking.delete(feed);
      feed.take(await this.#store.load(feed.ref));
    } catch (error) {
      if (!hasErrorCode(error, "ABORTED")) this.#onError(error);
    } finally {
      this.#looking.delete(feed);
    }
  }
}

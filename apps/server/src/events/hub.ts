import { hasErrorCode, type Clock, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { sessionRefText } from "@throughline/core/internal";
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
  /** Refreshes the feed of a session, because this process may have changed it. */
  touch(ref: SessionRef): void;
  readonly feeds: number;
  close(): void;
}

/** @param onError receives the error of a failed refresh; the watch of that session reports the same error */
export function createHub(store: SessionStore, clock: Clock, onError: (error: unknown) => void): Hub {
  const feeds = new Map<string, SessionFeed>();
  const closing = new AbortController();
  const looking = new Set<SessionFeed>();

  const look = async (feed: SessionFeed): Promise<void> => {
    if (feed.end !== null || looking.has(feed)) return;
    looking.add(feed);
    try {
      await clock.sleep(lookAfterMs, closing.signal);
      looking.delete(feed);
      feed.take(await store.load(feed.ref));
    } catch (error) {
      if (!hasErrorCode(error, "ABORTED")) onError(error);
    } finally {
      looking.delete(feed);
    }
  };
  const checkInTurn = async (): Promise<void> => {
    try {
      for (;;) {
        for (const feed of feeds.values()) {
          await clock.sleep(checkEveryMs, closing.signal);
          await look(feed);
        }
        await clock.sleep(checkEveryMs, closing.signal);
      }
    } catch (error) {
      // `sleep` rejects with ABORTED when the hub is closed, which is not an error.
      if (!hasErrorCode(error, "ABORTED")) onError(error);
    }
  };
  void checkInTurn();

  return {
    join(state, listener) {
      const name = sessionRefText(state.ref);
      let feed = feeds.get(name);
      if (feed === undefined || feed.sessionId !== state.sessionId || feed.end !== null) {
        feed = new SessionFeed(store, state);
        feeds.set(name, feed);
        const followed = feed;
        void followed
          .follow(() => void look(followed))
          .finally(() => {
            if (feeds.get(name) === followed) feeds.delete(name);
          });
      }
      feed.add(listener);
      return feed;
    },
    leave(feed, listener) {
      feed.remove(listener);
      if (!feed.isIdle) return;
      feed.stop();
      const name = sessionRefText(feed.ref);
      if (feeds.get(name) === feed) feeds.delete(name);
    },
    touch(ref) {
      const feed = feeds.get(sessionRefText(ref));
      if (feed !== undefined) void look(feed);
    },
    get feeds() {
      return feeds.size;
    },
    close() {
      closing.abort();
      for (const feed of feeds.values()) feed.stop();
      feeds.clear();
    },
  };
}

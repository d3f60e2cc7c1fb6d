import { ThroughlineError, type SessionStore } from "@throughline/core";
import { eventText, recordData, standing } from "./event-text.ts";
import { dataOf, keptEvents, recordEvent, type FeedEnd, type Listener, type SessionFeed } from "./session-feed.ts";
import type { Reply } from "../http/exchange.ts";

export interface Followed {
  readonly feed: SessionFeed;
  readonly store: SessionStore;
  position: number;
  stateVersion: number;
}

export type StreamEnd = "client" | "gone" | "lagged" | "bye" | "failed";

const ownPageRecords = 50;
/** Limits how long the last event waits for a client that does not read, before the connection is destroyed. */
const lingerMs = 1000;

/**
 * Writes the events of sessions to one response, no faster than the client reads. The stream buffers at most one event,
 * because later events are in the feed or in the store.
 */
export class EventStream implements Listener {
  readonly #response: Reply;
  readonly #followed: readonly Followed[];
  readonly #isComposite: boolean;
  #isBlocked = false;
  #isRunning = false;
  #isWoken = false;
  #ended: StreamEnd | null = null;
  readonly #done = Promise.withResolvers<StreamEnd>();

  constructor(response: Reply, followed: readonly Followed[], isComposite: boolean) {
    this.#response = response;
    this.#followed = followed;
    this.#isComposite = isComposite;
    response.on("drain", () => {
      this.#isBlocked = false;
      this.wake();
    });
    for (const event of ["close", "error"] as const) response.on(event, () => this.#finish("client"));
  }

  get done(): Promise<StreamEnd> {
    return this.#done.promise;
  }

  /** Writes `hello` for each session first, because clients take their starting position from it. */
  begin(): void {
    for (const { feed } of this.#followed) this.#write(eventText("hello", standing(feed.state)));
    this.wake();
  }

  wake(): void {
    this.#isWoken = true;
    if (this.#ended !== null) return;
    if (this.#isBlocked) return this.#endIfLagged();
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  /** A blocked stream leaves the text out: the next event has all of it. */
  partial(event: string): void {
    if (this.#ended === null && !this.#isBlocked) this.#write(event);
  }

  ping(): void {
    // A blocked stream still has unread data, so a ping would only grow the buffer.
    if (this.#ended === null && !this.#isBlocked) this.#write(eventText("ping", "{}"));
  }

  bye(retryMs: number): void {
    this.#end("bye", eventText("bye", JSON.stringify({ retryMs })));
  }

  gone(end: { readonly code: string; readonly sessionId: string | null }): void {
    this.#end("gone", eventText("gone", JSON.stringify(end)));
  }

  async #run(): Promise<void> {
    try {
      while (this.#isWoken && !this.#isBlocked && this.#ended === null) {
        this.#isWoken = false;
        for (const followed of this.#followed) await this.#tell(followed);
      }
    } catch (error) {
      const code = ThroughlineError.isInstance(error) ? error.code : "INTERNAL";
      if (code === "SESSION_NOT_FOUND") this.gone({ code, sessionId: null });
      else this.#end("failed", "");
    } finally {
      this.#isRunning = false;
      if (this.#isWoken && !this.#isBlocked) this.wake();
    }
  }

  async #tell(followed: Followed): Promise<void> {
    const { feed } = followed;
    while (!this.#isBlocked && this.#ended === null && followed.position < feed.lastSeq) {
      const kept = feed.after(followed.position);
      if (kept === null) await this.#readOn(followed);
      else
        for (const event of kept) {
          followed.position = event.seq;
          this.#write(this.#isComposite ? this.#compositeEvent(followed, dataOf(event)) : event.bytes);
          if (this.#isBlocked || this.#ended !== null) break;
        }
    }
    if (this.#isBlocked || this.#ended !== null) return;
    if (followed.stateVersion !== feed.stateVersion) {
      followed.stateVersion = feed.stateVersion;
      this.#write(eventText("state", standing(feed.state)));
    }
    if (feed.end !== null) this.#endOf(feed.end);
  }

  /** Reads one page from the store, because the feed no longer keeps the events that this stream needs. */
  async #readOn(followed: Followed): Promise<void> {
    const { feed, store } = followed;
    const options = { afterSeq: followed.position, limit: ownPageRecords, payload: "source" } as const;
    for await (const { records } of store.read(feed.ref, options)) {
      // The key may now belong to a new session. Then the page may hold records of that session and must not be sent.
      const current = await store.load(feed.ref);
      if (current?.sessionId !== feed.sessionId) {
        feed.take(current);
        break;
      }
      for (const record of records) {
        if (this.#isBlocked || this.#ended !== null) return;
        followed.position = record.seq;
        const data = recordData(record);
        this.#write(
          this.#isComposite ? this.#compositeEvent(followed, data) : recordEvent(feed.sessionId, record.seq, data),
        );
      }
      return;
    }
    // The store lacks records that the feed has announced: the session was replaced, or a purge has begun.
    followed.position = feed.lastSeq;
  }

  /** The event id states the position in each session, so that a client can resume a stream of several sessions. */
  #compositeEvent({ feed }: Followed, data: string): string {
    const id = this.#followed.map(({ feed: { sessionId }, position }) => `${sessionId}/${position}`).join(",");
    return eventText("record", `{"sessionId":${JSON.stringify(feed.sessionId)},${data.slice(1)}`, id);
  }

  #endOf(end: FeedEnd): void {
    if (end.code === "STORE_UNREACHABLE") this.#end("failed", "");
    else this.gone(end);
  }

  /**
   * Ends a blocked stream once the feed no longer keeps its next event. The client reconnects with its last event id.
   */
  #endIfLagged(): void {
    const isLagged = this.#followed.some(({ feed, position }) => {
      return feed.lastSeq - position > keptEvents || feed.after(position) === null;
    });
    if (isLagged) this.#end("lagged", eventText("lagged", "{}"));
  }

  #write(piece: string | Buffer): void {
    if (this.#response.destroyed) return;
    if (!this.#response.write(piece)) this.#isBlocked = true;
  }

  #end(end: StreamEnd, last: string): void {
    if (this.#ended !== null) return;
    const response = this.#response;
    this.#finish(end);
    response.end(last);
    // The client may never read the last event, so the connection is destroyed after a short wait.
    setTimeout(() => response.destroy(), lingerMs).unref();
  }

  #finish(end: StreamEnd): void {
    if (this.#ended !== null) return;
    this.#ended = end;
    this.#done.resolve(end);
  }
}

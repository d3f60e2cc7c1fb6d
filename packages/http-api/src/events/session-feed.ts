import { hasErrorCode, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { eventText, recordData, standing, withLines } from "./event-text.ts";

/** Holds a record event as bytes that are serialized once and shared by all streams. */
export interface FeedEvent {
  readonly seq: number;
  readonly bytes: Buffer;
}

/**
 * Extracts the data of an event. Streams of one session write the bytes unchanged, so only streams of several sessions
 * need this.
 */
export function dataOf({ bytes }: FeedEvent): string {
  return bytes.toString("utf8", bytes.indexOf(dataField) + dataField.length, bytes.length - 2);
}

/**
 * Limits how many events a feed keeps for streams that are behind. A stream that stays blocked for longer ends as
 * lagged.
 */
export const keptEvents = 256;
const keptBytes: number = 1024 * 1024;
const dataField = "\ndata: ";

export interface Listener {
  wake(): void;
}

export interface FeedEnd {
  readonly code: "SESSION_NOT_FOUND" | "SESSION_REPLACED" | "STORE_UNREACHABLE";
  /** Is null when no session has the key. */
  readonly sessionId: string | null;
}

/**
 * Follows one session for all streams of this node with a single store watch, so that the store's load does not grow
 * with the streams.
 */
export class SessionFeed {
  readonly sessionId: string;
  readonly ref: SessionRef;
  lastSeq: number;
  state: SessionState;
  /** Counts the changes of the state that no record announces. */
  stateVersion = 0;
  end: FeedEnd | null = null;
  readonly #store: SessionStore;
  readonly #listeners = new Set<Listener>();
  readonly #stop = new AbortController();
  #kept: FeedEvent[] = [];
  #keptBytes = 0;

  constructor(store: SessionStore, state: SessionState) {
    this.#store = store;
    this.state = state;
    this.ref = state.ref;
    this.sessionId = state.sessionId;
    this.lastSeq = state.head.lastSeq;
  }

  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  add(listener: Listener): void {
    this.#listeners.add(listener);
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /**
   * Follows the store until the feed is stopped or its session is deleted. `onRecords` is called after each page,
   * because the state may have changed with the records.
   */
  async follow(onRecords: () => void): Promise<void> {
    const { signal } = this.#stop;
    try {
      const options = { afterSeq: this.lastSeq, signal };
      const pages = this.#store.watch?.watch(this.ref, options) ?? [];
      for await (const { records } of pages) {
        for (const record of await withLines(this.#store, this.state, records)) {
          const event = recordEvent(this.sessionId, record.seq, recordData(record));
          this.#keep({ seq: record.seq, bytes: Buffer.from(event) });
        }
        this.#wakeAll();
        onRecords();
      }
    } catch (error) {
      if (signal.aborted) return;
      const isGone = hasErrorCode(error, "SESSION_NOT_FOUND");
      this.close({ code: isGone ? "SESSION_NOT_FOUND" : "STORE_UNREACHABLE", sessionId: null });
    }
  }

  /**
   * Returns the events after a seq. Null means that the feed no longer keeps all of them, so the stream has to read the
   * store.
   */
  after(seq: number): readonly FeedEvent[] | null {
    if (seq >= this.lastSeq) return [];
    const first = this.#kept[0];
    if (first === undefined || first.seq > seq + 1) return null;
    return this.#kept.slice(seq + 1 - first.seq);
  }

  /** Stores the current state of the session. The feed ends when the key has no session or a different one. */
  take(current: SessionState | null): void {
    if (current === null || current.sessionId !== this.sessionId) {
      const sessionId = current?.sessionId ?? null;
      this.close({ code: sessionId === null ? "SESSION_NOT_FOUND" : "SESSION_REPLACED", sessionId });
      return;
    }
    // An archived session gets no note of a redaction, which then shows only in the count of its messages.
    const isSame = current.messageCount === this.state.messageCount && standing(current) === standing(this.state);
    this.state = current;
    if (isSame) return;
    this.stateVersion += 1;
    this.#wakeAll();
  }

  close(end: FeedEnd): void {
    this.end ??= end;
    this.#stop.abort();
    this.#wakeAll();
  }

  stop(): void {
    this.#stop.abort();
  }

  #keep(event: FeedEvent): void {
    this.#kept.push(event);
    this.#keptBytes += event.bytes.length;
    this.lastSeq = event.seq;
    while (this.#kept.length > keptEvents || (this.#keptBytes > keptBytes && this.#kept.length > 1))
      this.#keptBytes -= this.#kept.shift()?.bytes.length ?? 0;
  }

  #wakeAll(): void {
    for (const listener of this.#listeners) listener.wake();
  }
}

export function recordEvent(sessionId: string, seq: number, data: string): string {
  return eventText("record", data, `${sessionId}/${seq}`);
}

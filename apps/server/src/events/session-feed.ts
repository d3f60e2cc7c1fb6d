import { hasErrorCode, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { eventText, recordData, standing, withLines } from "./event-text.ts";

/** A record event, made once for all streams. */
export interface FeedEvent {
  readonly seq: number;
  readonly bytes: Buffer;
}

/** The data of an event: what stands behind its last field name. Only streams of several sessions need it. */
export function dataOf({ bytes }: FeedEvent): string {
  return bytes.toString("utf8", bytes.indexOf(dataField) + dataField.length, bytes.length - 2);
}

/** Events that a feed keeps for streams that are a little behind; a stream that is blocked for longer has lagged. */
export const keptEvents = 256;
const keptBytes: number = 1024 * 1024;
const dataField = "\ndata: ";

export interface Listener {
  /** There may be something to write. */
  wake(): void;
}

/** What ended a feed. */
export interface FeedEnd {
  readonly code: "SESSION_NOT_FOUND" | "SESSION_REPLACED" | "STORE_UNREACHABLE";
  /** The session that has the key now. */
  readonly sessionId: string | null;
}

/** One session as all streams of this node follow it: one watch of the store, whatever their number. */
export class SessionFeed {
  readonly sessionId: string;
  readonly ref: SessionRef;
  /** The newest record that is known. */
  lastSeq: number;
  state: SessionState;
  /** Grows with each change of the state that no record says. */
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

  /** Follows the store until the feed is stopped or its session is gone. `onRecords`: the state may have changed as well. */
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

  /** The events behind a seq, none when there are none; null when they are not kept here any more. */
  after(seq: number): readonly FeedEvent[] | null {
    if (seq >= this.lastSeq) return [];
    const first = this.#kept[0];
    if (first === undefined || first.seq > seq + 1) return null;
    return this.#kept.slice(seq + 1 - first.seq);
  }

  /** Takes what the session is now, or that it is none any more. */
  take(current: SessionState | null): void {
    if (current === null || current.sessionId !== this.sessionId) {
      const sessionId = current?.sessionId ?? null;
      this.close({ code: sessionId === null ? "SESSION_NOT_FOUND" : "SESSION_REPLACED", sessionId });
      return;
    }
    const isSame = standing(current) === standing(this.state);
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

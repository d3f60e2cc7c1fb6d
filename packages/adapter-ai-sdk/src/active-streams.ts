import type { Fields } from "@throughline/core/internal";

/** How long a process that answers may say nothing before its stream counts as ended, in milliseconds. */
const leaseMs = 10_000;

/** The stream that answers now by the entry of a chat; null when none does, or the process that answered is gone. */
export function activeStreamOf(entry: Fields | undefined, nowMs: number): string | null {
  const id = entry?.["activeStreamId"];
  return typeof id === "string" && aliveForMs(entry, nowMs) > 0 ? id : null;
}

/** How long the stream of a chat still counts as active, in milliseconds. */
export function aliveForMs(entry: Fields | undefined, nowMs: number): number {
  const untilMs = entry?.["activeStreamUntilMs"];
  // A clock that was set back does not make a stream live longer.
  return typeof untilMs === "number" ? Math.min(untilMs - nowMs, leaseMs) : 0;
}

/** Whether an entry states this stream; null for none. */
export function isActiveStream(entry: Fields | undefined, streamId: string | null, nowMs: number): boolean {
  return streamId === null ? entry?.["activeStreamId"] === undefined : activeStreamOf(entry, nowMs) === streamId;
}

/** The fields of an entry that state a stream; null takes them out. */
export function streamFields(streamId: string | null, nowMs: number): Fields {
  const isOver = streamId === null;
  return {
    activeStreamId: isOver ? undefined : streamId,
    activeStreamUntilMs: isOver ? undefined : nowMs + leaseMs,
  };
}

/** Renews the streams that this process answers in. No timer keeps the process alive. */
export class LiveStreams {
  readonly #timers = new Map<string, { readonly streamId: string; readonly timer: NodeJS.Timeout }>();

  /**
   * Renews a stream from now on, instead of the one before it in the same chat; null renews none.
   * @param renew false when another stream was saved, or none
   */
  keep(chat: string, streamId: string | null, renew: () => Promise<boolean>): void {
    const known = this.#timers.get(chat);
    if (known !== undefined && known.streamId === streamId) return;
    clearInterval(known?.timer);
    this.#timers.delete(chat);
    if (streamId === null) return;
    const timer = setInterval(() => {
      // A stream that cannot be renewed ends for its readers: the store is closed, or out of reach.
      void renew()
        .catch(() => false)
        .then((isSame) => {
          if (isSame) return;
          clearInterval(timer);
          if (this.#timers.get(chat)?.timer === timer) this.#timers.delete(chat);
        });
    }, leaseMs / 3).unref();
    this.#timers.set(chat, { streamId, timer });
  }
}

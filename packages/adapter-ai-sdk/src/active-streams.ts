import type { Fields } from "@throughline/core/internal";

/** A stream counts as ended when its process has renewed nothing for this time, in milliseconds. */
const leaseMs = 10_000;

/**
 * Returns the stream that answers now, by the entry of a chat. It is null when no process answers or the process died.
 */
export function activeStreamOf(entry: Fields | undefined, nowMs: number): string | null {
  const id = entry?.["activeStreamId"];
  return typeof id === "string" && aliveForMs(entry, nowMs) > 0 ? id : null;
}

/** Returns how long the stream of a chat still counts as active, in milliseconds. */
export function aliveForMs(entry: Fields | undefined, nowMs: number): number {
  const untilMs = entry?.["activeStreamUntilMs"];
  // The limit protects against a clock that was set back: it must not make a stream live longer.
  return typeof untilMs === "number" ? Math.min(untilMs - nowMs, leaseMs) : 0;
}

/** Checks whether an entry states this stream; null checks that the entry states no stream. */
export function isActiveStream(entry: Fields | undefined, streamId: string | null, nowMs: number): boolean {
  return streamId === null ? entry?.["activeStreamId"] === undefined : activeStreamOf(entry, nowMs) === streamId;
}

/** Builds the fields of an entry that state a stream; null removes them. */
export function streamFields(streamId: string | null, nowMs: number): Fields {
  const isOver = streamId === null;
  return {
    activeStreamId: isOver ? undefined : streamId,
    activeStreamUntilMs: isOver ? undefined : nowMs + leaseMs,
  };
}

/** Renews the streams that this process answers in. Its timers do not keep the process alive. */
export class LiveStreams {
  readonly #timers = new Map<string, { readonly streamId: string; readonly timer: NodeJS.Timeout }>();

  /**
   * Renews a stream from now on and stops renewing the previous one of the same chat. A null id only stops.
   * @param renew resolves to false when another stream or none was saved
   */
  keep(chat: string, streamId: string | null, renew: () => Promise<boolean>): void {
    const known = this.#timers.get(chat);
    if (known !== undefined && known.streamId === streamId) return;
    clearInterval(known?.timer);
    this.#timers.delete(chat);
    if (streamId === null) return;
    const timer = setInterval(() => {
      // A failed renewal means that the store is closed or out of reach. The stream then ends for its readers.
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

import type { Fields } from "@throughline/core/internal";
import { processOwners } from "@throughline/core/internal/node";

/**
 * A stream counts as ended when its process has renewed nothing for this time, in milliseconds. A process of this
 * machine is known to be gone earlier.
 */
const leaseMs = 10_000;
/** Readers look again after this time at the latest, because nothing reports the death of a process. */
const lookMs = 1000;

/**
 * Returns the stream that answers now, by the entry of a chat. It is null when no process answers or the process died.
 */
export function activeStreamOf(entry: Fields | undefined, nowMs: number): string | null {
  const id = entry?.["activeStreamId"];
  return typeof id === "string" && aliveForMs(entry, nowMs) > 0 ? id : null;
}

/** Returns after which time a reader must look again whether the stream of a chat is active, in milliseconds. */
export function aliveForMs(entry: Fields | undefined, nowMs: number): number {
  const { activeStreamUntilMs: untilMs, activeStreamOwner: owner } = entry ?? {};
  const isGone = typeof owner === "string" && processOwners().stateOf(owner) === "gone";
  return typeof untilMs === "number" && !isGone ? Math.min(untilMs - nowMs, lookMs) : 0;
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
    activeStreamOwner: isOver ? undefined : processOwners().self,
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

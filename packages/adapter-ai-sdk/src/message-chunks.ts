import type { Clock } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { type MessageChunk, MessageChunks } from "@throughline/foreign-formats/internal";

interface Growing {
  /** Reads the last stored message, and how long its stream counts as active; null when the stream has ended. */
  readonly read: () => Promise<{ readonly last: Fields | undefined; readonly aliveForMs: number | null }>;
  /** Yields once each time the session has grown. */
  readonly changes: AsyncIterable<unknown>;
  readonly clock: Clock;
  readonly stop: () => void;
}

/** Yields the chunks of the answer that is being saved: first the stored part, then each addition. */
export async function* chunksOf({ read, changes, clock, stop }: Growing): AsyncGenerator<MessageChunk, void> {
  const given = new MessageChunks();
  const take = async function* (): AsyncGenerator<MessageChunk, number | null> {
    const { last, aliveForMs } = await read();
    if (last?.["role"] === "assistant") yield* given.take(last);
    return aliveForMs;
  };
  let aliveForMs = yield* take();
  const iterator = changes[Symbol.asyncIterator]();
  try {
    let change = iterator.next();
    while (aliveForMs !== null) {
      // No change reports the death of a process. The stream is therefore read again when its renewal is due.
      const woken = await firstOf(change, clock, aliveForMs);
      if (woken?.done === true) break;
      if (woken !== null) change = iterator.next();
      aliveForMs = yield* take();
    }
  } finally {
    // The iterator waits for the next change, so `return` would hang without `stop`.
    stop();
    await iterator.return?.();
  }
  yield* given.end();
}

/** Returns the value of a change, or null when the time is up first. */
async function firstOf<Value>(change: Promise<Value>, clock: Clock, delayMs: number): Promise<Value | null> {
  const stop = new AbortController();
  const late = clock.sleep(delayMs, stop.signal).then(() => null);
  late.catch(() => {});
  try {
    return await Promise.race([change, late]);
  } finally {
    stop.abort();
  }
}

import type { Clock } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { type MessageChunk, MessageChunks } from "@throughline/foreign-formats/internal";

interface Growing {
  /** Reads the last stored message, and how long its stream counts as active; null when the stream has ended. */
  readonly read: () => Promise<{ readonly last: Fields | null; readonly aliveForMs: number | null }>;
  /** Yields once each time the session has grown; null where the store cannot watch. */
  readonly changes: AsyncIterable<unknown> | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly stop: () => void;
}

/** Yields the chunks of the answer that is being saved: first the stored part, then each addition. */
export async function* chunksOf({ read, changes, clock, signal, stop }: Growing): AsyncGenerator<MessageChunk, void> {
  const given = new MessageChunks();
  const take = async function* (): AsyncGenerator<MessageChunk, number | null> {
    const { last, aliveForMs } = await read();
    if (last?.["role"] === "assistant") yield* given.take(last);
    return aliveForMs;
  };
  let aliveForMs = yield* take();
  const iterator = changes?.[Symbol.asyncIterator]() ?? null;
  const next = (): Promise<IteratorResult<unknown>> => iterator?.next() ?? new Promise(() => {});
  try {
    let change = next();
    while (aliveForMs !== null && !signal.aborted) {
      // No change reports text that is being written, or the death of a process.
      const woken = await firstOf(change, clock, aliveForMs);
      aliveForMs = yield* take();
      if (woken?.done === true) break;
      if (woken !== null) change = next();
    }
  } finally {
    // The iterator waits for the next change, so `return` would hang without `stop`.
    stop();
    await iterator?.return?.();
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

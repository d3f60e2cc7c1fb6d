import type { Clock } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { type MessageChunk, MessageChunks } from "@throughline/foreign-formats/internal";

/** Readers look again after this time: nothing reports a partial, or the death of a process. */
const lookMs = 500;

/** Holds the last message of a chat, and whether its stream still answers. */
export interface Growth {
  readonly last: Fields | null;
  readonly isActive: boolean;
}

interface Growing {
  readonly read: () => Promise<Growth>;
  /** Yields once each time the session has grown; null where the store cannot watch. */
  readonly changes: AsyncIterable<unknown> | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly stop: () => void;
}

/** Yields the chunks of the answer that is being saved: first the stored part, then each addition. */
export async function* chunksOf({ read, changes, clock, signal, stop }: Growing): AsyncGenerator<MessageChunk, void> {
  const given = new MessageChunks();
  const take = async function* (): AsyncGenerator<MessageChunk, boolean> {
    const { last, isActive } = await read();
    if (last?.["role"] === "assistant") yield* given.take(last);
    return isActive;
  };
  let isActive = yield* take();
  const iterator = changes?.[Symbol.asyncIterator]() ?? null;
  const next = (): Promise<IteratorResult<unknown>> => iterator?.next() ?? new Promise(() => {});
  try {
    let change = next();
    while (isActive && !signal.aborted) {
      // No change reports text that is being written, or the death of a process.
      const woken = await firstOf(change, clock);
      isActive = yield* take();
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

/** Returns the value of a change, or null when it is time to look again first. */
async function firstOf<Value>(change: Promise<Value>, clock: Clock): Promise<Value | null> {
  const stop = new AbortController();
  const late = clock.sleep(lookMs, stop.signal).then(() => null);
  late.catch(() => {});
  try {
    return await Promise.race([change, late]);
  } finally {
    stop.abort();
  }
}

import type { Clock } from "@throughline/core";
import type { Fields } from "@throughline/core/internal";
import { type MessageChunk, MessageChunks } from "@throughline/foreign-formats/internal";

interface Growing {
  /** The last message as it is stored now, and how long its stream counts as active; null: it has ended. */
  readonly read: () => Promise<{ readonly last: Fields | undefined; readonly aliveForMs: number | null }>;
  /** Gives something each time the session has grown. */
  readonly changes: AsyncIterable<unknown>;
  readonly clock: Clock;
  /** Ends the changes. */
  readonly stop: () => void;
}

/** The chunks that build the answer which is being saved: what is stored already, then what is added. */
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
      // No change reports that a process died: its stream is read again when it should have been renewed.
      const woken = await firstOf(change, clock, aliveForMs);
      if (woken?.done === true) break;
      if (woken !== null) change = iterator.next();
      aliveForMs = yield* take();
    }
  } finally {
    // It waits for the next change until it is stopped.
    stop();
    await iterator.return?.();
  }
  yield* given.end();
}

/** The value of a change; null when the time is up before. */
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

import type { Fields } from "@throughline/core/internal";
import { type MessageChunk, MessageChunks } from "@throughline/foreign-formats/live";

interface Growing {
  /** The last message as it is stored now, and whether its stream is under way. */
  readonly read: () => Promise<{ readonly last: Fields | undefined; readonly isActive: boolean }>;
  /** Gives something each time the session has grown. */
  readonly changes: AsyncIterable<unknown>;
}

/** The chunks that build the answer which is being saved: what is stored already, then what is added. */
export async function* chunksOf({ read, changes }: Growing): AsyncGenerator<MessageChunk, void> {
  const given = new MessageChunks();
  const take = async function* (): AsyncGenerator<MessageChunk, boolean> {
    const { last, isActive } = await read();
    if (last?.["role"] === "assistant") yield* given.take(last);
    return isActive;
  };
  let isActive = yield* take();
  const iterator = changes[Symbol.asyncIterator]();
  try {
    while (isActive && (await iterator.next()).done !== true) isActive = yield* take();
  } finally {
    await iterator.return?.();
  }
  yield* given.end();
}

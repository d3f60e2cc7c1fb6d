import { systemClock } from "@throughline/core/internal";
import type { PayloadCodec, SessionEvent } from "@throughline/core";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { createMemoryStore } from "@throughline/store-memory";
import { addressText, createMemoryData } from "../src/memory-data.ts";

/** A store with data of its own, and what the conformance kit may do to it. */
export async function openUnderTest(codec?: PayloadCodec): Promise<StoreUnderTest> {
  const data = createMemoryData();
  const events: SessionEvent[] = [];
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const openHandle = () =>
    createMemoryStore({
      data,
      clock,
      onEvent: (event) => events.push(event),
      ...(codec === undefined ? {} : { codec }),
    });
  let store = openHandle();
  return {
    store,
    reopen: async () => {
      await store.close();
      store = openHandle();
      return store;
    },
    files: async () => keptBytes(data),
    events: () => events,
    advanceClock: (deltaMs) => (aheadMs += deltaMs),
    damageEntry: (ref) => {
      const session = data.sessions.get(addressText(ref));

      if (session !== undefined) session.entry = "{";
    },
    dispose: () => store.close(),
  };
}

/** Every piece of bytes and text that is kept, wherever it lies. */
function keptBytes(value: unknown): Uint8Array[] {
  if (value instanceof Uint8Array) return [value];
  // Encoded content is base64 behind "="; a codec that encodes nothing must not hide in it.
  if (typeof value === "string") return [Buffer.from(value), Buffer.from(value.slice(1), "base64")];
  if (value instanceof Map) return keptBytes([...value]);
  if (value instanceof Set) return keptBytes([...value]);
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(keptBytes);
}

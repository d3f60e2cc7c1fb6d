import type { PayloadCodec, SessionEvent, SessionRef, SessionStore } from "@throughline/core";
import { describeStoreConformance, type StoreUnderTest } from "@throughline/store-conformance";
import { afterAll, beforeAll, describe, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { openRedisStore } from "../src/redis-store.ts";
import { missingServer, type RedisServer, startRedis } from "./redis-server.ts";

let server: RedisServer;

async function open(codec?: PayloadCodec): Promise<StoreUnderTest> {
  const events: SessionEvent[] = [];
  const opened: SessionStore[] = [];
  let aheadMs = 0;
  const clock = { nowMs: () => Date.now() + aheadMs, sleep: async () => undefined };
  const onEvent = (event: SessionEvent): void => void events.push(event);
  const another = async (): Promise<SessionStore> => {
    const store = await openRedisStore({ url: server.url, clock, onEvent, ...(codec === undefined ? {} : { codec }) });
    opened.push(store);
    return store;
  };
  const store = await another();
  return {
    store,
    another,
    async reopen() {
      await store.close();
      return another();
    },
    files: async () => {
      const saved = await server.saved();
      // Encoded content is base64 behind "="; a codec that encodes nothing must not hide in it.
      const encoded = saved.toString("latin1").match(/(?<==)[\w+/]{8,}/g) ?? [];
      return [saved, ...encoded.map((text) => Buffer.from(text, "base64"))];
    },
    events: () => events,
    advanceClock: (deltaMs) => (aheadMs += deltaMs),
    damageEntry: async ({ namespace, agentId, key, archiveId }: SessionRef) => {
      const address = JSON.stringify([agentId, key, archiveId ?? null]);
      await server.command("HSET", `throughline:{${encodeURIComponent(namespace)}}:session:${address}`, "entry", "{");
    },
    async dispose() {
      for (const each of opened) await each.close();
      await server.flush();
    },
  };
}

if (missingServer === null) {
  describe("a store over Redis", () => {
    beforeAll(async () => {
      server = await startRedis();
    });
    afterAll(() => server.stop());
    describeStoreConformance({
      name: "redis",
      runner: kitRunner,
      open: () => open(),
      openWithCodec: (codec) => open(codec),
    });
  });
} else {
  it("keeps the contract", (context) => context.skip(missingServer ?? ""));
}

import { openSession, type SessionRef } from "@throughline/core";
import { systemRandom, throughlineDraft } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { expect, it } from "vitest";
import { SessionLogs } from "../src/session-logs.ts";

it("what is known of sessions is let go of beyond 64 MiB, also what was appended since, and prompts", async () => {
  const store = createMemoryStore();
  const logs = new SessionLogs(store);
  const begin = async (name: string): Promise<SessionRef> => {
    const ref = { namespace: "", agentId: "main", key: `agent:main:gateway:direct:${name}` };
    await openSession(store, ref, { random: systemRandom });
    return ref;
  };
  const first = await begin("first");
  const known = await logs.read(first);
  expect((await logs.read(first))?.log).toBe(known?.log);
  for (let index = 0; index < 70; index++) {
    const session = await logs.read(await begin(`next-${index}`));
    if (session === null) throw new Error("The session is not there.");
    const text = "x".repeat(1024 * 1024);
    const draft = throughlineDraft("prompt", { name: "system", hash: `h${index}`, text });
    const { stored = [] } = await store.append(session.ref, [draft], { return: "stored" });
    for (const record of stored) session.log.apply(record);
    logs.grown(session);
  }
  expect((await logs.read(first))?.log).not.toBe(known?.log);
  await store.close();
});

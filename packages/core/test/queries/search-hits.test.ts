import { describe, expect, it } from "vitest";
import { endSession, sessionRef } from "@throughline/core";
import type { SessionState, SessionStore } from "@throughline/core";
import { systemClock } from "../../src/node/system-ports.ts";
import { searchHits } from "../../src/queries/search-hits.ts";
import { sessionTotals } from "../../src/queries/session-totals.ts";
import { createMemoryStore } from "@throughline/store-memory";

const { signal } = new AbortController();
const keys = ["agent:main:a", "agent:main:b", "agent:ops:c"];

async function filled(): Promise<SessionStore> {
  const store = createMemoryStore();
  for (const key of keys) {
    const ref = sessionRef({ key });
    await store.save(ref, { sessionId: key.slice(-1) }, { ifRevision: null });
    const say = (content: string): { type: string; message: unknown } => ({
      type: "message",
      message: { role: "user", content },
    });
    await store.append(ref, [say("the lamp"), say("nothing"), say("another lamp")]);
  }
  return store;
}

async function hitKeys(store: SessionStore, query: object, session: SessionState | null = null): Promise<string[]> {
  const { index, hits } = searchHits(store, {
    text: "lamp",
    namespace: "",
    agentId: null,
    state: "active",
    session,
    limit: 10,
    isScan: true,
    signal,
    ...query,
  });
  expect(index).toBe(null);
  return (await Array.fromAsync(hits)).map(({ ref, seq }) => `${ref.key} ${seq}`).toSorted();
}

describe("searching by reading", () => {
  it("finds every hit of all agents, of one agent, and of one session", async () => {
    const store = await filled();
    const all = keys.flatMap((key) => [`${key} 1`, `${key} 3`]);
    expect(await hitKeys(store, {})).toEqual(all);
    expect(await hitKeys(store, { agentId: "main" })).toEqual(all.slice(0, 4));
    const session = await store.load(sessionRef({ key: "agent:ops:c" }));
    expect(await hitKeys(store, { agentId: "main" }, session)).toEqual(all.slice(4));
  });
});

describe("the totals of sessions", () => {
  it("count archived sessions apart, and an empty query has no times", async () => {
    const store = await filled();
    const ended = { clock: systemClock, timeoutMs: 0, purge: false, signal };
    await endSession(store, sessionRef({ key: "agent:main:a" }), ended);
    expect(await sessionTotals(store, {})).toMatchObject({
      agents: 2,
      sessions: 2,
      archivedSessions: 1,
      records: 9,
      messages: 9,
    });
    expect(await sessionTotals(store, { agentId: "none" })).toEqual({
      agents: 0,
      sessions: 0,
      archivedSessions: 0,
      records: 0,
      messages: 0,
      firstAtMs: null,
      lastAtMs: null,
    });
  });
});

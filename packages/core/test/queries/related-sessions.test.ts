import { createAgentScope, type SessionState, type SessionStore, sessionRef } from "@throughline/core";
import { loadExisting, relatedSessions } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";

const day = 24 * 60 * 60_000;
const { signal } = new AbortController();
const refOf = (name: string): ReturnType<typeof sessionRef> => sessionRef({ key: `agent:main:${name}` });

/** Has 300 sessions, one a day: each tenth is a child of the one before, and `fork` is a fork of session 20. */
async function fixture(): Promise<{ readonly store: SessionStore; readonly seen: string[] }> {
  let nowMs = Date.UTC(2026, 0, 1);
  const store = createMemoryStore({ clock: { nowMs: () => nowMs, sleep: () => Promise.resolve() } });
  const make = (name: string, entry: object): Promise<unknown> =>
    store.save(refOf(name), { sessionId: name, ...entry }, { ifRevision: null });
  for (let at = 0; at < 300; at++) {
    await make(`s${at}`, at % 10 === 9 ? { spawnedBy: `agent:main:s${at - 1}` } : {});
    nowMs += day;
  }
  await make("fork", { forkedFrom: { agentId: "main", key: "agent:main:s20", sessionId: "s20" } });
  await make("moved", { forkedFrom: { agentId: "main", key: "agent:main:old", sessionId: "s30" } });
  const seen: string[] = [];
  const list: SessionStore["list"] = async (query) => {
    const page = await store.list(query);
    seen.push(...page.sessions.map(({ sessionId }) => sessionId));
    return page;
  };
  const load: SessionStore["load"] = (ref, options) => store.load(ref, options);
  const save: SessionStore["save"] = (...given) => store.save(...given);
  return { store: { load, list, save } as SessionStore, seen };
}

async function related(store: SessionStore, name: string, agentId?: string): Promise<Record<string, unknown>> {
  const scope = agentId === undefined ? {} : { agentId };
  const state = await loadExisting(store, refOf(name));
  const { children, forks, origin, isComplete } = await relatedSessions(store, state, {
    ...scope,
    most: 10_000,
    signal,
  });
  const ids = (all: readonly SessionState[]): readonly string[] => all.map(({ sessionId }) => sessionId);
  return { children: ids(children), forks: ids(forks), origin: origin?.sessionId ?? null, isComplete };
}

describe("related sessions", () => {
  it("are searched among the sessions that were active since the session began, a day earlier for other clocks", async () => {
    const { store, seen } = await fixture();
    expect(await related(store, "s288")).toEqual({ children: ["s289"], forks: [], origin: null, isComplete: true });
    expect(seen.length).toBe(15);
    seen.length = 0;
    expect(await related(store, "s20")).toMatchObject({ forks: ["fork"] });
    expect(seen.length).toBe(283);
  });

  it("have their origin at the key that the fork names, else anywhere", async () => {
    const { store, seen } = await fixture();
    expect(await related(store, "fork")).toMatchObject({ origin: "s20", isComplete: true });
    expect(seen.length).toBe(3);
    expect(await related(store, "moved")).toMatchObject({ origin: "s30" });
  });

  it.each([
    ["a reset", { sessionId: "after", previousSessionIds: ["before"] }],
    ["an import, whose source may state no start", { sessionId: "after", importedFrom: { format: "openclaw" } }],
  ])("are the children of a key that are older than its session, after %s", async (_case, entry) => {
    let nowMs = Date.UTC(2026, 0, 1);
    await using store = createMemoryStore({ clock: { nowMs: () => nowMs, sleep: () => Promise.resolve() } });
    await store.save(refOf("child"), { sessionId: "child", spawnedBy: "agent:main:key" }, { ifRevision: null });
    nowMs += 9 * day;
    await store.save(refOf("key"), entry, { ifRevision: null });
    expect(await related(store, "key")).toMatchObject({ children: ["child"], isComplete: true });
  });

  it.each([
    ["another agent", { key: "agent:other:s20", agentId: "main" }],
    ["no valid key", { key: "agent:main:\u0000" }],
    ["a text that is too long", { key: "k".repeat(100_000) }],
  ])("have their origin anywhere when the fork names a key of %s", async (_case, place) => {
    const { store } = await fixture();
    const fork = { sessionId: "foreign", forkedFrom: { ...place, sessionId: "s20" } };
    await store.save(refOf("foreign"), fork, { ifRevision: null });
    const scope = createAgentScope(store, { agentId: "main" });
    expect(await related(scope, "foreign", "main")).toMatchObject({ origin: "s20", isComplete: true });
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openSession, sessionRef, type SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { cacheTtlFrom } from "@throughline/openclaw-compat";
import { aroundCalls } from "@throughline/test-kit";
import { compatFixture, key, openStore, steppedClock, storePath, type CompatFixture } from "./compat-fixture.ts";

const ref = sessionRef({ key });

/** The store, and how often it was asked for its sessions. */
function counting(store: SessionStore): { readonly store: SessionStore; readonly counted: { lists: number } } {
  const counted = { lists: 0 };
  const counting = aroundCalls(store, ({ name, run }) => {
    if (name === "list") counted.lists++;
    return run();
  });
  return { store: counting, counted };
}

/** Waits until the store can say whether something changed: not while a change is on its way to its derived files. */
async function settled({ store }: Pick<CompatFixture, "store">): Promise<void> {
  await expect.poll(() => store.entriesMark?.({ agentId: "main" })).not.toBeNull();
}

describe.each(["jsonl", "sqlite"] as const)("the cache of loaded stores over %s", (kind) => {
  it("gives copies without reading the store, for 45 seconds, and forgets with every write", async () => {
    const clock = steppedClock();
    await using fixture = compatFixture(kind);
    const { store, counted } = counting(fixture.store);
    const sessions = fixture.again({ store, clock });
    const label = async (): Promise<unknown> => (await sessions.loadSessionStore(storePath))[key]?.label;
    await sessions.updateSessionStore(storePath, (entries) => {
      entries[key] = { sessionId: "s1", label: "first" };
    });
    expect(await label()).toBe("first");
    await settled(fixture);
    const first = await sessions.loadSessionStore(storePath);
    first[key] = { sessionId: "changed by the caller" };
    const before = counted.lists;
    expect([await label(), await label()]).toEqual(["first", "first"]);
    clock.advance(44_999);
    expect([await label(), counted.lists]).toEqual(["first", before]);
    clock.advance(1);
    expect([await label(), counted.lists]).toEqual(["first", before + 1]);
    await sessions.updateLastRoute({ storePath, sessionKey: key, channel: "slack" });
    expect((await sessions.loadSessionStore(storePath))[key]?.lastChannel).toBe("slack");
  });

  it("sees at once what another process wrote", { tags: ["slow"] }, async () => {
    await using fixture = compatFixture(kind);
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1" } });
    const counted = async (): Promise<unknown> =>
      (await fixture.sessions.loadSessionStore(storePath))[key]?.["counted"];
    await fixture.sessions.loadSessionStore(storePath);
    await settled(fixture);
    expect([await counted(), await counted()]).toEqual([undefined, undefined]);
    const script = fileURLToPath(new URL("incrementing-process.ts", import.meta.url));
    const args = ["--conditions=@throughline/source", script, kind, fixture.folder, key, "3"];
    const [code] = (await once(spawn(process.execPath, args, { stdio: "ignore" }), "close")) as [number | null];
    expect([code, await counted()]).toEqual([0, 3]);
  });

  it("sees at once a patch that another handle appended to a transcript", async () => {
    await using fixture = compatFixture(kind);
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1" } });
    await fixture.sessions.loadSessionStore(storePath);
    await settled(fixture);
    await fixture.sessions.loadSessionStore(storePath);
    await using other = openStore(kind, fixture.folder);
    const message = { role: "user", content: "hi" };
    for (const label of ["a", "b"]) {
      await other.append(ref, [{ type: "message", message }], { entry: { label } });
      expect((await fixture.sessions.loadSessionStore(storePath))[key]?.label).toBe(label);
    }
  });

  it("is passed by with skipCache, cleared for tests, and off at 0", async () => {
    await using fixture = compatFixture(kind);
    const { store, counted } = counting(fixture.store);
    const [sessions, uncached] = [fixture.again({ store }), fixture.again({ store, cacheTtlMs: 0 })];
    await sessions.updateSessionStore(storePath, (entries) => {
      entries[key] = { sessionId: "s1", label: "a" };
    });
    await sessions.loadSessionStore(storePath);
    await settled(fixture);
    await sessions.loadSessionStore(storePath);
    const readsOf = async (load: () => Promise<unknown>): Promise<number> => {
      const before = counted.lists;
      await load();
      return counted.lists - before;
    };
    expect(await readsOf(() => sessions.loadSessionStore(storePath))).toBe(0);
    expect(await readsOf(() => uncached.loadSessionStore(storePath))).toBe(1);
    expect(await readsOf(() => sessions.loadSessionStore(storePath, { skipCache: true }))).toBe(1);
    expect(await readsOf(() => sessions.loadSessionStore(storePath))).toBe(0);
    sessions.clearSessionStoreCacheForTest();
    expect(await readsOf(() => sessions.loadSessionStore(storePath))).toBe(1);
    expect(
      ["0", "500", "", "x", undefined].map((text) => cacheTtlFrom({ OPENCLAW_SESSION_CACHE_TTL_MS: text })),
    ).toEqual([0, 500, 45_000, 45_000, 45_000]);
  });
});

describe("the cache of loaded stores", () => {
  it.each([
    ["through a temporary file", true],
    ["in its place, with the same size", false],
  ])("sees at once what OpenClaw wrote into sessions.json %s", { tags: ["slow"] }, async (_how, isRenamed) => {
    await using fixture = compatFixture("jsonl");
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1", label: "a" } });
    const label = async (): Promise<unknown> => (await fixture.sessions.loadSessionStore(storePath))[key]?.label;
    await label();
    await settled(fixture);
    const path = `${fixture.folder}/agents/main/sessions/sessions.json`;
    await expect.poll(() => readFileSync(path, "utf8")).toContain('"label": "a"');
    await pause(100);
    expect([await label(), await label()]).toEqual(["a", "a"]);
    const text = readFileSync(path, "utf8").replace('"label": "a"', '"label": "b"');
    const { atime, mtime } = statSync(path);
    writeFileSync(isRenamed ? `${path}.tmp` : path, text);
    if (isRenamed) utimesSync(`${path}.tmp`, atime, mtime);
    if (isRenamed) renameSync(`${path}.tmp`, path);
    expect(await label()).toBe("b");
  });

  it("keeps nothing of a store that cannot say what changed", async () => {
    await using fixture = compatFixture("memory");
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1", label: "a" } });
    await fixture.sessions.loadSessionStore(storePath);
    await fixture.store.append(ref, [], { entry: { label: "b" } });
    expect((await fixture.sessions.loadSessionStore(storePath))[key]?.label).toBe("b");
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasErrorCode, openSession, sessionRef } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { compatFixture, key, openStore, steppedClock, storeKinds, storePath } from "./compat-fixture.ts";

const script = bundledWorker(new URL("./incrementing-process.ts", import.meta.url));

describe.each(storeKinds)("the session store functions over %s", (kind) => {
  it("load, update and save entries under their documented names", async () => {
    await using fixture = compatFixture(kind);
    const { sessions } = fixture;
    expect(await sessions.loadSessionStore(storePath)).toEqual({});
    await sessions.updateSessionStore(storePath, (store) => {
      store[key] = { sessionId: "s1", updatedAt: 5, strange: { deep: [1] } };
      store["agent:main:other"] = { sessionId: "s2", label: "two" };
    });
    const loaded = await sessions.loadSessionStore(storePath);
    expect(loaded[key]).toMatchObject({ sessionId: "s1", updatedAt: 5, strange: { deep: [1] } });
    Reflect.deleteProperty(loaded, "agent:main:other");
    await sessions.saveSessionStore(storePath, { ...loaded, [key]: { ...loaded[key], sessionId: "s1", label: "one" } });
    expect(Object.keys(await sessions.loadSessionStore(storePath))).toEqual([key]);
    expect((await sessions.loadSessionStore(storePath))[key]?.label).toBe("one");
    // What was left out is archived and can be restored.
    expect((await fixture.store.list({ state: "archived" })).sessions.map(({ sessionId }) => sessionId)).toEqual([
      "s2",
    ]);
  });

  it("write only what a mutator changed, so that a turn that counts meanwhile loses nothing", async () => {
    await using fixture = compatFixture(kind);
    const ref = sessionRef({ key });
    await openSession(fixture.store, ref, { random: systemRandom, entry: { sessionId: "s1", totalTokens: 1 } });
    await fixture.sessions.updateSessionStore(storePath, async (store) => {
      await fixture.store.append(ref, [], { entry: { totalTokens: 2, inputTokens: 7 } });
      store[key] = { ...store[key], sessionId: "s1", label: "named" };
    });
    expect((await fixture.store.load(ref))?.entry).toMatchObject({ label: "named", totalTokens: 2, inputTokens: 7 });
  });

  it("patch one entry from what the store holds now, whatever was loaded before", async () => {
    await using fixture = compatFixture(kind);
    const ref = sessionRef({ key });
    await openSession(fixture.store, ref, {
      random: systemRandom,
      entry: { sessionId: "s1", model: "a", modelProvider: "p" },
    });
    await fixture.sessions.loadSessionStore(storePath);
    await fixture.store.append(ref, [], { entry: { counted: 41 } });
    const update = (entry: { readonly [field: string]: unknown }) => ({
      counted: Number(entry["counted"]) + 1,
      model: "b",
    });
    const entry = await fixture.sessions.updateSessionStoreEntry({ storePath, sessionKey: key, update });
    expect(entry).toMatchObject({ counted: 42, model: "b" });
    expect(entry).not.toHaveProperty("modelProvider");
    expect((await fixture.sessions.loadSessionStore(storePath))[key]?.["counted"]).toBe(42);
    const absent = await fixture.sessions.updateSessionStoreEntry({ storePath, sessionKey: "agent:main:none", update });
    expect(absent).toBeNull();
  });

  it("keep agents apart by the path of the index", async () => {
    await using fixture = compatFixture(kind);
    const codex = fixture.sessions.resolveDefaultSessionStorePath("codex");
    await fixture.sessions.updateSessionStore(codex, (store) => {
      store["agent:codex:discord:direct:7"] = { sessionId: "c" };
    });
    expect(await fixture.sessions.loadSessionStore(storePath)).toEqual({});
    const crossing = fixture.sessions.updateSessionStore(storePath, (store) => {
      store["agent:codex:planted"] = { sessionId: "x" };
    });
    expect(hasErrorCode(await crossing.catch((error: unknown) => error), "KEY_AGENT_MISMATCH")).toBe(true);
  });

  it("take __proto__ for a key and a field like any other", async () => {
    await using fixture = compatFixture(kind);
    const entry = JSON.parse('{"sessionId":"s1","__proto__":{"polluted":true}}') as { sessionId: string };
    await fixture.sessions.updateSessionStore(storePath, (store) => {
      store[key] = entry;
    });
    const loaded = await fixture.sessions.loadSessionStore(storePath, { skipCache: true });
    expect(JSON.stringify(loaded[key])).toContain('"__proto__":{"polluted":true}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("the lock of a session store", () => {
  it("runs one holder at a time, the next whatever became of the one before", async () => {
    await using fixture = compatFixture();
    const other = fixture.again();
    let inside = 0;
    const hold = (sessions: typeof other, fails = false) =>
      sessions.withSessionStoreLock(storePath, async () => {
        expect(++inside).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 2));
        inside--;
        if (fails) throw new Error("mine");
        return "done";
      });
    const results = await Promise.allSettled([
      hold(fixture.sessions),
      hold(other, true),
      hold(fixture.sessions),
      hold(other),
      hold(fixture.sessions, true),
    ]);
    expect(results.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
      "rejected",
    ]);
  });

  it("does not wait for itself", async () => {
    await using fixture = compatFixture();
    const inner = await fixture.sessions.withSessionStoreLock(storePath, async () => {
      await fixture.sessions.updateSessionStore(storePath, (store) => {
        store[key] = { sessionId: "s1" };
      });
      return fixture.sessions.withSessionStoreLock(storePath, () => Promise.resolve("nested"));
    });
    expect(inner).toBe("nested");
  });

  it("gives up in time naming the holder, and follows one that says nothing any more [C42]", async () => {
    const clock = steppedClock();
    await using fixture = compatFixture("memory", { clock });
    // A store of somebody's own need not have the lock; the lease of a turn then stands for it.
    Object.assign(fixture.store, { exclusively: undefined });
    const { promise: ended, resolve: letGo } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const holding = fixture.sessions.withSessionStoreLock(storePath, () => (begin(), ended));
    await begun;
    const other = fixture.again();
    const early: unknown = await other
      .withSessionStoreLock(storePath, () => Promise.resolve(1))
      .catch((error: unknown) => error);
    expect(hasErrorCode(early, "STORE_LOCKED")).toBe(true);
    expect(early).toMatchObject({ details: { owner: expect.stringContaining("openclaw-compat") as unknown } });
    // The holder's timer stands still, as in a stopped process; its lease does not.
    clock.advance(30_000);
    expect(await other.withSessionStoreLock(storePath, () => Promise.resolve("after"))).toBe("after");
    letGo();
    expect(hasErrorCode(await holding.catch((error: unknown) => error), "TURN_FENCED")).toBe(true);
  });

  it.each(["jsonl", "sqlite"] as const)(
    "loses no update of eight processes on %s",
    { tags: ["slow"], timeout: 90_000 },
    async (kind) => {
      const folder = mkdtempSync(join(tmpdir(), "throughline-compat-"));
      try {
        const ref = sessionRef({ key });
        {
          await using store = openStore(kind, folder);
          await openSession(store, ref, { random: systemRandom, entry: { sessionId: "s1" } });
        }
        const run = async (): Promise<string> => {
          const child = spawn(process.execPath, ["--conditions=@throughline/source", script, kind, folder, key, "10"], {
            stdio: ["ignore", "ignore", "pipe"],
          });
          let said = "";
          child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
          const [code] = (await once(child, "close")) as [number | null];
          return code === 0 ? "done" : said;
        };
        expect(await Promise.all(Array.from({ length: 8 }, run))).toEqual(Array.from({ length: 8 }, () => "done"));
        await using store = openStore(kind, folder);
        const entry = (await store.load(ref))?.entry ?? { sessionId: "" };
        expect(entry["counted"]).toBe(80);
        expect(
          Object.entries(entry)
            .filter(([field]) => field.startsWith("by"))
            .map(([, value]) => value),
        ).toEqual(Array.from({ length: 8 }, () => 10));
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});

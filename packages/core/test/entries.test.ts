import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Clock, openSession, type SessionEntry, sessionRef } from "@throughline/core";
import { resetSession } from "../src/open-session.ts";
import { keptOnReset, mergeEntry } from "../src/merge-entry.ts";
import { systemRandom } from "../src/node/system-ports.ts";
import { createMemoryStore } from "@throughline/store-memory";

const ref = sessionRef({ key: "agent:main:discord:direct:7" });
const clock: Clock = { nowMs: () => 1_790_000_000_000, sleep: () => Promise.resolve() };
const nowMs = clock.nowMs();

describe("merging an entry", () => {
  it("moves activity forward only, and leaves it alone when told to preserve it", () => {
    const entry: SessionEntry = { sessionId: "s", updatedAt: 500 };
    expect(mergeEntry(entry, { updatedAt: 100 }, { nowMs: 400 }).updatedAt).toBe(500);
    expect(mergeEntry(entry, { updatedAt: 900 }, { nowMs: 400 }).updatedAt).toBe(900);
    expect(mergeEntry(entry, {}, { nowMs: 700 }).updatedAt).toBe(700);
    expect(mergeEntry(entry, { updatedAt: 900 }, { nowMs: 950, activity: "preserve" }).updatedAt).toBe(500);
  });

  it("takes the provider away with the model it belonged to", () => {
    const entry = { sessionId: "s", model: "a", modelProvider: "p" };
    expect(mergeEntry(entry, { model: "b" }, { nowMs })).not.toHaveProperty("modelProvider");
    expect(mergeEntry(entry, { model: "a" }, { nowMs }).modelProvider).toBe("p");
    expect(mergeEntry(entry, { model: "b", modelProvider: "q" }, { nowMs }).modelProvider).toBe("q");
  });

  it("keeps every field nobody named, unknown, nested and __proto__ ones too", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (old, patch) => {
          const route = new Set([
            "channel",
            "deliveryContext",
            "lastChannel",
            "lastTo",
            "lastAccountId",
            "lastThreadId",
          ]);
          for (const name of [...route, "updatedAt", "sessionId", "model", "modelProvider"]) {
            Reflect.deleteProperty(old, name);
            Reflect.deleteProperty(patch, name);
          }
          const merged = mergeEntry({ ...old, sessionId: "s" }, patch, { nowMs: 1 });
          const expected = new Map([
            ...Object.entries(old),
            ["sessionId", "s"],
            ...Object.entries(patch),
            ["updatedAt", 1],
          ] as [string, unknown][]);
          // Entries are JSON: -0 is 0 there.
          const asJson = (map: Map<string, unknown>): unknown => JSON.parse(JSON.stringify([...map]));
          const byName = (map: Map<string, unknown>): unknown =>
            asJson(new Map([...map].toSorted(([one], [other]) => (one < other ? -1 : 1))));
          expect(byName(new Map(Object.entries(merged)))).toEqual(byName(expected));
        },
      ),
    );
    const entry = JSON.parse('{"sessionId":"s","__proto__":{"x":1},"deep":{"__proto__":2}}') as SessionEntry;
    const merged = mergeEntry(entry, { label: "l" }, { nowMs });
    expect(JSON.stringify(merged)).toContain('"__proto__":{"x":1}');
    expect(JSON.stringify(merged)).toContain('"deep":{"__proto__":2}');
  });

  it("brings context and last route into agreement, whichever of them the patch names", () => {
    const entry: SessionEntry = {
      sessionId: "s",
      deliveryContext: { channel: "a", to: "1", threadId: 5 },
      lastChannel: "a",
      lastTo: "1",
      lastThreadId: 5,
    };
    const byLast = mergeEntry(entry, { lastChannel: "b", lastTo: "2" }, { nowMs });
    expect(byLast.deliveryContext).toMatchObject({ channel: "b", to: "2" });
    expect([byLast.lastChannel, byLast.lastTo]).toEqual(["b", "2"]);
    const byContext = mergeEntry(entry, { deliveryContext: { channel: "c", to: "3" } }, { nowMs });
    expect(byContext).toMatchObject({ deliveryContext: { channel: "c", to: "3" }, lastChannel: "c", lastTo: "3" });
    expect(byContext).not.toHaveProperty("lastThreadId");
    // A number stays a number.
    expect(mergeEntry(entry, { lastThreadId: 42 }, { nowMs }).deliveryContext?.threadId).toBe(42);
  });
});

describe("what a reset keeps", () => {
  it("keeps levels, names, model, policy, origin and route, and no counter, mark or SDK session [C16]", async () => {
    const store = createMemoryStore();
    const kept = {
      label: "mine",
      thinkingLevel: "high",
      model: "m",
      modelProvider: "p",
      sendPolicy: "deny",
      lastTo: "7",
      origin: { from: "x" },
    };
    const left = {
      sdkSessionId: "sdk",
      cliSessionIds: { claude: "c" },
      inputTokens: 5,
      totalTokens: 9,
      compactionCount: 2,
      memoryFlushAt: 1,
      strange: true,
    };
    await openSession(store, ref, { random: systemRandom, entry: { sessionId: "old", ...kept, ...left } });
    const state = await resetSession(store, ref, { random: systemRandom, keep: keptOnReset });
    const { sessionId, ...entry } = state.entry;
    expect(sessionId).not.toBe("old");
    expect(entry).toEqual({ ...kept, previousSessionIds: ["old"] });
    const old = await store.load({ ...ref, archiveId: "old" });
    expect(old?.entry).toMatchObject({ ...left, sdkSessionId: "sdk" });
  });
});

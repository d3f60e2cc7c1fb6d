import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Clock,
  openSession,
  recordInbound,
  resetSession,
  type SessionEntry,
  sessionRef,
  updateRoute,
} from "@throughline/core";
import { inboundFields, keptOnReset, mergeEntry } from "@throughline/core/internal";
import { systemRandom } from "@throughline/core/node";
import { createMemoryStore } from "@throughline/store-memory";

const ref = sessionRef({ key: "agent:main:discord:direct:7" });
const clock: Clock = { nowMs: () => 1_790_000_000_000, sleep: () => Promise.resolve() };
const nowMs = clock.nowMs();

describe("merging an entry", () => {
  it("moves activity forward only, and leaves it alone when told to preserve it [IDX-07]", () => {
    const entry: SessionEntry = { sessionId: "s", updatedAt: 500 };
    expect(mergeEntry(entry, { updatedAt: 100 }, { nowMs: 400 }).updatedAt).toBe(500);
    expect(mergeEntry(entry, { updatedAt: 900 }, { nowMs: 400 }).updatedAt).toBe(900);
    expect(mergeEntry(entry, {}, { nowMs: 700 }).updatedAt).toBe(700);
    expect(mergeEntry(entry, { updatedAt: 900 }, { nowMs: 950, activity: "preserve" }).updatedAt).toBe(500);
  });

  it("takes the provider away with the model it belonged to [ENT-11]", () => {
    const entry = { sessionId: "s", model: "a", modelProvider: "p" };
    expect(mergeEntry(entry, { model: "b" }, { nowMs })).not.toHaveProperty("modelProvider");
    expect(mergeEntry(entry, { model: "a" }, { nowMs }).modelProvider).toBe("p");
    expect(mergeEntry(entry, { model: "b", modelProvider: "q" }, { nowMs }).modelProvider).toBe("q");
  });

  it("keeps every field nobody named, unknown, nested and __proto__ ones too [ENT-20]", () => {
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

  it("brings context and last route into agreement, whichever of them the patch names [ENT-18] [TST-07]", () => {
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
  it("keeps levels, names, model, policy, origin and route, and no counter, mark or SDK session [STO-09] [C16] [SDK-04] [LOOP-08]", async () => {
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

describe("what an inbound message says of its session", () => {
  it("creates the session at the first message, with origin and group [STO-07] [STO-21] [ENT-17] [ENT-04]", async () => {
    const store = createMemoryStore();
    const message = {
      provider: "discord",
      chatType: "group",
      from: "u1",
      to: "bot",
      threadId: 9,
      groupId: "g",
      subject: "Team",
      label: "Ann",
    };
    const state = await recordInbound(store, ref, message, { clock, random: systemRandom });
    expect(state?.entry).toMatchObject({
      updatedAt: nowMs,
      chatType: "group",
      groupId: "g",
      subject: "Team",
      displayName: "Team",
      origin: { label: "Ann", provider: "discord", chatType: "group", from: "u1", to: "bot", threadId: 9 },
    });
  });

  it("merges later ones without erasing anything by empty values, and without touching activity [STO-21]", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, {
      random: systemRandom,
      entry: { updatedAt: 5, displayName: "Given", origin: { label: "Ann", from: "u1" } },
    });
    const first = await recordInbound(
      store,
      ref,
      { label: "", from: "u2", chatType: "dm", provider: undefined as never },
      { clock, random: systemRandom },
    );
    expect(first?.entry).toMatchObject({
      displayName: "Given",
      chatType: "direct",
      origin: { label: "Ann", from: "u2", chatType: "direct" },
    });
    const again = await recordInbound(store, ref, { from: "u2", chatType: "direct" }, { clock, random: systemRandom });
    expect(again?.revision).toBe(first?.revision);
    expect(inboundFields({}, null)).toEqual({});
  });

  it("creates nothing when told not to [STO-21]", async () => {
    const store = createMemoryStore();
    expect(
      await recordInbound(store, ref, { from: "u" }, { clock, random: systemRandom, createIfMissing: false }),
    ).toBeNull();
    expect(await store.load(ref)).toBeNull();
  });

  it("sets the route in one commit, and a route without a thread leaves the old thread [STO-22] [ENT-16] [ENT-03]", async () => {
    const store = createMemoryStore();
    const opened = await openSession(store, ref, {
      random: systemRandom,
      entry: { updatedAt: nowMs + 50, lastThreadId: 4, lastChannel: "a" },
    });
    const state = await updateRoute(store, ref, { channel: "slack", to: "C1" }, { clock });
    expect(state.revision).toBe(opened.state.revision + 1);
    expect(state.entry).toMatchObject({
      updatedAt: nowMs + 50,
      lastChannel: "slack",
      lastTo: "C1",
      deliveryContext: { channel: "slack", to: "C1" },
    });
    expect(state.entry).not.toHaveProperty("lastThreadId");
    const threaded = await updateRoute(store, ref, { threadId: 12 }, { clock });
    expect(threaded.entry).toMatchObject({ lastThreadId: 12, lastChannel: "slack", deliveryContext: { threadId: 12 } });
  });
});

import { openSession, sessionRef, type Clock } from "@throughline/core";
import { inboundFields, recordInbound, updateRoute } from "../src/inbound-message.ts";
import { systemRandom } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";

const ref = sessionRef({ key: "agent:main:discord:direct:7" });
const clock: Clock = { nowMs: () => 1_790_000_000_000, sleep: () => Promise.resolve() };
const nowMs = clock.nowMs();

describe("what an inbound message says of its session", () => {
  it("creates the session at the first message, with origin and group", async () => {
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

  it("merges later ones without erasing anything by empty values, and without touching activity", async () => {
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

  it("creates nothing when told not to", async () => {
    const store = createMemoryStore();
    expect(
      await recordInbound(store, ref, { from: "u" }, { clock, random: systemRandom, createIfMissing: false }),
    ).toBeNull();
    expect(await store.load(ref)).toBeNull();
  });

  it("sets the route in one commit, and a route without a thread leaves the old thread", async () => {
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

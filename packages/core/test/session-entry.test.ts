import { describe, expect, it } from "vitest";
import { nextUpdatedAtMs, ownEntry, patchEntry } from "../src/session-entry.ts";
import type { SessionEntry } from "@throughline/core";
import { applyRoute, normalizeDelivery } from "../src/delivery.ts";

describe("patchEntry", () => {
  it("sets, removes and leaves alone", () => {
    const entry = { sessionId: "s", label: "a", unknownField: { deep: [1] } };
    expect(patchEntry(entry, { label: undefined, model: "m" })).toEqual({
      sessionId: "s",
      unknownField: { deep: [1] },
      model: "m",
    });
    expect(entry.label).toBe("a");
  });

  it("holds a field named __proto__ like any other", () => {
    const patched = patchEntry(
      { sessionId: "s" },
      JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as Record<string, unknown>,
    );
    expect(JSON.stringify(patched)).toBe('{"sessionId":"s","__proto__":{"polluted":true},"constructor":1}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("ownEntry", () => {
  it("is a copy", () => {
    const entry = { sessionId: "s", origin: { label: "x" } };
    const copy = ownEntry(entry);
    expect(copy).toEqual(entry);
    expect(copy.origin).not.toBe(entry.origin);
  });

  it.each([null, [], "x", {}, { sessionId: 1 }, { sessionId: "s", big: 1n }])("refuses %s", (value) => {
    expect(() => ownEntry(value)).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });
});

describe("nextUpdatedAtMs", () => {
  it.each([
    [100, 200, 150, 200, false],
    [100, 50, 150, 100, false],
    [100, undefined, 150, 100, false],
    [100, Number.NaN, 150, 100, false],
    [100, 150 + 300_000, 150, 300_150, false],
    [100, 150 + 300_001, 150, 150, true],
    [400_000, 999_999_999, 150, 400_000, true],
  ])("old %s, claimed %s, now %s gives %s", (oldMs, claimedMs, nowMs, updatedAtMs, wasClamped) => {
    expect(nextUpdatedAtMs(oldMs, claimedMs, nowMs)).toEqual({ updatedAtMs, wasClamped });
  });
});

describe("delivery", () => {
  const agree = (entry: SessionEntry) => [
    entry.deliveryContext?.channel,
    entry.deliveryContext?.to,
    entry.deliveryContext?.threadId,
  ];

  it("makes the context and the last fields agree, from either side", () => {
    const fromLast = normalizeDelivery({ sessionId: "s", lastChannel: "discord", lastTo: "channel:1" });
    expect(fromLast.deliveryContext).toEqual({ channel: "discord", to: "channel:1" });
    const fromContext = normalizeDelivery({
      sessionId: "s",
      lastChannel: "old",
      deliveryContext: { channel: "slack", to: "u1", threadId: 7 },
    });
    expect(fromContext).toMatchObject({ lastChannel: "slack", lastTo: "u1", lastThreadId: 7 });
    expect(normalizeDelivery({ sessionId: "s" })).toEqual({ sessionId: "s" });
  });

  it("leaves the old thread behind when a new route names none", () => {
    const before = normalizeDelivery({
      sessionId: "s",
      deliveryContext: { channel: "slack", to: "u1", threadId: "t" },
    });
    expect(agree(applyRoute(before, { channel: "slack", to: "u2" }))).toEqual(["slack", "u2", undefined]);
    expect(agree(applyRoute(before, { accountId: "work" }))).toEqual(["slack", "u1", "t"]);
    expect(agree(applyRoute(before, { channel: "slack", to: "u2", threadId: "t2" }))).toEqual(["slack", "u2", "t2"]);
    expect(applyRoute(before, { channel: "slack", to: "u2" }).lastThreadId).toBeUndefined();
  });
});

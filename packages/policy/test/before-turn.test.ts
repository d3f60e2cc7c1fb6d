import { type Clock, openSession, sessionRef } from "@throughline/core";
import { systemClock, systemRandom, updateEntry } from "@throughline/core/internal";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { resetBeforeTurn, sendDenialOf } from "../src/before-turn.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";

const ref = sessionRef({ key: "agent:main:telegram:group:42" });
const policy = readSendPolicy({ rules: [{ match: { channel: "telegram" }, action: "deny" }] });

describe("sendDenialOf", () => {
  it("names what denies, and is null where the agent may answer", () => {
    expect(sendDenialOf({ ref, entry: null }, policy)).toEqual({ source: "rule", ruleIndex: 0, mode: "first-match" });
    expect(sendDenialOf({ ref, entry: { sessionId: "s", sendPolicy: "allow" } }, policy)).toBeNull();
    expect(sendDenialOf({ ref, entry: null }, null)).toBeNull();
  });

  it("holds the entry and the default, and no rule, against a key of another form", () => {
    const odd = { ...ref, key: "agent:" };
    expect(sendDenialOf({ ref: odd, entry: null }, policy)).toBeNull();
    expect(sendDenialOf({ ref: odd, entry: { sessionId: "s", sendPolicy: "deny" } }, policy)?.source).toBe("session");
    expect(sendDenialOf({ ref: odd, entry: null }, readSendPolicy({ default: "deny" }))?.source).toBe("default");
  });
});

describe("resetBeforeTurn", () => {
  const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });

  async function idleSession(): Promise<{
    readonly store: ReturnType<typeof createMemoryStore>;
    readonly given: { readonly reset: typeof reset; readonly clock: Clock; readonly random: typeof systemRandom };
    readonly before: string;
  }> {
    let nowMs = Date.parse("2026-03-02T10:00:00Z");
    const clock: Clock = { nowMs: () => nowMs, sleep: systemClock.sleep };
    const store = createMemoryStore({ clock });
    const { state } = await openSession(store, ref);
    await store.append(ref, [{ type: "message", message: { role: "user", content: "hello" } }]);
    nowMs += 31 * 60_000;
    return { store, given: { reset, clock, random: systemRandom }, before: state.sessionId };
  }

  it("asks again after another writer changed the entry, and resets nothing that is denied by then", async () => {
    const { store, given, before } = await idleSession();
    let asked = 0;
    const mayReset = async (state: { readonly entry: { readonly sendPolicy?: unknown } }): Promise<boolean> => {
      asked += 1;
      if (asked === 1) await updateEntry(store, ref, (entry) => ({ ...entry, sendPolicy: "deny" }));
      return state.entry.sendPolicy !== "deny";
    };
    expect(await resetBeforeTurn(store, ref, { ...given, mayReset })).toBeNull();
    expect([asked, (await store.load(ref))?.sessionId]).toEqual([2, before]);
  });

  it("leaves a session that another caller reset already, and reports the new one", async () => {
    const { store, given, before } = await idleSession();
    const first = await resetBeforeTurn(store, ref, { ...given, sessionId: before });
    const second = await resetBeforeTurn(store, ref, { ...given, sessionId: before });
    expect(second?.fresh.sessionId).toBe(first?.fresh.sessionId);
    expect(second?.facts).toEqual(first?.facts);
  });
});

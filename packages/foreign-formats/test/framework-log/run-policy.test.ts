import { describe, expect, it } from "vitest";
import { type Clock, openSession, sessionRef, type SessionStore } from "@throughline/core";
import { systemClock, systemRandom, updateEntry } from "@throughline/core/internal";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { beforeRun, type RunPlace } from "../../src/framework-log/run-policy.ts";

const ref = sessionRef({ key: "agent:main:telegram:group:42" });
const minute = 60_000;

function place(isNew: boolean = true): RunPlace & { readonly set: (atMs: number) => void } {
  let nowMs = Date.parse("2026-03-02T10:00:00Z");
  const clock: Clock = { nowMs: () => nowMs, sleep: systemClock.sleep };
  const store = createMemoryStore({ clock });
  return { store, ref, clock, random: systemRandom, isNew, set: (atMs) => (nowMs += atMs) };
}

async function say(store: SessionStore, content: string): Promise<void> {
  await openSession(store, ref);
  await store.append(ref, [{ type: "message", message: { role: "user", content } }]);
}

describe("beforeRun", () => {
  it("obeys the session's own deny by default, and its own allow before a rule", async () => {
    const at = place();
    await beforeRun(at, {});
    await say(at.store, "hello");
    await updateEntry(at.store, ref, (entry) => ({ ...entry, sendPolicy: "deny" }));
    await expect(beforeRun(at, {})).rejects.toMatchObject({
      code: "SEND_DENIED",
      outcome: "not-applied",
      details: { source: "session", ruleIndex: null },
    });
    await updateEntry(at.store, ref, (entry) => ({ ...entry, sendPolicy: "allow" }));
    await beforeRun(at, { sendPolicy: readSendPolicy({ default: "deny" }) });
  });

  it("names the rule that denies, also for a session that does not exist yet", async () => {
    const sendPolicy = readSendPolicy({
      rules: [{ action: "deny", match: { channel: "telegram" } }],
      default: "allow",
    });
    const at = place();
    await expect(beforeRun(at, { sendPolicy })).rejects.toMatchObject({
      code: "SEND_DENIED",
      details: { source: "rule", ruleIndex: 0 },
    });
    expect(await at.store.load(ref)).toBeNull();
  });

  it("resets a session that is idle before a new message, and archives it", async () => {
    const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const at = place();
    await say(at.store, "hello");
    await updateEntry(at.store, ref, (entry) => ({ ...entry, label: "Group", sdkSessionId: "sdk-1" }));
    const before = await at.store.load(ref);
    at.set(20 * minute);
    await beforeRun(at, { reset });
    expect((await at.store.load(ref))?.sessionId).toBe(before?.sessionId);
    at.set(11 * minute);
    await beforeRun({ ...at, isNew: false }, { reset });
    expect((await at.store.load(ref))?.sessionId).toBe(before?.sessionId);
    await beforeRun(at, { reset });
    const after = await at.store.load(ref);
    expect(after?.sessionId).not.toBe(before?.sessionId);
    expect(after?.messageCount).toBe(0);
    expect(after?.entry).toMatchObject({ label: "Group" });
    expect(after?.entry["sdkSessionId"]).toBeUndefined();
    expect(await at.store.load({ ...ref, archiveId: before?.sessionId ?? "" })).toMatchObject({ messageCount: 1 });
    // There is nothing to begin anew.
    await beforeRun(at, { reset });
    expect((await at.store.load(ref))?.sessionId).toBe(after?.sessionId);
  });

  it("resets nothing that another run answers in, and nothing where the answer is denied", async () => {
    const reset = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const at = place();
    await say(at.store, "hello");
    const before = await at.store.load(ref);
    at.set(40 * minute);
    await expect(beforeRun(at, { reset, sendPolicy: readSendPolicy({ default: "deny" }) })).rejects.toThrow();
    const leaseUntilMs = at.clock.nowMs() + minute;
    const turn = { action: "open", turnId: "t", owner: "other", leaseUntilMs, fence: 1 } as const;
    await at.store.append(ref, [{ type: "custom", customType: "x", appendMode: "side" }], { turn });
    await beforeRun(at, { reset });
    expect((await at.store.load(ref))?.sessionId).toBe(before?.sessionId);
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planRetention } from "../src/plan-retention.ts";
import { readDurationMs } from "../src/duration.ts";
import type { RetainedSession } from "../src/plan-retention.ts";

const day = 86_400_000;
const nowMs = 1000 * day;

function session(name: string, ageDays: number, more: Partial<RetainedSession> = {}): RetainedSession {
  return {
    key: `agent:main:${name}`,
    sessionId: name,
    state: "active",
    updatedAtMs: nowMs - ageDays * day,
    sizeBytes: 100,
    ...more,
  };
}

const steps = (plan: ReturnType<typeof planRetention>): string[] =>
  plan.steps.map(({ action, sessionId, reason }) => `${action} ${sessionId} ${reason}`);

describe("planning what is kept", () => {
  it("plans nothing without a limit", () => {
    const plan = planRetention([session("old", 900)], {}, nowMs);
    expect([plan.steps, plan.sizeBytes, plan.excessBytes]).toEqual([[], 100, 0]);
  });

  it("archives by age and by count, oldest first, and purges archives after their grace only", () => {
    const sessions = [
      session("new", 1),
      session("mid", 10),
      session("older", 20),
      session("ancient", 90),
      session("gone", 200, { state: "archived", archivedAtMs: nowMs - 100 * day }),
      session("fresh-archive", 200, { state: "archived", archivedAtMs: nowMs - day }),
    ];
    const plan = planRetention(sessions, { olderThanMs: 30 * day, keep: 2 }, nowMs);
    expect(steps(plan)).toEqual(["purge gone age", "archive ancient age", "archive older count"]);
    expect(plan.freedBytes).toBe(100);
    expect(plan.spared).toEqual([{ key: "agent:main:fresh-archive", sessionId: "fresh-archive", why: "grace" }]);
  });

  it("never touches what is protected, and says that it spared it", () => {
    const plan = planRetention([session("open", 90, { isProtected: true }), session("b", 1)], { keep: 0 }, nowMs);
    expect(steps(plan)).toEqual(["archive b count"]);
    expect(plan.spared.map(({ sessionId, why }) => `${sessionId} ${why}`)).toEqual(["open protected"]);
  });

  it("frees bytes from archives first, archives no more than it must, and says what is still too much", () => {
    const archived = { state: "archived", archivedAtMs: nowMs - 60 * day } as const;
    const sessions = [session("a", 50, archived), session("b", 40, archived), session("c", 30), session("d", 20)];
    const plan = planRetention(sessions, { maxBytes: 150 }, nowMs);
    expect(steps(plan)).toEqual(["purge a bytes", "purge b bytes", "archive c bytes"]);
    expect(plan.excessBytes).toBe(50);
    expect(steps(planRetention(sessions, { maxBytes: 300 }, nowMs))).toEqual(["purge a bytes"]);
  });

  it("takes an archive without a known time as archived now", () => {
    const unknown = session("x", 900, { state: "archived", archivedAtMs: null });
    expect(planRetention([unknown], { olderThanMs: day }, nowMs).steps).toEqual([]);
    expect(planRetention([unknown], { olderThanMs: day, graceMs: 0 }, nowMs).steps).toHaveLength(1);
    expect(planRetention([unknown], { olderThanMs: day, graceMs: 0, purgesArchives: false }, nowMs).steps).toEqual([]);
  });

  it("never plans a session twice, a protected one, or a purge of an active one", () => {
    const any = fc.record({
      ageDays: fc.integer({ min: 0, max: 400 }),
      state: fc.constantFrom("active", "archived"),
      isProtected: fc.boolean(),
      sizeBytes: fc.option(fc.integer({ min: 0, max: 500 })),
    });
    const limits = fc.record({
      olderThanMs: fc.option(fc.integer({ min: 0, max: 400 * day })),
      keep: fc.option(fc.integer({ min: 0, max: 20 })),
      maxBytes: fc.option(fc.integer({ min: 0, max: 5000 })),
      graceMs: fc.integer({ min: 0, max: 100 * day }),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 30 }), limits, (list, policy) => {
        const sessions = list.map(({ ageDays, state, ...more }, index) =>
          session(`s${index}`, ageDays, { ...more, state: state as "active", archivedAtMs: nowMs - ageDays * day }),
        );
        const plan = planRetention(sessions, policy, nowMs);
        const ids = plan.steps.map(({ sessionId }) => sessionId);
        expect(new Set(ids).size).toBe(ids.length);
        for (const step of plan.steps) {
          const found = sessions.find(({ sessionId }) => sessionId === step.sessionId);
          expect(found?.isProtected).toBe(false);
          expect(step.action === "purge").toBe(found?.state === "archived");
        }
        const times = plan.steps.map(({ updatedAtMs }) => updatedAtMs);
        expect(times).toEqual(times.toSorted((one, other) => one - other));
      }),
    );
  });
});

describe("durations", () => {
  it.each([
    ["30d", 30 * day],
    ["12h", 12 * 3_600_000],
    ["1.5h", 5_400_000],
    [" 2W ", 14 * day],
    [250, 250],
  ])("reads %s", (text, ms) => {
    expect(readDurationMs(text, "olderThan")).toBe(ms);
  });

  it.each(["", "30", "d", "-1d", null, -1, Number.NaN])("refuses %s and names the key", (text) => {
    expect(() => readDurationMs(text, "olderThan")).toThrowError(/olderThan/);
  });
});

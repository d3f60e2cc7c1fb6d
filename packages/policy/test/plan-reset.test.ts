import { hasErrorCode } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { planReset } from "../src/plan-reset.ts";
import { neverReset, readResetPolicy } from "../src/reset-policy.ts";

const key = "agent:main:discord:direct:u";
const at = (text: string): number => Date.parse(text);

describe("planning a reset", () => {
  it("never resets by default [C51]", () => {
    const question = { key, lastActivityMs: 0, nowMs: at("2026-11-22T12:00:00Z"), timeZone: "UTC" };
    expect(planReset({ ...question, policy: neverReset })).toMatchObject({ isDue: false, dueAtMs: null });
    expect(planReset({ ...question, policy: readResetPolicy({}) })).toMatchObject({ isDue: false, dueAtMs: null });
  });

  it("resets after so many idle minutes, and not at the minute itself", () => {
    const policy = readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } });
    const lastActivityMs = at("2026-11-22T10:00:00Z");
    const plan = (nowMs: number): unknown => planReset({ policy, key, lastActivityMs, nowMs, timeZone: "UTC" });
    expect(plan(lastActivityMs + 30 * 60_000)).toMatchObject({ isDue: false, dueAtMs: lastActivityMs + 30 * 60_000 });
    expect(plan(lastActivityMs + 30 * 60_000 + 1)).toMatchObject({ isDue: true, reason: "idle" });
    expect(readResetPolicy({ reset: { mode: "idle" } }).rule.idleMinutes).toBe(60);
  });

  it.each([
    // Berlin is at UTC+1 in winter; 04:00 there is 03:00 UTC.
    ["before the hour", "2026-11-22T02:59:59Z", "2026-11-21T20:00:00Z", false],
    ["at the hour", "2026-11-22T03:00:00Z", "2026-11-21T20:00:00Z", true],
    ["active since", "2026-11-22T09:00:00Z", "2026-11-22T03:00:00Z", false],
    ["days ago", "2026-11-22T02:00:00Z", "2026-11-19T20:00:00Z", true],
  ])("resets daily by the clocks of the zone: %s [C51]", (_name, now, last, isDue) => {
    const policy = readResetPolicy({ reset: { mode: "daily", atHour: 4 } });
    const question = { policy, key, lastActivityMs: at(last), nowMs: at(now), timeZone: "Europe/Berlin" };
    expect(planReset(question).isDue).toBe(isDue);
  });

  it("says when a daily reset became due, and when the next one will", () => {
    const policy = readResetPolicy({ reset: { mode: "daily", atHour: 4 } });
    const question = { policy, key, timeZone: "Europe/Berlin", lastActivityMs: at("2026-11-19T20:00:00Z") };
    const late = planReset({ ...question, nowMs: at("2026-11-22T02:00:00Z") });
    expect(late.dueAtMs).toBe(at("2026-11-20T03:00:00Z"));
    const early = planReset({ ...question, nowMs: at("2026-11-19T21:00:00Z") });
    expect(early).toMatchObject({ isDue: false, dueAtMs: at("2026-11-20T03:00:00Z") });
  });

  it("takes the first moment after a gap when the clocks skip the hour", () => {
    // On 29 March 2026 Berlin's clocks go from 02:00 to 03:00, which is 01:00 UTC.
    const policy = readResetPolicy({ reset: { mode: "daily", atHour: 2 } });
    const question = { policy, key, timeZone: "Europe/Berlin", lastActivityMs: at("2026-03-28T12:00:00Z") };
    expect(planReset({ ...question, nowMs: at("2026-03-29T00:30:00Z") }).isDue).toBe(false);
    expect(planReset({ ...question, nowMs: at("2026-03-29T01:30:00Z") }).isDue).toBe(true);
  });

  it("takes what comes first when a daily rule has idle minutes too", () => {
    const policy = readResetPolicy({ reset: { mode: "daily", atHour: 4, idleMinutes: 60 } });
    const lastActivityMs = at("2026-11-22T10:00:00Z");
    const question = { policy, key, lastActivityMs, timeZone: "UTC" };
    expect(planReset({ ...question, nowMs: at("2026-11-22T11:30:00Z") })).toMatchObject({
      isDue: true,
      reason: "idle",
    });
  });

  it("lets the channel's rule decide alone, then the type's, then the general one", () => {
    const policy = readResetPolicy({
      reset: { mode: "idle", idleMinutes: 1 },
      resetByType: {
        group: { mode: "none" },
        dm: { mode: "idle", idleMinutes: 5 },
        thread: { mode: "idle", idleMinutes: 7 },
      },
      resetByChannel: { Slack: { mode: "never" } },
    });
    const source = (text: string): string => {
      const { source: from, rule } = planReset({ policy, key: text, lastActivityMs: 0, nowMs: 1, timeZone: "UTC" });
      return `${from} ${rule.mode} ${rule.idleMinutes}`;
    };
    expect(source("agent:main:slack:direct:u")).toBe("channel never null");
    expect(source("agent:main:discord:group:g")).toBe("type never null");
    expect(source("agent:main:discord:dm:u")).toBe("type idle 5");
    expect(source("agent:main:discord:group:g:thread:9")).toBe("type idle 7");
    expect(source("agent:main:discord:channel:c")).toBe("general idle 1");
  });

  it("refuses what it does not know, naming it", () => {
    const read = (): unknown => readResetPolicy({ reset: { mode: "weekly", atHour: 24 }, resetByType: { dms: {} } });
    expect(read).toThrowError(/dms.*reset\.mode is "weekly".*atHour is 24/s);
    try {
      read();
    } catch (error) {
      expect(hasErrorCode(error, "CONFIG_INVALID")).toBe(true);
    }
  });
});

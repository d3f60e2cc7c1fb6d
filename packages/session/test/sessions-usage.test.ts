import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { aroundCalls } from "@throughline/test-kit";
import { createFixture } from "./session-fixture.ts";

const usage = { input: 1000, output: 200, cacheRead: 50_000, cacheWrite: 0 };

async function storeWithCalls() {
  const reads: string[] = [];
  const store = aroundCalls(createMemoryStore(), ({ name, run }) => {
    if (name === "read") reads.push(name);
    return run();
  });
  const main = createFixture({ store });
  const other = createFixture({ store, agentId: "other" });
  main.model.push({ text: "One.", usage }, { text: "Two.", usage });
  other.model.push({ text: "Three.", usage });
  for (const name of ["first", "second"]) {
    const session = await main.sessions.open(name);
    const turn = await session.runTurn("Hello");
    expect(turn).toMatchObject({ usage: { input: 1000, output: 200, cacheRead: 50_000 } });
    expect(turn.costUsd).toBeCloseTo(session.spend.costUsd ?? 0);
  }
  await (await other.sessions.open("first")).runTurn("Hello");
  return { ...main, store, reads };
}

describe("what sessions used", () => {
  it("is in their rows, and null where no turn was counted", async () => {
    const { sessions, store } = await storeWithCalls();
    const [row] = (await sessions.list()).sessions;
    expect(row?.spend).toMatchObject({ calls: 1, input: 1000, output: 200, costUsd: expect.any(Number) as number });
    for (const [index, spend] of [{ calls: "1" }, null, [], { calls: 1, costUsd: 1 }].entries()) {
      const ref = { namespace: "", agentId: "main", key: `agent:main:odd-${index}` };
      await store.save(ref, { sessionId: `odd-${index}`, throughline: { v: 1, spend } }, { ifRevision: null });
      expect((await sessions.find(ref))?.spend).toBeNull();
    }
  });

  it("is added up by group, for the agent or for all agents, and read once", async () => {
    const { sessions, reads } = await storeWithCalls();
    const report = await sessions.usage({ by: ["model", "session"] });
    expect(report.rows.map(({ group, calls }) => [group.model, group.session, calls])).toEqual([
      ["claude-sonnet-4-5", "agent:main:cli:direct:first", 1],
      ["claude-sonnet-4-5", "agent:main:cli:direct:second", 1],
    ]);
    expect([report.total.calls, report.total.input]).toEqual([2, 2000]);
    expect((await sessions.usage({ allAgents: true, by: ["agent"] })).rows.map(({ group }) => group.agent)).toEqual([
      "main",
      "other",
    ]);
    reads.length = 0;
    const [one, two] = await Promise.all([sessions.usage(), sessions.usage({ untilMs: 1 })]);
    expect([one.total.calls, two.total.calls, reads.length]).toEqual([2, 0, 0]);
    await sessions.close();
    await expect(sessions.usage()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });

  it("has the days of the time zone", async () => {
    const midnightMs = Date.UTC(2026, 0, 5, 23, 30);
    const clock = { nowMs: () => midnightMs, sleep: () => new Promise<void>(() => {}) };
    const { sessions, model } = createFixture({ store: createMemoryStore({ clock }), timeZone: "UTC" });
    model.push({ text: "One.", usage });
    await (await sessions.open("home")).runTurn("Hello");
    const labelIn = async (by: "day" | "week" | "month", timeZone?: string): Promise<unknown> =>
      (await sessions.usage({ by: [by], ...(timeZone === undefined ? {} : { timeZone }) })).rows[0]?.group[by];
    expect([await labelIn("day"), await labelIn("day", "Asia/Kathmandu")]).toEqual(["2026-01-05", "2026-01-06"]);
    expect([await labelIn("week", "Pacific/Honolulu"), await labelIn("month")]).toEqual(["2026-01-05", "2026-01"]);
    await expect(sessions.usage({ by: ["day"], timeZone: "Nowhere/City" })).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
    await expect(sessions.usage({ by: ["hour" as "day"] })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(sessions.usage({ since: 1 } as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });
});

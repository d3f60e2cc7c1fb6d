import { describe, expect, it } from "vitest";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, modelId } from "./session-fixture.ts";

describe("what a session says of its tokens", () => {
  it("a long message at 80 % is announced before it is sent", async () => {
    const script = createScriptedModel({
      usage: { input: 159_990, output: 10, cacheRead: 0, cacheWrite: 0 },
      text: "80 %",
    });
    const { sessions, events } = createFixture({ script });
    await using session = await sessions.open(key);
    await session.runTurn("Hi");
    expect(events.some(({ name }) => name === "threshold.crossed")).toBe(false);
    await session.runTurn("word ".repeat(30_000));
    const names = events.map(({ name }) => name);
    const crossed = events.find((event) => event.name === "threshold.crossed");
    expect(crossed).toMatchObject({ percent: 90, gauge: { source: "actual+delta", windowTokens: 200_000 } });
    expect(names.indexOf("threshold.crossed")).toBeLessThan(names.lastIndexOf("call.started"));
    await session.runTurn("Once a cycle");
    expect(events.filter(({ name }) => name === "threshold.crossed")).toHaveLength(1);
  });

  it("takes the actual figures of the last call, cached ones included, and adds up what was spent [TOK-04, TOK-09, C34, ENT-11]", async () => {
    const data = createMemoryData();
    const script = createScriptedModel(
      { text: "a", usage: { input: 10, output: 20, cacheRead: 1000, cacheWrite: 300 } },
      { text: "b", usage: { input: 5, output: 30, cacheRead: 1330, cacheWrite: 40 } },
      { text: "c", usage: { input: 7, output: 8, cacheRead: 1400, cacheWrite: 0 } },
    );
    const { sessions, store } = createFixture({ script, store: createMemoryStore({ data }) });
    await using session = await sessions.open(key);
    await session.runTurn("1");
    const second = await session.runTurn("2");
    expect(second.gauge).toMatchObject({ tokens: 1405, source: "actual" });
    const state = await store.load(session.ref);
    expect(state?.entry).toMatchObject({
      totalTokens: 1405,
      totalTokensFresh: true,
      contextTokens: 200_000,
      inputTokens: 15,
      outputTokens: 50,
      model: modelId,
      modelProvider: "anthropic",
      updatedAt: expect.any(Number),
      throughline: { spend: { calls: 2, cacheRead: 2330, cacheWrite: 340 } },
    });
    expect(session.entry).toEqual(state?.entry);
    expect(second.usage).toMatchObject({ input: 5, output: 30, cacheRead: 1330, cacheWrite: 40 });
    const costUsd = (5 * 3 + 30 * 15 + 1330 * 0.3 + 40 * 3.75) / 1e6;
    expect(second.costUsd).toBeCloseTo(costUsd, 12);
    expect(session.spend).toMatchObject({ calls: 2, input: 15, output: 50, cacheRead: 2330, cacheWrite: 340 });
    await using other = await createFixture({ script, store: createMemoryStore({ data }) }).sessions.open(key);
    expect((await other.messages()).gauge).toMatchObject({ tokens: 1405, source: "actual" });
    await other.runTurn("3");
    expect(other.entry).toMatchObject({ inputTokens: 22, outputTokens: 58, totalTokens: 1415 });
  });

  it("calibration and the crossed thresholds outlive the process", async () => {
    const data = createMemoryData();
    const text = "Some English words that a tokenizer knows well. ".repeat(200);
    const script = createScriptedModel(
      { text: "a", usage: { input: 2500, output: 5, cacheRead: 0, cacheWrite: 0 } },
      { text: "b", usage: { input: 5000, output: 5, cacheRead: 0, cacheWrite: 0 } },
      { text: "c", usage: { input: 185_000, output: 5, cacheRead: 0, cacheWrite: 0 } },
    );
    const first = createFixture({ script, tools: [], store: createMemoryStore({ data }) });
    await using session = await first.sessions.open(key);
    for (let at = 0; at < 4; at++) await session.runTurn(text);
    expect(first.events.filter(({ name }) => name === "threshold.crossed")).toHaveLength(1);
    const kept = session.entry["throughline"] as { calibration: { ratios: Record<string, number[]> } };
    const [ratios] = Object.values(kept.calibration.ratios);
    expect(ratios).toHaveLength(2);
    const again = createFixture({ script, tools: [], store: createMemoryStore({ data }) });
    await using reopened = await again.sessions.open(key);
    script.push({ text: "d", usage: { input: 187_000, output: 5, cacheRead: 0, cacheWrite: 0 } });
    const before = (await session.messages()).gauge;
    expect((await reopened.messages()).gauge).toEqual(before);
    await reopened.runTurn(text);
    expect(again.events.filter(({ name }) => name === "threshold.crossed")).toHaveLength(0);
  });

  it("a system prompt made for each call is told the size, and does not cost a count of everything", async () => {
    const script = createScriptedModel();
    const { sessions } = createFixture({
      script,
      system: ({ gauge }) => `You have used ${gauge.displayPercent?.toFixed(0)} %.`,
    });
    await using session = await sessions.open(key);
    script.push({ text: "a", usage: { input: 99_000, output: 1000, cacheRead: 0, cacheWrite: 0 } });
    await session.runTurn("1");
    const second = await session.runTurn("2");
    expect(script.requests.map(({ system }) => system)).toEqual(["You have used 0 %.", "You have used 50 %."]);
    expect(second.calls[0]?.estimatedTokens).toBeGreaterThan(100_000);
  });
});

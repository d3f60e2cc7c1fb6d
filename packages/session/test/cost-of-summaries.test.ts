import { describe, expect, it } from "vitest";
import type { StoredRecord, Summarizer } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { createMemoryData, type MemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createChatSummarizer, createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { until } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { ofType, scriptedSessions, talk, usageOf } from "./scripted-sessions.ts";
import { allRecords, key, workingSummary } from "./whole-turn-fixture.ts";

const modelId = "claude-haiku-4-5";
const better = "Topics: quays.\nDecisions: no red paint.\nCurrent state: under way.\nOpen items: the rest.";

async function connect(): Promise<{ readonly simulator: ProviderSimulator; readonly summarizer: Summarizer }> {
  const simulator = createProviderSimulator({ fallback: () => better });
  await simulator.start();
  const model = anthropic(modelId, { apiKey: "any", baseUrl: simulator.url, maxRetries: 0 });
  return { simulator, summarizer: createChatSummarizer({ model, name: "haiku" }) };
}

const failing: Summarizer = { summarize: () => Promise.reject(new Error("no server there")) };

const detailsOf = (records: readonly StoredRecord[]): readonly unknown[] =>
  ofType(records, "compaction").map(({ details }) => details);

/** A session whose summary was made by rules. */
async function summarizedByRules(data: MemoryData): Promise<void> {
  const script = createScriptedModel();
  const extractive = createExtractiveSummarizer();
  const store = createMemoryStore({ data });
  const { sessions } = scriptedSessions(script, { store, summarizers: [failing], extractive });
  const session = await sessions.open(key);
  await talk(session, script, { turns: 8 });
  expect(await session.compact()).toMatchObject({ source: "extractive", needsRetry: true, usage: null });
  await sessions.close();
}

describe("what a summary cost", () => {
  it("is in the record of its compaction, in the event and in the result", { tags: ["slow"] }, async () => {
    const { simulator, summarizer } = await connect();
    await using _ = { [Symbol.asyncDispose]: () => simulator.close() };
    const script = createScriptedModel();
    const { sessions, store, all } = scriptedSessions(script, { summarizers: [failing, summarizer] });
    const session = await sessions.open(key);
    await talk(session, script, { turns: 8 });
    const result = await session.compact();
    const usage = (result as { readonly usage?: Readonly<Record<string, number>> | null }).usage ?? {};
    expect(usage).toMatchObject({ calls: 1 });
    // The text that is summarized has several thousand tokens; the summary has a few.
    const { input = 0, cacheRead = 0, cacheWrite = 0 } = usage;
    expect(input + cacheRead + cacheWrite).toBeGreaterThan(2000);
    expect(usage["output"]).toBeGreaterThan(5);
    expect(usage["output"]).toBeLessThan(200);
    expect(detailsOf(await allRecords(store))).toMatchObject([{ source: "model", provider: "haiku", usage }]);
    expect(all("compaction.applied")).toMatchObject([{ provider: "haiku", usage }]);
    await sessions.close();
  });

  it(
    "is in the record of a compaction that a retry made, with the provider that wrote it",
    { tags: ["slow"] },
    async () => {
      const { simulator, summarizer } = await connect();
      await using _ = { [Symbol.asyncDispose]: () => simulator.close() };
      const data = createMemoryData();
      await summarizedByRules(data);
      const store = createMemoryStore({ data });
      const retried = scriptedSessions(createScriptedModel(), { store, summarizers: [summarizer], retry: {} });
      await retried.sessions.open(key);
      await until(() => retried.all("retry.improved").length === 1);
      const usage = { calls: 1, input: expect.any(Number) as unknown, output: expect.any(Number) as unknown };
      expect(retried.all("retry.improved")).toMatchObject([{ as: "compaction", provider: "haiku", usage }]);
      await retried.sessions.close();
      const [poor, made] = detailsOf(await allRecords(store));
      expect(poor).toMatchObject({ source: "extractive", provider: "extractive" });
      expect(poor).not.toHaveProperty("usage");
      expect(made).toMatchObject({ source: "model", provider: "haiku", usage, needsRetry: false });
    },
  );

  it(
    "is in the note that a retry made while a turn was open, and in the compaction that follows it",
    { tags: ["slow"] },
    async () => {
      const { simulator, summarizer } = await connect();
      await using _ = { [Symbol.asyncDispose]: () => simulator.close() };
      const data = createMemoryData();
      await summarizedByRules(data);
      const store = createMemoryStore({ data });
      const script = createScriptedModel();
      const done = Promise.withResolvers<void>();
      script.push({ text: "Later.", after: done.promise });
      // Nothing is retried before the turn is open.
      const gate = Promise.withResolvers<void>();
      const gated: Summarizer = {
        summarize: async (request) => {
          await gate.promise;
          return summarizer.summarize(request);
        },
      };
      const retried = scriptedSessions(script, { store, summarizers: [gated], retry: {} });
      const session = await retried.sessions.open(key);
      const turn = session.runTurn("Still there?");
      await until(() => retried.all("call.started").length === 1);
      gate.resolve();
      await until(() => retried.all("retry.improved").length === 1);
      done.resolve();
      await turn;
      await retried.sessions.close();
      const notes = (await allRecords(store))
        .map(({ record }) => record["data"] as Readonly<Record<string, unknown>> | undefined)
        .filter((note) => note?.["kind"] === "summary-superseded");
      expect(notes).toMatchObject([{ provider: "haiku", usage: { calls: 1 } }]);
    },
  );

  it("is in the record of a checkpoint", async () => {
    const script = createScriptedModel();
    const checkpoint = { enabled: true };
    const { sessions, store, all } = scriptedSessions(script, { checkpoint });
    const session = await sessions.open(key);
    script.push({ text: "Yes.", usage: usageOf(2000) });
    await session.runTurn("And?");
    script.push({ text: JSON.stringify({ summary: workingSummary(1) }), usage: usageOf(1500) });
    expect(await session.checkpoint()).toMatchObject({ kind: "written" });
    const usage = { calls: 1, input: 1500, output: 10, cacheRead: 0, cacheWrite: 0 };
    expect(all("checkpoint.written")).toMatchObject([{ usage }]);
    expect(ofType(await allRecords(store), "checkpoint")).toMatchObject([{ checkpoint: { usage } }]);
    await sessions.close();
  });
});

describe("the plan that is announced", () => {
  it("is announced once, and again only when another cut is carried out in its place", { tags: ["slow"] }, async () => {
    const names = (all: ReturnType<typeof scriptedSessions>["events"]): readonly string[] =>
      all.filter(({ name }) => name.startsWith("compaction.")).map(({ name }) => name);
    const run = async (summarizers: readonly Summarizer[]): Promise<ReturnType<typeof scriptedSessions>> => {
      const script = createScriptedModel();
      const fixture = scriptedSessions(script, {
        model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 60_000, maxOutputTokens: 500 },
        summarizers,
        extractive: createExtractiveSummarizer(),
        compaction: {
          background: false,
          keepPercent: 10,
          emergencyKeepPercent: 60,
          keepRecentTokens: 0,
          mostKeptPercent: 90,
        },
      });
      const session = await fixture.sessions.open(key);
      await talk(session, script, { turns: 25 });
      await session.compact();
      await fixture.sessions.close();
      return fixture;
    };
    const working: Summarizer = {
      summarize: () => Promise.resolve({ summary: workingSummary(1), source: "s", usage: null }),
    };
    expect(names((await run([working])).events)).toEqual(["compaction.planned", "compaction.applied"]);
    // Without a model there is one plan: the one that keeps more.
    expect(names((await run([])).events)).toEqual(["compaction.planned", "compaction.applied"]);
    const fallen = await run([failing]);
    expect(names(fallen.events)).toEqual([
      "compaction.planned",
      "compaction.rung-failed",
      "compaction.replanned",
      "compaction.applied",
    ]);
    const [planned] = fallen.all("compaction.planned");
    const [replanned] = fallen.all("compaction.replanned");
    expect(replanned?.keptMessages).toBeGreaterThan(planned?.keptMessages ?? Infinity);
  });
});

import { describe, expect, it } from "vitest";
import type { Summarizer } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { until } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedAgents, thousandTokens, usageOf } from "./scripted-agents.ts";
import { allRecords, key, workingSummary } from "./whole-turn-fixture.ts";

describe("a checkpoint beside the turns", () => {
  it("is one at a time, ends with the sessions, and no turn waits for one that hangs", { tags: ["slow"] }, async () => {
    const script = createScriptedModel();
    let writes = 0;
    const { sessions, names, store } = scriptedAgents(script, {
      checkpoint: {
        tokenThresholdPercents: [10, 20, 30, 40],
        minTokensForGen: 0,
        writers: [
          {
            name: "hangs",
            write: ({ signal }) => {
              writes += 1;
              return new Promise((_, reject) => {
                signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
              });
            },
          },
        ],
      },
    });
    await using session = await sessions.open(key);
    for (let at = 1; at <= 8; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * at) });
      expect((await session.runTurn(`Question ${at}`)).outcome).toBe("done");
      await until(() => names().filter((name) => name === "step.finished").length === 2 * at);
    }
    expect(writes).toBe(1);
    await sessions.close();
    expect(names()).toContain("checkpoint.failed");
    expect((await allRecords(store)).some(({ type }) => type === "checkpoint")).toBe(false);
  });

  it("that fails is an event and a wait, and fails no turn", async () => {
    const script = createScriptedModel();
    let writes = 0;
    const { sessions, names } = scriptedAgents(script, {
      checkpoint: {
        tokenThresholdPercents: [10],
        turnThreshold: 1,
        minTokensForGen: 0,
        writers: [{ name: "fails", write: () => Promise.reject(new Error(`no server there: ${(writes += 1)}`)) }],
      },
    });
    await using session = await sessions.open(key);
    for (let at = 1; at <= 6; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(2500 + at) });
      expect((await session.runTurn(`Question ${at}`)).outcome).toBe("done");
      if (at === 1) await until(() => names().includes("checkpoint.failed"));
    }
    await sessions.close();
    expect(writes).toBe(1);
    expect(names().filter((name) => name === "checkpoint.failed")).toHaveLength(1);
  });

  it("is asked for once a crossing, and serves the compaction without a call", async () => {
    const script = createScriptedModel();
    let writes = 0;
    let summaries = 0;
    const { sessions, names, events } = scriptedAgents(script, {
      checkpoint: {
        tokenThresholdPercents: [60],
        turnThreshold: 1000,
        writers: [{ name: "mine", write: () => Promise.resolve(`{"summary": "They spoke, ${(writes += 1)}."}`) }],
      },
      summarizers: [{ summarize: () => Promise.reject(new Error(`asked ${(summaries += 1)}`)) }],
    });
    await using session = await sessions.open(key);
    for (let at = 1; at <= 13; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * at) });
      await session.runTurn(`Question ${at}: ${thousandTokens}`);
      if (at === 11) await until(() => names().includes("checkpoint.written"));
    }
    script.push("The last answer.");
    await session.runTurn(`And now? ${thousandTokens}`);
    const applied = events.find((event) => event.name === "compaction.applied");
    expect(applied).toMatchObject({ source: "checkpoint" });
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("They spoke, 1.");
    expect([writes, summaries]).toEqual([1, 0]);
    await sessions.close();
  });
});

describe("a summary that no model wrote", () => {
  it("is made again in the background, after a restart too, and the live session shows the better one [RTY-04, RTY-07, C45]", async () => {
    const data = createMemoryData();
    const script = createScriptedModel();
    let isUp = false;
    let asked = 0;
    const summarizer: Summarizer = {
      summarize: () => {
        asked += 1;
        if (!isUp) return Promise.reject(new Error("no server there"));
        return Promise.resolve({ summary: workingSummary(7), source: "back", usage: null });
      },
    };
    {
      const { sessions, events } = scriptedAgents(script, {
        store: createMemoryStore({ data }),
        summarizers: [summarizer],
      });
      await using session = await sessions.open(key);
      for (let at = 1; at <= 13; at++) {
        script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * at) });
        await session.runTurn(`Question ${at}: ${thousandTokens}`);
      }
      await session.runTurn(`And now? ${thousandTokens}`);
      expect(events.find(({ name }) => name === "compaction.applied")).toMatchObject({
        source: "extractive",
        needsRetry: true,
      });
      expect(asked).toBe(1);
      await sessions.close();
    }
    isUp = true;
    const { sessions, names, store } = scriptedAgents(script, {
      store: createMemoryStore({ data }),
      summarizers: [summarizer],
      retry: { intervalSeconds: 0.005, firstDelayMs: 1 },
    });
    await using session = await sessions.open(key);
    expect(JSON.stringify((await session.messages()).messages)).not.toContain("Topics: number 7.");
    await until(() => names().includes("retry.improved"));
    const shows = async (): Promise<boolean> =>
      JSON.stringify((await session.messages()).messages).includes("Topics: number 7.");
    while (!(await shows())) await new Promise((resolve) => setTimeout(resolve, 1));
    await session.runTurn("And after that?");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("Topics: number 7.");
    expect(asked).toBe(2);
    await sessions.close();
    expect((await allRecords(store)).filter(({ type }) => type === "compaction")).toHaveLength(2);
  });
});

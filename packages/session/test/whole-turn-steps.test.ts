import { describe, expect, it } from "vitest";
import { hasErrorCode } from "@throughline/core";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { anthropic } from "@throughline/models/anthropic";
import { until } from "@throughline/test-kit";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { working, workingAgents, thousandTokens, usageOf } from "./scripted-agents.ts";
import { echoTool } from "./session-fixture.ts";
import {
  allRecords,
  createWholeTurnFixture,
  key,
  lostMessages,
  modelId,
  summarizerOf,
  workingSummary,
} from "./whole-turn-fixture.ts";

const textOf = (request: ScriptedModel["requests"][number] | undefined): string => JSON.stringify(request?.messages);

describe("the order of a turn", () => {
  it(
    "is message, compaction, call, and a checkpoint in the background; the call has the summary and answers the user [CMP-20, CMP-05, C56]",
    { tags: ["slow"] },
    async () => {
      const script = createScriptedModel();
      const { sessions, events } = workingAgents(script, {
        memoryFlush: { enabled: false },
        compaction: { preferCheckpoint: false, background: false },
        checkpoint: {
          tokenThresholdPercents: [1],
          minTokensForGen: 0,
          writers: [{ name: "mine", write: () => Promise.resolve('{"summary": "They spoke."}') }],
        },
      });
      await using session = await sessions.open(key);
      for (let at = 0; at < 13; at++) {
        script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * (at + 1)) });
        await session.runTurn(`Question ${at}: ${thousandTokens}`);
      }
      events.length = 0;
      script.push({ text: "The last answer.", usage: usageOf(4000) });
      const turn = await session.runTurn(`And the last question? ${thousandTokens}`);
      expect(turn.text).toBe("The last answer.");
      await until(() => events.some(({ name }) => name === "checkpoint.written"));
      await sessions.close();
      const names = events.map((event) =>
        event.name === "record.appended" ? `${event.record.type} appended` : event.name,
      );
      const order = ["message appended", "compaction.planned", "compaction.applied", "compaction appended"];
      const places = [...order, "call.started", "turn.closed", "checkpoint.started"].map((name) => names.indexOf(name));
      expect(places).toEqual(places.toSorted((one, other) => one - other));
      expect(places).not.toContain(-1);
      expect(names.filter((name) => name === "compaction.applied")).toHaveLength(1);
      const sent = textOf(script.requests.at(-1));
      expect(sent).toContain("Topics: number 1.");
      expect(sent).toContain("And the last question?");
      // Of what was summarized the first request alone is quoted, and its beginning only.
      expect(sent).not.toContain("Question 1:");
    },
  );

  it("what a session shows and says of its size is what the next request has, at once", async () => {
    const script = createScriptedModel();
    const { sessions } = workingAgents(script, { memoryFlush: { enabled: false } });
    await using session = await sessions.open(key);
    for (let at = 0; at < 8; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * (at + 1)) });
      await session.runTurn(`Question ${at}: ${thousandTokens}`);
    }
    const before = await session.messages();
    const result = await session.compact();
    expect(result).toMatchObject({ kind: "compacted", source: "model" });
    const after = await session.messages();
    expect(JSON.stringify(after.messages)).toContain("Topics: number 1.");
    expect(after.gauge.tokens).toBeLessThan(before.gauge.tokens);
    await session.runTurn("And now?");
    expect(textOf(script.requests.at(-1))).toContain("Topics: number 1.");
    await sessions.close();
  });
});

describe("a compaction that takes its time", () => {
  it("holds up no other session, is made once, and keeps and answers what the user says meanwhile", async () => {
    const script = createScriptedModel();
    let summaries = 0;
    const gate = Promise.withResolvers<void>();
    const { sessions, store } = workingAgents(script, {
      memoryFlush: { enabled: false },
      summarizers: [
        {
          summarize: async () => {
            summaries += 1;
            await gate.promise;
            return { summary: workingSummary(1), source: "slow", usage: null };
          },
        },
      ],
    });
    await using session = await sessions.open(key);
    for (let at = 0; at < 13; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * (at + 1)) });
      await session.runTurn(`Question ${at}: ${thousandTokens}`);
    }
    const first = session.runTurn(`The one that compacts ${thousandTokens}`);
    await until(() => summaries > 0);
    const second = session.runTurn("Said meanwhile");
    await using other = await sessions.open("agent:main:cli:direct:other");
    expect((await other.runTurn("Hello")).outcome).toBe("done");
    gate.resolve();
    script.push("To the first.", "To the second.");
    expect((await first).text).toBe("To the first.");
    expect((await second).text).toBe("To the second.");
    expect(summaries).toBe(1);
    const records = await allRecords(store);
    expect(records.filter(({ type }) => type === "compaction")).toHaveLength(1);
    expect(lostMessages(records)).toEqual([]);
    expect(textOf(script.requests.at(-1))).toContain("Said meanwhile");
    await sessions.close();
  });

  it("ends with the turn when that is aborted, and nothing is written of it", async () => {
    const script = createScriptedModel();
    const { sessions, store, events } = workingAgents(script, {
      memoryFlush: { enabled: false },
      compaction: { background: false },
      summarizers: [{ summarize: () => new Promise(() => {}) }],
    });
    await using session = await sessions.open(key);
    for (let at = 0; at < 13; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(1100 * (at + 1)) });
      await session.runTurn(`Question ${at}: ${thousandTokens}`);
    }
    const controller = new AbortController();
    const running = session.runTurn(`The one that compacts ${thousandTokens}`, { signal: controller.signal });
    await until(() => events.some(({ name }) => name === "compaction.planned"));
    controller.abort();
    expect((await running).outcome).toBe("aborted");
    expect((await allRecords(store)).some(({ type }) => type === "compaction")).toBe(false);
    await sessions.close();
  });
});

describe("an overflow that nobody saw coming", () => {
  it("is cured by the same compaction, once, and the turn is answered", { tags: ["slow"] }, async () => {
    const store = createMemoryStore();
    let asked = (): number => 0;
    await using fixture = await createWholeTurnFixture(9000, (simulator) => {
      const made = summarizerOf("works", simulator);
      ({ asked } = made);
      return { store, summarizers: [made.summarizer], model: { ...windowless(simulator.url) } };
    });
    await using session = await fixture.sessions.open(key);
    for (let at = 0; at < 40; at++) await session.runTurn(`Question ${at}: ${"and what about that? ".repeat(30)}`);
    const refused = fixture.simulator.refusals;
    expect(refused.map(({ kind }) => kind)).toEqual(["overflow"]);
    expect(fixture.events.filter(({ name }) => name === "compaction.applied").length).toBe(asked());
    expect(asked()).toBeGreaterThan(1);
    expect(lostMessages(await allRecords(store))).toEqual([]);
  });
});

function windowless(url: string): AgentSessionsOptions["model"] {
  return {
    chat: anthropic("claude-opus-5", { apiKey: "any", baseUrl: url, maxRetries: 0 }).chat,
    modelId,
    windowTokens: null,
    maxOutputTokens: 800,
  };
}

describe("settings that cannot work", () => {
  const base = {
    store: createMemoryStore(),
    model: { chat: createScriptedModel(), modelId: "claude-sonnet-4-5" },
    summarizers: [working],
  };
  const wrong: readonly [string, Partial<AgentSessionsOptions>][] = [
    ["memoryFlush.enabled", { memoryFlush: {} }],
    ["memoryFlush.thresholds", { tools: [echoTool], memoryFlush: { thresholds: [] } }],
    [
      "memoryFlush.thresholds.0.percent",
      { tools: [echoTool], memoryFlush: { thresholds: [{ percent: 120, prompt: "Now." }] } },
    ],
    ["checkpoint.writers", { checkpoint: { enabled: true, writers: [] } }],
    ["checkpoint.tokenThresholdPercents", { checkpoint: { tokenThresholdPercents: [0] } }],
    ["compaction.preferCheckpoint", { checkpoint: { enabled: false }, compaction: { preferCheckpoint: true } }],
    ["compaction.keepPercent", { compaction: { keepPercent: 100 } }],
    ["retry.intervalSeconds", { summarizers: [], retry: { intervalSeconds: 60 } }],
    ["steps", { steps: [{ name: "compaction", when: "before-call", run: () => Promise.resolve() }] }],
  ];

  it.each(wrong)("are refused: %s", (named, options) => {
    let refused: unknown = null;
    try {
      createAgentSessions({ ...base, ...options });
    } catch (error) {
      refused = error;
    }
    expect(hasErrorCode(refused, "CONFIG_INVALID")).toBe(true);
    expect(String(refused)).toContain(`${named} is `);
  });
});

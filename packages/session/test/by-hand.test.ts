import { describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import type { Session } from "@throughline/session";
import { type AgentSessions, createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createMemoryStore } from "@throughline/store-memory";
import {
  createExtractiveSummarizer,
  createSummarizerBreakers,
  createSummarizerChain,
} from "@throughline/summarizer-providers";
import { createScriptedModel } from "./scripted-model.ts";
import { allRecords, key, places, workingSummary } from "./whole-turn-fixture.ts";

const script = createScriptedModel();

function agent(store: SessionStore, given: Partial<AgentSessionsOptions> = {}): AgentSessions {
  return createAgentSessions({
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000, maxOutputTokens: 500 },
    summarizers: [],
    extractive: createExtractiveSummarizer(),
    checkpoint: { enabled: false },
    retry: { intervalSeconds: 0 },
    ...given,
    store,
  });
}

async function talk(session: Session, from: number, to: number, words = ""): Promise<void> {
  for (let at = from; at <= to; at++) {
    script.push(`Answer ${at}: it is in src/part-${at}.ts.`);
    await session.runTurn(`Question ${at}: where is part ${at}? ${words}`);
  }
}

const works = { summarize: () => Promise.resolve({ summary: workingSummary(1), source: "works", usage: null }) };

describe.each(places)("a session looked after by hand, over $name", ({ open }) => {
  it("is compacted when it has more than four messages, else says why not", { tags: ["slow"] }, async () => {
    const { store, remove } = open();
    await using sessions = agent(store, { summarizers: [works] });
    await using session = await sessions.open(key);
    await talk(session, 1, 2);
    expect(await session.compact()).toMatchObject({ kind: "nothing", reason: "too-few-messages", messages: 4 });
    await talk(session, 3, 3);
    const plan = await session.planCompaction();
    expect(plan).toMatchObject({ kind: "compact", removedMessages: 4, keptMessages: 2 });
    expect((await allRecords(store)).some(({ type }) => type === "compaction")).toBe(false);
    const result = await session.compact();
    expect(result).toMatchObject({ kind: "compacted", source: "model", needsRetry: false, messagesRemoved: 4 });
    if (result.kind !== "compacted") throw new Error("it was compacted");
    expect(result.tokensAfter).toBeLessThan(result.tokensBefore);
    const shown = JSON.stringify((await session.messages()).messages);
    expect(shown).toContain("Topics: number 1.");
    expect(shown).not.toContain("Answer 2");
    expect(shown).toContain("Answer 3");
    // The store has it: a handle of its own says the same.
    await using again = await sessions.open(key);
    expect(JSON.stringify((await again.messages()).messages)).toBe(shown);
    await remove();
  });

  it("is not compacted while a turn is open, and no summarizer is asked for nothing", async () => {
    const { store, remove } = open();
    let asked = 0;
    const counted = { summarize: () => Promise.reject(new Error(`asked ${(asked += 1)}`)) };
    await using sessions = agent(store, { summarizers: [counted] });
    await using session = await sessions.open(key);
    await talk(session, 1, 4);
    const { promise, resolve } = Promise.withResolvers<void>();
    script.push({ text: "Late.", after: promise });
    const turn = session.runTurn("Wait.");
    await using other = await sessions.open(key);
    while (other.runningTurn === null) {
      await new Promise((next) => setTimeout(next, 1));
      await other.refresh();
    }
    expect(await other.compact()).toMatchObject({ kind: "busy", turn: { owner: expect.any(String) } });
    expect(await session.compact()).toEqual({ kind: "busy", turn: null });
    expect((await other.status()).turn).toBe("running");
    resolve();
    await turn;
    expect(asked).toBe(0);
    expect((await other.status()).turn).toBe("idle");
    await remove();
  });

  it("has its checkpoints made, listed and counted", async () => {
    const { store, remove } = open();
    let count = 0;
    const writer = { name: "mine", write: () => Promise.resolve(`{"summary": "They spoke, ${(count += 1)}."}`) };
    await using sessions = agent(store, { checkpoint: { writers: [writer], turnThreshold: 1000 } });
    await using session = await sessions.open(key);
    expect(await session.checkpoint()).toEqual({ kind: "nothing", reason: "nothing-new" });
    await talk(session, 1, 3);
    expect(await session.checkpoint()).toMatchObject({ kind: "written", summary: "They spoke, 1." });
    expect(await session.checkpoint()).toEqual({ kind: "nothing", reason: "nothing-new" });
    await talk(session, 4, 5);
    const { checkpoints, status } = await session.checkpoints();
    expect(checkpoints).toMatchObject([{ summary: "They spoke, 1.", messageCountAtCheckpoint: 6, model: "mine" }]);
    expect(status).toMatchObject({ phase: "idle", userMessages: 5, userMessagesSince: 2, lastId: checkpoints[0]?.id });
    await using without = agent(store, { checkpoint: { writers: [] } });
    await using other = await without.open(key);
    expect(await other.checkpoint()).toEqual({ kind: "nothing", reason: "no-writers" });
    await remove();
  });

  it("begins with a checkpoint of its own, or of another session, without a call", async () => {
    const { store, remove } = open();
    const writer = { name: "mine", write: () => Promise.resolve('{"summary": "They found three parts of it."}') };
    await using sessions = agent(store, { checkpoint: { writers: [writer], turnThreshold: 1000 } });
    await using session = await sessions.open(key);
    expect(await session.inherit()).toEqual({ kind: "nothing", reason: "no-checkpoint" });
    await talk(session, 1, 3, "And how is it done there?");
    await session.checkpoint();
    await talk(session, 4, 4);
    const calls = script.requests.length;
    await using young = await sessions.open("agent:main:cli:direct:young");
    expect(await young.inherit({ from: session })).toMatchObject({ kind: "inherited", messagesRemoved: 0 });
    expect(await young.inherit({ from: session.ref })).toEqual({ kind: "nothing", reason: "not-empty" });
    expect(await session.inherit()).toMatchObject({ kind: "inherited", messagesRemoved: 6 });
    expect(script.requests).toHaveLength(calls);
    for (const one of [session, young]) {
      const shown = JSON.stringify((await one.messages()).messages);
      expect(shown).toContain("three parts");
      expect(shown).not.toContain("Answer 2");
    }
    expect(JSON.stringify((await session.messages()).messages)).toContain("Answer 4");
    script.push("So it is.");
    await young.runTurn("Go on.");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("three parts");
    await remove();
  });

  it("tells where it stands: breakers, pending retries, counters", async () => {
    const { store, remove } = open();
    const breakers = createSummarizerBreakers({ threshold: 2 });
    const down = { summarize: () => Promise.reject(new Error("no server there")) };
    const last = { name: "last", summarizer: down };
    const chain = createSummarizerChain({ summarizers: [{ name: "down", summarizer: down }, last], breakers });
    await using sessions = agent(store, { summarizers: [chain], breakers });
    await using session = await sessions.open(key);
    expect(await session.status()).toMatchObject({
      turn: "idle",
      compaction: { count: 0, isDue: false, triggerTokens: 170_000 },
      retries: [],
      summarizers: [{ name: "down", state: "closed", failures: 0, threshold: 2, retryInMs: null }],
    });
    await talk(session, 1, 8, "And what is it that it does there? ".repeat(12));
    await session.compact();
    await talk(session, 9, 16, "And what is it that it does there? ".repeat(12));
    await session.compact();
    const status = await session.status();
    expect(status.compaction.count).toBe(2);
    expect(status.summarizers).toMatchObject([{ state: "open", failures: 2, threshold: 2, retryInMinutes: 30 }]);
    expect(status.summarizers[0]?.lastError).toContain("no server there");
    expect(status.retries).toHaveLength(2);
    expect(status.retries[0]).toMatchObject({ state: "due", attempts: 0, maxAttempts: 8, retryInMs: 0 });
    expect(JSON.parse(JSON.stringify(status))).toEqual(status);
    await remove();
  });
});

it("a compaction by hand that is aborted writes nothing", async () => {
  const store = createMemoryStore();
  await using sessions = agent(store, { summarizers: [{ summarize: () => new Promise(() => {}) }] });
  await using session = await sessions.open(key);
  await talk(session, 1, 5);
  const work = session.compact({ signal: AbortSignal.timeout(20) });
  await expect(work).rejects.toMatchObject({ code: "ABORTED" });
  expect((await allRecords(store)).some(({ type }) => type === "compaction")).toBe(false);
});

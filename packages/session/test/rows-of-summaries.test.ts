import { describe, expect, it } from "vitest";
import type { AgentTool, ChatRequest, StoredRecord, Summarizer } from "@throughline/core";

import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createChatSummarizer, createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { until } from "@throughline/test-kit";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { ofType, scriptedSessions, talk, textOf, usageOf, words, type ScriptedSessions } from "./scripted-sessions.ts";
import { echoTool } from "./session-fixture.ts";
import { allRecords, key, lostMessages, workingSummary, writeTool } from "./whole-turn-fixture.ts";

const works: Summarizer = {
  summarize: () => Promise.resolve({ summary: workingSummary(1), source: "works", usage: null }),
};
const fails: Summarizer = { summarize: () => Promise.reject(new Error("no server there")) };
/** Its summary names how many it has written. */
const writer = (written: {
  count: number;
}): NonNullable<NonNullable<AgentSessionsOptions["checkpoint"]>["writers"]>[number] => ({
  name: "cheap",
  write: () => {
    written.count += 1;
    return Promise.resolve(`{"summary": "They spoke, ${written.count}.", "keyDecisions": ["no red paint"]}`);
  },
});

interface Compacted extends ScriptedSessions {
  readonly records: readonly StoredRecord[];
  readonly compactions: readonly Readonly<Record<string, unknown>>[];
  /** Of the first compaction. */
  readonly details: Readonly<Record<string, unknown>>;
  /** The request that follows it. */
  readonly sent: string;
  readonly written: number;
}

/** Thirteen turns fill the window, and the fourteenth is compacted. A checkpoint is made at `checkpointAt` percent. */
async function compacted(
  given: Partial<AgentSessionsOptions> & { readonly checkpointAt?: number },
): Promise<Compacted> {
  const { checkpointAt, ...options } = given;
  const script = createScriptedModel();
  const written = { count: 0 };
  const fixture = scriptedSessions(script, {
    ...(checkpointAt === undefined
      ? {}
      : {
          checkpoint: {
            tokenThresholdPercents: [checkpointAt],
            turnThreshold: 1000,
            minTokensForGen: 0,
            writers: [writer(written)],
          },
        }),
    ...options,
  });
  await using session = await fixture.sessions.open(key);
  for (let at = 1; at <= 13; at++) {
    await talk(session, script, { turns: 1, from: at });
    if (checkpointAt !== undefined && 1100 * at >= 200 * checkpointAt)
      await until(() => fixture.all("checkpoint.written").length > 0);
  }
  expect((await session.runTurn(`And now? ${words}`)).outcome).toBe("done");
  const records = await allRecords(fixture.store);
  const compactions = ofType(records, "compaction");
  await fixture.sessions.close();
  const details = (compactions[0]?.["details"] ?? {}) as Readonly<Record<string, unknown>>;
  return { ...fixture, records, compactions, details, sent: textOf(script.requests.at(-1)), written: written.count };
}

describe("where a summary comes from", () => {
  const extractive = createExtractiveSummarizer();
  const rungs: readonly (readonly [string, boolean, Parameters<typeof compacted>[0]])[] = [
    ["checkpoint", false, { checkpointAt: 60, summarizers: [fails], extractive }],
    ["model", false, { checkpointAt: 25, summarizers: [fails, works], extractive }],
    ["older-checkpoint", true, { checkpointAt: 25, summarizers: [fails], extractive }],
    ["extractive", true, { summarizers: [fails], extractive }],
    ["stub", true, { summarizers: [fails], extractive: fails }],
  ];
  it.each(rungs)(
    "%s: the turn is answered, nothing is lost, and it is marked for retry: %s [C26, CMP-08, CMP-09, RTY-05, GRD-16]",
    async (source, needsRetry, given) => {
      const { all, compactions, details, records, sent } = await compacted(given);
      expect(compactions).toHaveLength(1);
      expect(details).toMatchObject({ source, needsRetry });
      expect(all("compaction.applied")).toMatchObject([{ source, needsRetry }]);
      const failed = all("compaction.rung-failed").map(({ rung }) => rung);
      const before: Readonly<Record<string, readonly string[]>> = {
        checkpoint: [],
        model: ["model"],
        "older-checkpoint": ["model"],
        extractive: ["model"],
        stub: ["model", "extractive"],
      };
      expect(failed).toEqual(before[source]);
      expect(lostMessages(records)).toEqual([]);
      expect(sent).toContain("And now?");
      if (source === "stub") expect(sent).toMatch(/\(\d+ messages.*are no longer shown and not summarized yet/);
    },
  );

  it("a checkpoint of half of the context is taken without a call, and what it does not cover is shown [CMP-06, CMP-07, C25]", async () => {
    let calls = 0;
    const counting: Summarizer = { summarize: (request) => ((calls += 1), works.summarize(request)) };
    const { records, sent, written } = await compacted({ checkpointAt: 60, summarizers: [counting] });
    expect([calls, written]).toEqual([0, 1]);
    expect(sent).toContain("They spoke, 1.");
    expect(sent).toContain("no red paint");
    const checkpoint = records.find(({ type }) => type === "checkpoint")?.record["checkpoint"] as {
      coversToId: string;
    };
    const covered = records.find(({ id }) => id === checkpoint.coversToId)?.seq ?? 0;
    const after = records.filter(({ seq, type }) => seq > covered && type === "message");
    expect(after.length).toBeGreaterThan(2);
    for (const { record } of after) {
      const [named] = /(?:Question|Answer) \d+|And now/.exec(JSON.stringify(record)) ?? [];
      if (named !== undefined) expect(sent).toContain(named);
    }
  });

  it("preferCheckpoint false asks for a fresh summary all the same", async () => {
    const { details } = await compacted({
      checkpointAt: 60,
      summarizers: [works],
      compaction: { preferCheckpoint: false, background: false },
    });
    expect(details).toMatchObject({ source: "model", provider: "works" });
  });

  it("a checkpoint of less than half of the context, or from before the last compaction, is not taken [C25]", async () => {
    expect((await compacted({ checkpointAt: 30, summarizers: [works] })).details).toMatchObject({ source: "model" });
    const script = createScriptedModel();
    const written = { count: 0 };
    const { sessions, store, all } = scriptedSessions(script, {
      summarizers: [works],
      checkpoint: { tokenThresholdPercents: [60], turnThreshold: 1000, minTokensForGen: 0, writers: [writer(written)] },
      compaction: { preferCheckpoint: true, background: false },
    });
    await using session = await sessions.open(key);
    await talk(session, script, { turns: 11 });
    await until(() => written.count === 1 && all("checkpoint.written").length === 1);
    await talk(session, script, { turns: 1, from: 12 });
    await session.compact();
    // A second cycle, in which no checkpoint is made.
    await talk(session, script, { turns: 7 });
    await session.compact();
    const [first, second] = ofType(await allRecords(store), "compaction");
    expect(first?.["details"]).toMatchObject({ source: "checkpoint" });
    expect(second?.["details"]).toMatchObject({ source: "model" });
    expect(second).not.toHaveProperty("checkpointId");
    await sessions.close();
  });
});

describe("a text that cannot stand for a conversation", () => {
  const good = workingSummary(5);
  const replies: readonly (readonly [string, ScriptedReply, string])[] = [
    ["is empty", { text: "" }, "empty"],
    ["is blank", { text: " \n \t" }, "empty"],
    ["is a refusal", { text: "I cannot help with that." }, "refusal"],
    ["is cut off", { text: good, stopReason: "length" }, "cut-off"],
    ["is a tool call", { calls: [{ id: "call_1", name: "read", arguments: {} }] }, "tool-call"],
  ];
  it.each(replies)("%s: the next one is asked", async (_, reply, problem) => {
    const small = createScriptedModel(reply);
    const first = createChatSummarizer({ model: { chat: small, modelId: "claude-haiku-4-5" } });
    const { all, details } = await compacted({ summarizers: [first, works] });
    expect(small.requests).toHaveLength(1);
    expect(all("compaction.rung-failed")).toMatchObject([{ rung: "model", index: 0, cause: { details: { problem } } }]);
    expect(details).toMatchObject({ source: "model", provider: "works" });
  });
});

describe("the record of a compaction", () => {
  it("says what it replaced, and names a checkpoint exactly where one is its summary", async () => {
    const byModel = await compacted({ checkpointAt: 25, summarizers: [works] });
    const byCheckpoint = await compacted({ checkpointAt: 60, summarizers: [works] });
    for (const { compactions, records, all } of [byModel, byCheckpoint]) {
      const [record = {}] = compactions;
      const applied = all("compaction.applied")[0];
      expect(record).toMatchObject({
        id: applied?.recordId,
        tokensBefore: applied?.tokensBefore,
        tokensAfter: applied?.tokensAfter,
      });
      const kept = records.findIndex(({ id }) => id === record["firstKeptEntryId"]);
      expect(record["messagesRemoved"]).toBe(records.slice(0, kept).filter(({ type }) => type === "message").length);
      for (const field of ["parentId", "timestamp", "summary"]) expect(typeof record[field]).toBe("string");
      expect(Number(record["tokensBefore"])).toBeGreaterThanOrEqual(15_000);
    }
    expect(byModel.compactions[0]?.["fromCheckpoint"] ?? false).toBe(false);
    expect(byModel.compactions[0]).not.toHaveProperty("checkpointId");
    const { id } = ofType(byCheckpoint.records, "checkpoint")[0] ?? {};
    expect(byCheckpoint.compactions[0]).toMatchObject({ fromCheckpoint: true, checkpointId: id });
  });

  it("is one commit with the entry, whose totals are estimated anew", async () => {
    const script = createScriptedModel();
    const { sessions, store } = scriptedSessions(script, { summarizers: [works] });
    await using session = await sessions.open(key);
    await talk(session, script, { turns: 10 });
    const before = await store.load(session.ref);
    expect(before?.entry).toMatchObject({ totalTokensFresh: true });
    expect(before?.entry.compactionCount ?? 0).toBe(0);
    const result = await session.compact();
    const after = await store.load(session.ref);
    if (result.kind !== "compacted") throw new Error(result.kind);
    expect(after?.head.headId).toBe(result.recordId);
    expect(after?.entry).toMatchObject({
      compactionCount: 1,
      totalTokens: result.tokensAfter,
      totalTokensFresh: false,
    });
    expect(after?.entry.totalTokens).toBeLessThan(Number(before?.entry.totalTokens));
    // It grows by one with every change of the entry.
    expect(after?.revision).toBe(Number(before?.revision) + 1);
    await sessions.close();
  });

  it("names the files that were read and modified", async () => {
    const script = createScriptedModel();
    const readTool: AgentTool = {
      definition: { name: "read", description: "Reads a file.", inputSchema: { type: "object" } },
      run: () => words,
    };
    const { sessions, store } = scriptedSessions(script, {
      summarizers: [works],
      tools: [readTool, writeTool, echoTool],
    });
    await using session = await sessions.open(key);
    script.push(
      {
        calls: [
          { id: "call_1", name: "read", arguments: { path: "src/read.ts" } },
          { id: "call_2", name: "read", arguments: { path: "src/both.ts" } },
          { id: "call_3", name: "write", arguments: { path: "src/both.ts", content: "x" } },
        ],
      },
      "Done.",
    );
    await session.runTurn("Change it");
    await talk(session, script, { turns: 12 });
    await session.compact();
    const [{ details } = {}] = ofType(await allRecords(store), "compaction");
    expect(details).toMatchObject({ readFiles: ["src/read.ts"], modifiedFiles: ["src/both.ts"] });
    await sessions.close();
  });
});

describe("a conversation that was compacted, as the model gets it", () => {
  it(
    "is the summary of the user, an acknowledgement where the user speaks next, and the rest [GRD-15, C29]",
    { tags: ["slow"] },
    async () => {
      const shapes = new Set<string>();
      for (let turns = 3; turns <= 16; turns++) {
        const script = createScriptedModel();
        const { sessions } = scriptedSessions(script, {
          summarizers: [works],
          compaction: { background: false, minMessages: 2 },
        });
        const session = await sessions.open(key);
        for (let at = 1; at <= turns; at++) {
          const calls = [{ id: `call_${at}`, name: "echo", arguments: { text: words.slice(0, 2000) } }];
          script.push({ calls, usage: usageOf(900 * at) }, { text: `Answer ${at}.`, usage: usageOf(900 * at + 400) });
          await session.runTurn(`Question ${at}: ${words.slice(0, 800)}`);
        }
        await session.compact();
        // The script refuses results without calls, and roles that come twice in a row.
        expect((await session.runTurn("And now?")).text).toBe("ok");
        const messages = (script.requests.at(-1)?.messages ?? []) as { role: string; content: { text?: string }[] }[];
        const [summary, next, third] = messages;
        expect(JSON.stringify(summary)).toContain("[Previous conversation summary]\\nTopics: number 1.");
        const isAcknowledged = JSON.stringify(next).includes("Understood, I have the context.");
        expect([summary?.role, next?.role]).toEqual(["user", "assistant"]);
        if (isAcknowledged) expect(third?.role).toBe("user");
        expect(messages.every(({ role }, index) => role !== messages[index - 1]?.role)).toBe(true);
        const text = JSON.stringify(messages);
        for (const [, id] of text.matchAll(/"tool_use_id":"(\w+)"/g))
          expect(text).toContain(`"type":"tool_use","id":"${id}"`);
        shapes.add(isAcknowledged ? "acknowledged" : "answered");
        await sessions.close();
      }
      expect([...shapes].toSorted()).toEqual(["acknowledged", "answered"]);
    },
  );

  it("keeps calls with their results, and goes on where one turn alone fills the window", async () => {
    const script = createScriptedModel();
    const { sessions, store, all } = scriptedSessions(script, { summarizers: [works] });
    await using session = await sessions.open(key);
    for (let at = 1; at <= 40; at++) {
      const calls = [{ id: `call_${at}`, name: "echo", arguments: { text: words } }];
      const sized = (request: ChatRequest): ScriptedReply => {
        return { text: `Step ${at}.`, calls, usage: usageOf(Math.round(JSON.stringify(request.messages).length / 4)) };
      };
      script.push(sized);
    }
    script.push("All done.");
    // One question, forty calls of a thousand tokens each: no user message to cut at.
    const turn = await session.runTurn("Read everything");
    expect(turn.text).toBe("All done.");
    expect(all("compaction.applied").length).toBeGreaterThan(1);
    for (const { keptMessages } of all("compaction.planned")) expect(keptMessages).toBeGreaterThan(0);
    expect(lostMessages(await allRecords(store))).toEqual([]);
    // The request that was cut off is quoted.
    expect(textOf(script.requests.at(-1))).toContain("Read everything");
    await sessions.close();
  });
});

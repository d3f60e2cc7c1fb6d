import { describe, expect, it } from "vitest";
import type { Summarizer } from "@throughline/core";
import type { Session } from "@throughline/session";
import { until } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedAgents, talk, thousandTokens } from "./scripted-agents.ts";
import { allRecords, key, lostMessages, workingSummary, writeTool } from "./whole-turn-fixture.ts";

/** A summarizer that answers when it is let. */
function gated(): { readonly summarizer: Summarizer; asked(): number; open(): void } {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const summarizer: Summarizer = {
    async summarize() {
      asked += 1;
      await gate.promise;
      return { summary: workingSummary(asked), source: "slow", usage: null };
    },
  };
  return { summarizer, asked: () => asked, open: () => gate.resolve() };
}

const shown = async (session: Session): Promise<string> => JSON.stringify((await session.messages()).messages);

describe("a compaction that is begun before it is due", () => {
  it(
    "holds up no turn, swaps what it summarized and nothing else, and is the only one",
    { tags: ["slow"] },
    async () => {
      const script = createScriptedModel();
      const slow = gated();
      const { sessions, store, names } = scriptedAgents(script, { summarizers: [slow.summarizer] });
      await using session = await sessions.open(key);
      await talk(session, script, 1, 12);
      expect(slow.asked()).toBe(0);
      // Each of these turns ends while the summary is in the making.
      await talk(session, script, 13, 13);
      await until(() => slow.asked() === 1);
      expect([slow.asked(), names(/^compaction\./)]).toEqual([1, ["compaction.begun", "compaction.planned"]]);
      const turn = session.runTurn("A short one.");
      await turn;
      slow.open();
      await until(() => names(/^compaction\./).at(-1) === "compaction.applied");
      expect(names(/^compaction\./).at(-1)).toBe("compaction.applied");
      const now = await shown(session);
      expect(now).toContain("Topics: number 1.");
      expect(now).toContain("A short one.");
      expect(now).toContain("Question 13:");
      // Of what was summarized the first request alone is quoted, and its beginning only.
      expect(now).not.toContain("Question 2:");
      script.push("So it is.");
      await session.runTurn("Go on.");
      expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("Topics: number 1.");
      await sessions.close();
      const records = await allRecords(store);
      expect(lostMessages(records)).toEqual([]);
      expect([slow.asked(), records.filter(({ type }) => type === "compaction").length]).toEqual([1, 1]);
      expect(session.entry.compactionCount).toBe(1);
    },
  );

  it("is taken by the next call of a turn that runs when it is ready", { tags: ["slow"] }, async () => {
    const script = createScriptedModel();
    const slow = gated();
    const { sessions, events } = scriptedAgents(script, {
      summarizers: [slow.summarizer],
      tools: [writeTool],
      memoryFlush: { enabled: false },
    });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 12);
    script.push((): { calls: { id: string; name: string; arguments: Record<string, unknown> }[] } => {
      slow.open();
      return { calls: [{ id: "call_1", name: "write", arguments: { path: "a" } }] };
    }, "Written.");
    await session.runTurn(`Question 13: ${thousandTokens}`);
    await until(() => events.some(({ name }) => name === "compaction.applied"));
    expect(slow.asked()).toBe(1);
    expect(events.filter(({ name }) => name === "compaction.applied")).toHaveLength(1);
    expect(await shown(session)).toContain("Topics: number 1.");
    await sessions.close();
  });

  it("is waited for when it is due, and not begun a second time", async () => {
    const script = createScriptedModel();
    const slow = gated();
    const { sessions, names } = scriptedAgents(script, { summarizers: [slow.summarizer] });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 13);
    setTimeout(() => slow.open(), 20);
    await talk(session, script, 14, 14);
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("Topics: number 1.");
    expect([slow.asked(), names(/applied/).length]).toEqual([1, 1]);
    await sessions.close();
  });

  it("that no model wrote waits until it is due: then it is there, and nobody is asked again", async () => {
    const script = createScriptedModel();
    let asked = 0;
    const down = { summarize: () => Promise.reject(new Error(`no server there ${(asked += 1)}`)) };
    const { sessions, names, events } = scriptedAgents(script, { summarizers: [down] });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 13);
    await until(() => asked === 1);
    expect([asked, names(/applied/)]).toEqual([1, []]);
    expect(await shown(session)).toContain("Question 1:");
    await talk(session, script, 14, 14);
    expect(asked).toBe(1);
    expect(events.find(({ name }) => name === "compaction.applied")).toMatchObject({ source: "extractive" });
    await sessions.close();
  });

  it("is not paid for twice: a process that comes after one that ended leaves it for when it is due", async () => {
    const script = createScriptedModel();
    const slow = gated();
    const first = scriptedAgents(script, { summarizers: [slow.summarizer] });
    {
      await using session = await first.sessions.open(key);
      await talk(session, script, 1, 13);
      await until(() => slow.asked() === 1);
      await first.sessions.close();
    }
    const second = scriptedAgents(script, { store: first.store, summarizers: [slow.summarizer] });
    await using session = await second.sessions.open(key);
    script.push({ text: "Yes.", usage: { input: 14_400, output: 10, cacheRead: 0, cacheWrite: 0 } });
    await session.runTurn("And?");
    expect([slow.asked(), second.names(/^compaction\.begun/)]).toEqual([1, []]);
    slow.open();
    await talk(session, script, 14, 14);
    expect([slow.asked(), second.names(/applied/).length]).toEqual([2, 1]);
    await second.sessions.close();
  });

  it("comes after the flush: the agent is asked first [FLU-19, C24]", { tags: ["slow"] }, async () => {
    const script = createScriptedModel();
    const slow = gated();
    slow.open();
    const { sessions, names } = scriptedAgents(script, {
      summarizers: [slow.summarizer],
      tools: [writeTool],
      memoryFlush: { showInSystemPrompt: false },
    });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 16);
    const order = names(/^(?:flush\.asked|compaction\.(?:begun|applied))$/);
    expect(order.slice(0, 2)).toEqual(["flush.asked", "compaction.applied"]);
    await sessions.close();
  });

  it("that another process was faster than is left, and what is due later is summarized", async () => {
    const script = createScriptedModel();
    const slow = gated();
    const { sessions, store, names } = scriptedAgents(script, { summarizers: [slow.summarizer] });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 13);
    const elsewhere = scriptedAgents(createScriptedModel(), {
      store,
      summarizers: [{ summarize: () => Promise.resolve({ summary: workingSummary(9), source: "other", usage: null }) }],
    });
    await using other = await elsewhere.sessions.open(key);
    expect(await other.compact()).toMatchObject({ kind: "compacted" });
    slow.open();
    await until(() => names(/^compaction\./).at(-1) === "compaction.superseded");
    expect((await allRecords(store)).filter(({ type }) => type === "compaction")).toHaveLength(1);
    script.push("Yes.");
    expect((await session.runTurn("And now?")).text).toBe("Yes.");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("Topics: number 9.");
    await sessions.close();
    await elsewhere.sessions.close();
  });

  it("can be switched off", { tags: ["slow"] }, async () => {
    const script = createScriptedModel();
    const slow = gated();
    const { sessions } = scriptedAgents(script, { summarizers: [slow.summarizer], compaction: { background: false } });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 13);
    expect(slow.asked()).toBe(0);
    await sessions.close();
  });

  it("settings that the window does not leave as they are, are said once for each window", async () => {
    const script = createScriptedModel();
    const { sessions, events } = scriptedAgents(script, { compaction: { reserveTokens: 30_000 } });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 3);
    expect(events.filter(({ name }) => name === "compaction.repaired")).toMatchObject([
      { repairs: [{ key: "reserveTokens", given: 30_000, used: 5000 }] },
    ]);
    await sessions.close();
  });
});

import { describe, expect, it } from "vitest";
import { type SessionStore, type Summarizer, ThroughlineError } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { aroundCalls } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedAgents, talk, thousandTokens } from "./scripted-agents.ts";
import { allRecords, key, lostMessages, workingSummary } from "./whole-turn-fixture.ts";

const says = (summary: string): Summarizer => ({
  summarize: () => Promise.resolve({ summary, source: "odd", usage: null }),
});

const throwing: Summarizer = {
  summarize() {
    // eslint-disable-next-line no-throw-literal -- what others throw need not be an error.
    throw "not an error";
  },
};

const hostile: Readonly<Record<string, Summarizer>> = {
  "ignores the abort and never answers": { summarize: () => new Promise(() => {}) },
  "gives ten megabytes": says("a word and ".repeat(1_000_000)),
  "gives back what it was given": {
    summarize: ({ text }) => Promise.resolve({ summary: text, source: "e", usage: null }),
  },
  "calls a tool": says('{"name": "read", "arguments": {"path": "a'),
  "calls a tool in tags": says("I will look.\n<function=read>{}</function>"),
  "calls a tool as an action": says("Action: read\nAction Input: a.ts"),
  "throws what is no error": throwing,
  "rejects with nothing": { summarize: () => Promise.reject(undefined as unknown as Error) },
  "gives no text": { summarize: () => Promise.resolve({} as never) },
  "gives nothing": { summarize: () => Promise.resolve(null as never) },
  "gives a lone surrogate and control characters": says("\ud800\u0000\u001b[2J"),
};

describe("a summarizer", () => {
  it.each(Object.keys(hostile))("that %s fails no turn, and what follows it gives the summary", async (name) => {
    const script = createScriptedModel();
    const { sessions, store, events } = scriptedAgents(script, {
      summarizers: [hostile[name] as Summarizer],
      compaction: { deadlineMs: 30 },
    });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 15);
    const applied = events.find((event) => event.name === "compaction.applied");
    expect(applied).toMatchObject({ source: "extractive", needsRetry: true });
    expect(lostMessages(await allRecords(store))).toEqual([]);
    expect(JSON.stringify(await allRecords(store)).length).toBeLessThan(400_000);
    await sessions.close();
  });

  it("that answers after the turn and the session ended changes nothing", async () => {
    const script = createScriptedModel();
    const late = Promise.withResolvers<void>();
    const slow: Summarizer = {
      async summarize() {
        await late.promise;
        return { summary: workingSummary(1), source: "late", usage: null };
      },
    };
    const { sessions, store } = scriptedAgents(script, { summarizers: [slow] });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 13);
    const stopped = new AbortController();
    const turn = session.runTurn(`Question 14: ${thousandTokens}`, { signal: stopped.signal });
    setTimeout(() => stopped.abort(), 10);
    expect((await turn).outcome).toBe("aborted");
    await sessions.close();
    const before = await allRecords(store);
    late.resolve();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await allRecords(store)).toEqual(before);
  });
});

/** A store that refuses compactions as long as it is broken. */
function failing(
  store: SessionStore,
  code: "STORE_FULL" | "STORE_IO",
): { readonly store: SessionStore; isBroken: boolean } {
  const state = { store, isBroken: true };
  state.store = aroundCalls(store, ({ name, args, run }) => {
    const isRefused = state.isBroken && name === "append" && JSON.stringify(args[1]).includes('"type":"compaction"');
    return isRefused ? Promise.reject(new ThroughlineError(code, "the disk", { outcome: "not-applied" })) : run();
  });
  return state;
}

describe("a store that fails in the middle of a compaction", () => {
  it.each(["STORE_FULL", "STORE_IO"] as const)(
    "with %s ends the turn with that error, and the next one goes on",
    async (code) => {
      const script = createScriptedModel();
      const data = createMemoryStore();
      const disk = failing(data, code);
      const { sessions } = scriptedAgents(script, {
        store: disk.store,
        summarizers: [says(workingSummary(1))],
        compaction: { background: false },
      });
      await using session = await sessions.open(key);
      await talk(session, script, 1, 13);
      await expect(session.runTurn(`Question 14: ${thousandTokens}`)).rejects.toMatchObject({ code });
      expect((await allRecords(data)).some(({ type }) => type === "compaction")).toBe(false);
      disk.isBroken = false;
      script.push("It goes on.");
      expect((await session.runTurn("And now?")).text).toBe("It goes on.");
      expect(lostMessages(await allRecords(data))).toEqual([]);
      await sessions.close();
    },
  );

  it("beside the turns is an event and no more: the turns go on", async () => {
    const script = createScriptedModel();
    const data = createMemoryStore();
    const { store } = failing(data, "STORE_IO");
    const { sessions, events } = scriptedAgents(script, { store, summarizers: [says(workingSummary(1))] });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 13);
    // The compaction runs beside the turns, so it may end after them.
    await expect.poll(() => events.map(({ name }) => name)).toContain("compaction.left");
    script.push({ text: "Yes.", usage: { input: 14_000, output: 10, cacheRead: 0, cacheWrite: 0 } });
    expect((await session.runTurn("And?")).outcome).toBe("done");
    await sessions.close();
  });
});

describe("a window", () => {
  it("that shrinks from 200,000 to 8,000 between two turns is kept to by the next request", async () => {
    const script = createScriptedModel();
    const { sessions, store, events } = scriptedAgents(script, {
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000, maxOutputTokens: 500 },
      summarizers: [says(workingSummary(1))],
    });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 30);
    const small = { chat: script, modelId: "claude-small", windowTokens: 8000, maxOutputTokens: 500 };
    await session.setModel(small);
    script.push("Short.");
    expect((await session.runTurn("And now?")).text).toBe("Short.");
    const { gauge } = await session.messages();
    expect(gauge.tokens).toBeLessThan(8000);
    expect(JSON.stringify(script.requests.at(-1)?.messages).length / 4).toBeLessThan(8000);
    expect(events.filter(({ name }) => name === "compaction.applied")).toHaveLength(1);
    expect(lostMessages(await allRecords(store))).toEqual([]);
    await sessions.close();
  });

  it("that is smaller than one message of the user is an error of that turn, and the session goes on", async () => {
    const script = createScriptedModel();
    const { sessions, store } = scriptedAgents(script, { summarizers: [says(workingSummary(1))] });
    await using session = await sessions.open(key);
    await talk(session, script, 1, 3);
    let asked = 0;
    script.push(() => {
      asked += 1;
      return { text: "How did it fit?" };
    });
    const outcome = await session.runTurn(thousandTokens.repeat(30)).then(
      () => "answered",
      (error: unknown) => (error as ThroughlineError).code,
    );
    expect([asked, outcome]).toEqual([0, "CONTEXT_OVERFLOW"]);
    expect(lostMessages(await allRecords(store))).toEqual([]);
    await sessions.close();
  });
});

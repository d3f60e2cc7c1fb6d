import { describe, expect, it } from "vitest";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel, type ScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import {
  createManualClock,
  scriptedSessions,
  talk,
  usageOf,
  words,
  type ScriptedSessions,
} from "./scripted-sessions.ts";
import { echoTool } from "./session-fixture.ts";
import { allRecords, key, writeTool } from "./whole-turn-fixture.ts";

type Flush = NonNullable<AgentSessionsOptions["memoryFlush"]>;

/** A quarter to midnight in UTC: elsewhere it is another day. */
const nowMs = Date.UTC(2026, 2, 1, 23, 45);

interface Flushed extends ScriptedSessions {
  readonly script: ScriptedModel;
  /** What the provider got of the call after the prompt had this size: its system text and its last message. */
  at(tokens: number): Promise<{ readonly system: string; readonly last: string }>;
}

/** A window of 200,000 tokens, of which 170,000 may be used, and an agent that writes files. */
function withFlush(memoryFlush: Flush | null, given: Partial<AgentSessionsOptions> = {}): Flushed {
  const script = createScriptedModel();
  const fixture = scriptedSessions(script, {
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000, maxOutputTokens: 500 },
    clock: createManualClock(nowMs),
    memoryFlush: memoryFlush ?? {},
    ...given,
  });
  return {
    ...fixture,
    script,
    async at(tokens) {
      const session = await fixture.sessions.open(key);
      script.push({ text: "Yes.", usage: usageOf(tokens) });
      await session.runTurn("And?");
      const before = script.requests.length;
      script.push({ text: "Yes again.", usage: usageOf(tokens + 20) });
      await session.runTurn("And now?");
      const request = script.requests[before];
      const last = request?.messages.at(-1) as { readonly content: readonly { readonly text?: string }[] };
      return { system: request?.system ?? "", last: last.content.map(({ text = "" }) => text).join("\n--\n") };
    },
  };
}

const mark = "[SYSTEM: memory flush]";

describe("a memory flush by default", () => {
  it(
    "says so in the system text from 50 and from 75 %, with the true figure [FLU-01, FLU-16, C31]",
    { tags: ["slow"] },
    async () => {
      const { at, sessions } = withFlush(null, {});
      expect((await at(90_000)).system).toBe("Be kind.");
      expect((await at(104_000)).system).toBe("Be kind.\n\nContext at 52%. Consider noting key decisions to memory.");
      expect((await at(154_500)).system).toMatch(
        /^Be kind\.\n\nContext at 77%\. Write important context to memory\/2026-03-0[12]\.md now\.$/,
      );
      await sessions.close();
    },
  );

  it("asks by a message of four lines before the compaction, and says where the threshold was moved to [FLU-01, FLU-04, C30, C31]", async () => {
    const { at, sessions, all } = withFlush({ timeZone: "UTC" });
    const { last } = await at(168_000);
    // One marker, which is the text's own; the date is that of the place.
    expect(last).toBe(
      [
        "And now?",
        "--",
        "[SYSTEM: pre-compaction memory flush]",
        "Context at 84%. Compaction imminent.",
        "Store durable memories now (use memory/2026-03-01.md; create memory/ if needed).",
        "If nothing to store, reply with NO_REPLY.",
      ].join("\n"),
    );
    expect(last).not.toContain(mark);
    expect(all("flush.asked")).toMatchObject([{ askedPercent: 90, why: "crossed" }]);
    // 170,000 less 4,000 is 83 % of the window.
    expect(all("flush.repaired")).toMatchObject([
      { repairs: [{ askedPercent: 90, usedPercent: 83, reason: "not below the compaction point" }] },
    ]);
    await sessions.close();
  });

  it("is on where there are tools, and not when it is switched off", async () => {
    const off = withFlush({ enabled: false });
    expect(await off.at(168_000)).toEqual({ system: "Be kind.", last: "And now?" });
    expect(off.all("flush.asked")).toEqual([]);
    await off.sessions.close();
    const script = createScriptedModel();
    const events: string[] = [];
    // Nothing is said of a flush.
    const sessions = createAgentSessions({
      store: createMemoryStore(),
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000 },
      tools: [echoTool, writeTool],
      summarizers: [],
      checkpoint: { enabled: false },
      onEvent: ({ name }) => events.push(name),
    });
    const session = await sessions.open(key);
    script.push({ text: "Yes.", usage: usageOf(168_000) });
    await session.runTurn("And?");
    await session.runTurn("And now?");
    expect(events).toContain("flush.asked");
    await sessions.close();
  });
});

describe("the settings of a memory flush", () => {
  it("showInSystemPrompt false leaves the system text as it is, and asks all the same", async () => {
    const { at, sessions } = withFlush({ showInSystemPrompt: false });
    expect((await at(154_500)).system).toBe("Be kind.");
    expect((await at(168_000)).last).toContain("[SYSTEM: pre-compaction memory flush]");
    await sessions.close();
  });

  it("thresholds of one's own take the place of those three", async () => {
    const prompt = "At {percent} write to memory/YYYY-MM-DD.md.";
    const { at, sessions } = withFlush({ thresholds: [{ percent: 30, prompt, injectAs: "system" }] });
    expect((await at(62_000)).system).toMatch(/^Be kind\.\n\nAt 31 write to memory\/2026-03-0[12]\.md\.$/);
    expect((await at(168_000)).last).toBe("And now?");
    await sessions.close();
  });

  const zones: readonly (readonly [string, string])[] = [
    ["UTC", "2026-03-01"],
    ["Pacific/Auckland", "2026-03-02"],
    ["America/Los_Angeles", "2026-03-01"],
    ["Asia/Tokyo", "2026-03-02"],
  ];
  it.each(zones)("the date is the local one of %s [FLU-17, C31]", async (timeZone, date) => {
    const { at, sessions } = withFlush({ timeZone });
    expect((await at(168_000)).last).toContain(`(use memory/${date}.md; create memory/ if needed)`);
    await sessions.close();
  });
});

describe("the delivery of a prompt", () => {
  const prompt = "Note what matters in memory/.";
  const deliveries: readonly (readonly [string, NonNullable<Flush["thresholds"]>, string, string])[] = [
    ["system", [{ percent: 40, prompt, injectAs: "system" }], `Be kind.\n\n${prompt}`, "And now?"],
    ["user", [{ percent: 40, prompt, injectAs: "user" }], "Be kind.", `And now?\n--\n${prompt}`],
    ["marked", [{ percent: 40, prompt, injectAs: "marked" }], "Be kind.", `And now?\n--\n${mark}\n${prompt}`],
    ["none, which is marked", [{ percent: 40, prompt }], "Be kind.", `And now?\n--\n${mark}\n${prompt}`],
  ];
  it.each(deliveries)("%s [FLU-10, FLU-11, FLU-12, C30]", async (_, thresholds, system, last) => {
    const { at, sessions, store } = withFlush({ thresholds });
    expect(await at(82_000)).toEqual({ system, last });
    // No message of it is taken for the user's.
    const sources = (await allRecords(store)).flatMap(({ type, record }) =>
      type === "message" ? [(record["message"] as { source?: string }).source] : [],
    );
    expect(sources.filter((source) => source === "flush")).toHaveLength(system === "Be kind." ? 1 : 0);
    await sessions.close();
  });

  it("never shows two markers: a prompt that brings its own gets no other [C30]", async () => {
    const own = "[SYSTEM: before you forget]\nNote it.";
    const { at, sessions } = withFlush({ thresholds: [{ percent: 40, prompt: own, injectAs: "marked" }] });
    expect((await at(82_000)).last).toBe(`And now?\n--\n${own}`);
    await sessions.close();
  });
});

describe("what the entry keeps of a flush", () => {
  it("when the agent was asked, and the cycle, which a compaction ends", async () => {
    const script = createScriptedModel();
    const clock = createManualClock(nowMs);
    const { sessions, all } = scriptedSessions(script, { memoryFlush: {}, clock });
    const session = await sessions.open(key);
    expect(session.entry).not.toHaveProperty("memoryFlushAt");
    const cycle = async (): Promise<unknown> => {
      const asked = all("flush.asked").length;
      await talk(session, script, { turns: 13 });
      script.push("NO_REPLY", "Answered.");
      await session.runTurn(`And now? ${words}`);
      expect(all("flush.asked")).toHaveLength(asked + 1);
      const { memoryFlushAt, memoryFlushCompactionCount } = session.entry;
      return [memoryFlushAt, memoryFlushCompactionCount];
    };
    expect(await cycle()).toEqual([nowMs, 0]);
    clock.advance(60_000);
    expect(await cycle()).toEqual([nowMs + 60_000, 1]);
    await sessions.close();
  });

  const workspaceRoot = "/home/ann/work";
  const calls: readonly (readonly [string, readonly ScriptedReply["calls"][], boolean, boolean])[] = [
    ["nothing", [], false, false],
    ["write src/a.ts", [[{ id: "c", name: "write", arguments: { path: "src/a.ts" } }]], true, false],
    ["write memory/x.md", [[{ id: "c", name: "write", arguments: { path: "memory/x.md" } }]], true, true],
    ["edit ./memory/x.md", [[{ id: "c", name: "edit", arguments: { path: "./memory/x.md" } }]], true, true],
    [
      "write an absolute path",
      [[{ id: "c", name: "write", arguments: { path: `${workspaceRoot}/memory/x.md` } }]],
      true,
      true,
    ],
    ["write another memory", [[{ id: "c", name: "write", arguments: { path: "/tmp/memory/x.md" } }]], true, false],
    ["write memory/../x.md", [[{ id: "c", name: "write", arguments: { path: "memory/../x.md" } }]], true, false],
    ["another tool", [[{ id: "c", name: "echo", arguments: { text: "memory/x.md" } }]], false, false],
  ];
  it.each(calls)("what the agent did: %s [C32]", async (_, replies, flushWrote, flushActioned) => {
    const script = createScriptedModel();
    const editTool = { ...writeTool, definition: { ...writeTool.definition, name: "edit" } };
    const { sessions, all } = scriptedSessions(script, {
      memoryFlush: { workspaceRoot },
      tools: [echoTool, writeTool, editTool],
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000, maxOutputTokens: 500 },
    });
    const session = await sessions.open(key);
    script.push({ text: "Yes.", usage: usageOf(168_000) });
    await session.runTurn("And?");
    for (const made of replies) script.push({ calls: made ?? [] });
    script.push("All is said.");
    await session.runTurn("And now?");
    expect(all("flush.ended")).toMatchObject([{ flushWrote, flushActioned }]);
    expect(session.entry["memoryFlush"]).toMatchObject({ flushWrote, flushActioned });
    await sessions.close();
  });
});

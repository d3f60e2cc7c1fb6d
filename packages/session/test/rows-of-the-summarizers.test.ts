import { describe, expect, it } from "vitest";
import { hasErrorCode } from "@throughline/core";
import { createProviderSimulator, type SimulatedReply } from "@throughline/testing";
import type { AgentSession } from "../src/whole-turn/agent-session.ts";
import { createChatSummarizer, createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { until } from "@throughline/test-kit";
import { providerCases } from "./provider-cases.ts";
import { createScriptedModel, type ScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { ofType, scriptedSessions, talk, usageOf } from "./scripted-sessions.ts";
import { echoTool } from "./session-fixture.ts";
import { allRecords, key, workingSummary } from "./whole-turn-fixture.ts";

const smallModelId = "claude-haiku-4-5";
/** The conversation that a summarizer was given. */
const conversationOf = (request: ScriptedModel["requests"][number] | undefined): string =>
  /<conversation>\n([^]*)\n<\/conversation>/.exec(promptOf(request))?.[1] ?? "";

function promptOf(request: ScriptedModel["requests"][number] | undefined): string {
  const [message] = (request?.messages ?? []) as readonly { readonly content: unknown }[];
  return typeof message?.content === "string" ? message.content : JSON.stringify(message?.content ?? "");
}

const tooLong: ScriptedReply = {
  error: Object.assign(new Error("prompt is too long: 9000 tokens > 3000 maximum"), { status: 400 }),
};

/** What a summarizer over a model is given when a session of so many turns is compacted. */
async function summarized(
  small: ScriptedModel,
  {
    turns,
    windowTokens = null,
    tokensEach = 1100,
  }: { turns: number; windowTokens?: number | null; tokensEach?: number },
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const script = createScriptedModel();
  const { sessions, store } = scriptedSessions(script, {
    model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000, maxOutputTokens: 500 },
    summarizers: [createChatSummarizer({ model: { chat: small, modelId: smallModelId, windowTokens } })],
    compaction: { background: false, keepRecentTokens: 1000, minMessages: 2 },
  });
  const session = await sessions.open(key);
  await talk(session, script, { turns, tokensEach });
  await session.compact();
  const compactions = ofType(await allRecords(store), "compaction");
  await sessions.close();
  return compactions;
}

describe("what a summary model is asked", () => {
  it("is a summary under four headings, as plain text of at most 2000 tokens", { tags: ["slow"] }, async () => {
    const budgets: unknown[] = [];
    const small = createScriptedModel((request) => {
      budgets.push(request.maxOutputTokens);
      return { text: workingSummary(1) };
    });
    await summarized(small, { turns: 13 });
    const prompt = promptOf(small.requests[0]);
    for (const heading of [/Topics/, /decisions/i, /Current state/, /Open items/, /plain text/])
      expect(prompt).toMatch(heading);
    expect(budgets).toEqual([2000]);
    expect(small.requests[0]?.tools).toBeUndefined();
  });

  it("has both ends of a long message, and of what tools gave a mark, except of failures", async () => {
    const small = createScriptedModel(workingSummary(1));
    const script = createScriptedModel();
    const failing = {
      definition: { name: "fail", description: "Fails.", inputSchema: { type: "object" } },
      run: () => {
        throw new Error("the quay is closed");
      },
    };
    const { sessions } = scriptedSessions(script, {
      tools: [echoTool, failing],
      summarizers: [createChatSummarizer({ model: { chat: small, modelId: smallModelId }, messageChars: 2000 })],
    });
    const session = await sessions.open(key);
    script.push(
      {
        calls: [
          { id: "call_1", name: "echo", arguments: { text: "a secret of the tool" } },
          { id: "call_2", name: "fail", arguments: {} },
        ],
      },
      "Done.",
    );
    await session.runTurn(`BEGIN ${"m".repeat(5000)} END`);
    await talk(session, script, { turns: 9 });
    await session.compact();
    const text = conversationOf(small.requests[0]);
    // What is kept of 5010 characters is 2000 of them.
    expect(text).toMatch(/\[User\]: BEGIN m{994}\n {2}\[… 3010 characters left out …\]\n {2}m{996} END/);
    expect(text).toMatch(/\[Tool result echo\]: \(26 characters\)\n/);
    expect(text).not.toContain("echo: a secret of the tool");
    expect(text).toMatch(/\[Tool result.*failed\]: .*the quay is closed/);
    await sessions.close();
  });

  it("is three quarters of what was too long for it, at most twice", { tags: ["slow"] }, async () => {
    const small = createScriptedModel(tooLong, tooLong, ...Array.from({ length: 8 }, () => workingSummary(1)));
    const [record] = await summarized(small, { turns: 40 });
    expect(record?.["details"]).toMatchObject({ source: "model" });
    const [whole = 0, second = 0, third = 0] = small.requests.map((request) => conversationOf(request).length);
    expect(second / whole).toBeGreaterThan(0.65);
    expect(second / whole).toBeLessThanOrEqual(0.76);
    expect(third / whole).toBeGreaterThan(0.48);
    expect(third / whole).toBeLessThanOrEqual(0.57);
    // What the smaller part left out is in the next one.
    const [first, ...rest] = small.requests.map((request) =>
      [...conversationOf(request).matchAll(/Question (\d+)/g)].map(([, at]) => at),
    );
    expect(rest.slice(1).flat()).toEqual(first);
    const never = createScriptedModel(tooLong, tooLong, tooLong, workingSummary(1));
    const [failed] = await summarized(never, { turns: 40 });
    expect(failed?.["details"]).toMatchObject({ source: "stub" });
    expect(never.requests).toHaveLength(3);
  });

  it("is never under 500 tokens", async () => {
    const script = createScriptedModel();
    const small = createScriptedModel(tooLong, tooLong, ...Array.from({ length: 8 }, () => workingSummary(1)));
    const { sessions } = scriptedSessions(script, {
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 200_000 },
      summarizers: [createChatSummarizer({ model: { chat: small, modelId: smallModelId } })],
      compaction: { background: false, keepRecentTokens: 100, minMessages: 2 },
    });
    const session = await sessions.open(key);
    for (let at = 1; at <= 14; at++) {
      script.push({ text: `Answer ${at}.`, usage: usageOf(100 + 60 * at) });
      await session.runTurn(`Question ${at}: ${"these are the words of it ".repeat(7)}`);
    }
    await session.compact();
    const [whole = 0, second = 0, third = 0] = small.requests.map((request) =>
      Math.ceil(conversationOf(request).length / 4),
    );
    expect(whole).toBeGreaterThan(560);
    expect(whole).toBeLessThan(850);
    // Three quarters of it twice would be fewer.
    expect(whole * 0.5625).toBeLessThan(480);
    expect(Math.min(second, third)).toBeGreaterThan(430);
    expect(third).toBeLessThanOrEqual(510);
    await sessions.close();
  });

  it("comes in parts of 0.4 of its window with a margin, each on top of the summary of those before", async () => {
    const windowTokens = 16_000;
    const small = createScriptedModel(...Array.from({ length: 20 }, (_, index) => workingSummary(index + 1)));
    const [record] = await summarized(small, { turns: 60, windowTokens });
    const parts = small.requests.map((request) => conversationOf(request));
    expect(parts.length).toBeGreaterThan(2);
    const most = (windowTokens * 0.4) / 1.2;
    const sizes = parts.map((part) => Math.ceil(part.length / 4));
    for (const size of sizes) expect(size).toBeLessThan(most * 1.02);
    // As large as they may be: no further message would have fitted.
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThan(most - 1500);
    for (let part = 1; part < parts.length; part++)
      expect(promptOf(small.requests[part])).toContain(`<previous-summary>\n${workingSummary(part)}`);
    expect(record?.["summary"]).toContain(workingSummary(parts.length));
  });
});

describe.each(providerCases)("a summarizer over $name", (provider) => {
  const smallId = provider.modelId;
  const filled = async (
    reply: SimulatedReply,
  ): Promise<{
    readonly sessions: ReturnType<typeof scriptedSessions>;
    readonly session: AgentSession;
    readonly simulator: ReturnType<typeof createProviderSimulator>;
  }> => {
    const simulator = createProviderSimulator({ ollamaContextTokens: 500_000, fallback: () => reply });
    await simulator.start();
    const script = createScriptedModel();
    const chat = provider.create(simulator);
    const sessions = scriptedSessions(script, {
      summarizers: [createChatSummarizer({ model: { chat, modelId: smallId } })],
    });
    const session = await sessions.sessions.open(key);
    await talk(session, script, { turns: 10 });
    return { sessions, session, simulator };
  };

  it("gives the summary, under its own name", async () => {
    const { sessions, session, simulator } = await filled(workingSummary(3));
    const result = await session.compact();
    expect(result).toMatchObject({ kind: "compacted", source: "model" });
    expect(simulator.refusals).toEqual([]);
    const [record = {}] = ofType(await allRecords(sessions.store), "compaction");
    expect(record["summary"]).toContain("Topics: number 3.");
    expect((record["details"] as { provider: string }).provider).toContain(smallId);
    await sessions.sessions.close();
    await simulator.close();
  });

  it("is left at once when the caller gives up, and nothing is written", async () => {
    const { sessions, session, simulator } = await filled({
      kind: "answer",
      content: workingSummary(3),
      delayMs: 60_000,
    });
    const controller = new AbortController();
    const pending = session.compact({ signal: controller.signal }).catch((cause: unknown) => cause);
    await until(() =>
      simulator.requests.some(({ outcome, path }) => outcome === "pending" && !/count|show|ps$/.test(path)),
    );
    controller.abort();
    expect(hasErrorCode(await pending, "ABORTED")).toBe(true);
    await until(() => simulator.requests.at(-1)?.outcome === "aborted");
    expect(ofType(await allRecords(sessions.store), "compaction")).toEqual([]);
    await sessions.sessions.close();
    await simulator.close();
  });
});

describe("the summarizer that needs no model", () => {
  it("stands in the same place, and takes its words from the conversation", async () => {
    const script = createScriptedModel();
    const { sessions, store } = scriptedSessions(script, { summarizers: [createExtractiveSummarizer()] });
    const session = await sessions.open(key);
    script.push("It is blue.");
    await session.runTurn("Never paint the quay red. Keep it in src/quay.ts.");
    await talk(session, script, { turns: 10 });
    expect(await session.compact()).toMatchObject({ kind: "compacted" });
    const [record] = ofType(await allRecords(store), "compaction");
    expect(record?.["summary"]).toContain("Never paint the quay red.");
    await sessions.close();
  });
});

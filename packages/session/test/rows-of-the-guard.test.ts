import { describe, expect, it } from "vitest";
import { hasErrorCode, type SessionStore, type AgentTool } from "@throughline/core";
import {
  createProviderSimulator,
  type ProviderSimulator,
  type ProviderSimulatorOptions,
  type ReceivedRequest,
  type SimulatedReply,
} from "@throughline/testing";
import type { SessionTurnEvent } from "@throughline/session";
import { createSessions, type Sessions, type SessionsOptions } from "@throughline/session";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { scriptedSessions, talk } from "./scripted-sessions.ts";
import { providerCases, type ProviderCase } from "./provider-cases.ts";
import { allRecords, echoTool, key, outline } from "./session-fixture.ts";

const line = "a line of a long log\n";
/** A tool whose result is as long as it is asked for. */
const readTool: AgentTool = {
  definition: { name: "read", description: "Reads a log.", inputSchema: { type: "object" } },
  run: ({ lines }) => line.repeat(Number(lines)),
};
const reads = (lines: number): SimulatedReply => ({
  kind: "answer",
  content: [{ type: "tool-call", name: "read", input: { lines } }],
});
const anthropic = providerCases[0] as ProviderCase;
const tooLong: SimulatedReply = {
  kind: "error",
  status: 400,
  message: "prompt is too long: 200100 tokens > 200000 maximum",
};

interface Connected extends AsyncDisposable {
  readonly simulator: ProviderSimulator;
  readonly sessions: Sessions;
  readonly store: SessionStore;
  readonly events: SessionTurnEvent[];
  /** Requests for an answer, without those that only count. */
  asked(): readonly ReceivedRequest[];
  attempts(): readonly Extract<SessionTurnEvent, { name: "guard.attempt" }>[];
}

/** Sessions over a provider's own client. No window is known before the provider states one. */
async function connect(
  provider: ProviderCase,
  options: ProviderSimulatorOptions,
  given: Partial<SessionsOptions> = {},
): Promise<Connected> {
  const simulator = createProviderSimulator({ fallback: () => "Fine.", ...options });
  await simulator.start();
  const events: SessionTurnEvent[] = [];
  const store = given.store ?? createMemoryStore();
  const sessions = createSessions({
    model: { chat: provider.create(simulator), modelId: provider.modelId, windowTokens: null, maxOutputTokens: 1000 },
    tools: [readTool],
    onEvent: (event) => events.push(event),
    ...given,
    store,
  });
  return {
    simulator,
    sessions,
    store,
    events,
    asked: () => simulator.requests.filter(({ path }) => !/count_tokens|input_tokens|api\/show|api\/ps/.test(path)),
    attempts: () => events.filter((event) => event.name === "guard.attempt"),
    async [Symbol.asyncDispose]() {
      await sessions.close();
      await simulator.close();
    },
  };
}

const bodyOf = (request: ReceivedRequest | undefined): Readonly<Record<string, unknown>> =>
  (request?.body ?? {}) as Readonly<Record<string, unknown>>;
const window = (windowTokens: number): ProviderSimulatorOptions => ({ models: { "*": { windowTokens } } });

describe.each(providerCases)("a turn through $name", (provider) => {
  it(
    "asks by way of the guard with every call, the first time with the messages as they are",
    { tags: ["slow"] },
    async () => {
      await using fixture = await connect(provider, { replies: [reads(5), reads(3), "Read."] });
      await using session = await fixture.sessions.open(key);
      await session.runTurn("Read both logs");
      const attempts = fixture.attempts();
      expect(attempts.map(({ attempt, remedies }) => [attempt, remedies])).toEqual([
        [0, []],
        [0, []],
        [0, []],
      ]);
      expect(fixture.asked()).toHaveLength(3);
      expect(fixture.simulator.refusals).toEqual([]);
      await session.runTurn("And?");
      const shown = await session.messages();
      const sent = provider.messagesOf(fixture.asked().at(-1) as ReceivedRequest);
      // What is sent next begins with what was sent, and has the answer behind it.
      expect(JSON.stringify(shown.messages)).toContain(JSON.stringify(sent).slice(0, -1));
    },
  );

  it("shortens a long result after a refusal, keeps its ends, and says both sizes", async () => {
    await using fixture = await connect(provider, { ...window(20_000), replies: [reads(6000)] });
    await using session = await fixture.sessions.open(key);
    const turn = await session.runTurn("Read the log");
    expect(turn.outcome).toBe("done");
    const [, whole, shortened] = fixture.asked().map(({ bytes }) => bytes.length);
    // As it was first, however long it is; a share of it then.
    expect(whole).toBeGreaterThan(6000 * line.length);
    expect(shortened).toBeLessThan(20_000 * 4);
    const text = JSON.stringify(fixture.asked().at(-1)?.body);
    const [, total, first, last] =
      /truncated \((\d+) chars total, showing first (\d+) and last (\d+)\)/.exec(text) ?? [];
    expect(Number(total)).toBe(6000 * line.length);
    expect(Math.min(Number(first), Number(last))).toBeGreaterThan(1000);
    expect(fixture.attempts().map(({ attempt, remedies }) => [attempt, remedies])).toEqual([
      [0, []],
      [0, []],
      [1, ["truncate"]],
    ]);
  });
});

describe("a result that was shortened", () => {
  it.each(providerCases)("is short in the list that the caller gets, by $name", async (provider) => {
    await using fixture = await connect(provider, { ...window(20_000), replies: [reads(6000), "Read."] });
    await using session = await fixture.sessions.open(key);
    const turn = await session.runTurn("Read the log");
    const sent = provider.messagesOf(fixture.asked().at(-1) as ReceivedRequest);
    const { messages, gauge } = await session.messages();
    expect(JSON.stringify(sent)).toContain("truncated (126000 chars total");
    expect(JSON.stringify(messages).startsWith(JSON.stringify(sent).slice(0, -1))).toBe(true);
    // Counted as it is sent, also for a model that has measured nothing of it yet.
    const other = { ...session.model, modelId: "claude-haiku-5" };
    await session.setModel(other);
    const counted = (await session.messages()).gauge.tokens ?? Infinity;
    expect(counted).toBeLessThan(20_000);
    expect(Math.abs(counted - (gauge.tokens ?? 0))).toBeLessThan(10_000);
    // What the turn gives as its messages is what the log has.
    expect(JSON.stringify(turn.messages)).toContain(JSON.stringify(line.repeat(6000)).slice(1, -1));
  });

  it("is cut to its head in that list under the settings of preset claw0", async () => {
    const results = { keep: "head", resultPercent: 30 } as const;
    await using fixture = await connect(anthropic, { replies: [reads(14_000), tooLong, "Read."] }, { results });
    await using session = await fixture.sessions.open(key);
    await session.setModel({ ...session.model, windowTokens: 180_000 });
    await session.runTurn("Read the log");
    const list = JSON.stringify((await session.messages()).messages);
    // At the end of a line.
    expect(/truncated \(294000 chars total, showing first 215984\) \.\.\.\]/.test(list)).toBe(true);
    expect(list.startsWith(JSON.stringify(bodyOf(fixture.asked().at(-1))["messages"]).slice(0, -1))).toBe(true);
  });

  it("stays so over a restart, which overflows no more", async () => {
    const data = createMemoryData();
    {
      await using fixture = await connect(
        anthropic,
        { ...window(20_000), replies: [reads(6000)] },
        { store: createMemoryStore({ data }) },
      );
      await using session = await fixture.sessions.open(key);
      await session.runTurn("Read the log");
      expect(fixture.simulator.refusals).toHaveLength(1);
    }
    await using fixture = await connect(anthropic, window(20_000), { store: createMemoryStore({ data }) });
    await using session = await fixture.sessions.open(key);
    await session.runTurn("And what does it say?");
    expect(fixture.simulator.refusals).toEqual([]);
    expect(fixture.attempts().map(({ attempt }) => attempt)).toEqual([0]);
    expect(JSON.stringify(fixture.asked()[0]?.body)).toContain("truncated (126000 chars total");
    // The log has it whole.
    expect(JSON.stringify(await allRecords(fixture.store))).toContain(JSON.stringify(line.repeat(6000)).slice(1, -1));
  });

  it("is one of several that together have a total, each with a share", async () => {
    const calls = [1, 2, 3, 4].map(() => ({ type: "tool-call", name: "read", input: { lines: 1200 } }) as const);
    await using fixture = await connect(anthropic, {
      ...window(20_000),
      replies: [{ kind: "answer", content: calls }],
    });
    await using session = await fixture.sessions.open(key);
    await session.runTurn("Read the logs");
    const { messages } = bodyOf(fixture.asked().at(-1)) as { messages: { content: { content: unknown }[] }[] };
    const sizes = (messages.at(-1)?.content ?? []).map(({ content }) => JSON.stringify(content).length);
    expect(sizes).toHaveLength(4);
    // Of a window of 20,000 tokens at three characters each: 30 % for one, 50 % for all.
    expect(Math.max(...sizes)).toBeLessThan(18_500);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(32_000);
    expect(fixture.simulator.refusals).toHaveLength(1);
  });
});

describe("what shorter results do not cure", () => {
  it("is compacted by a summary, which the request that succeeds begins with", async () => {
    const script = createScriptedModel();
    const { sessions, all } = scriptedSessions(script, {
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: null, maxOutputTokens: 500 },
      summarizers: [
        { summarize: () => Promise.resolve({ summary: "They spoke of quays.", source: "s", usage: null }) },
      ],
    });
    await using session = await sessions.open(key);
    await talk(session, script, { turns: 30 });
    script.push({
      error: Object.assign(new Error("prompt is too long: 31000 tokens > 20000 maximum"), { status: 400 }),
    });
    const turn = await session.runTurn("And now?");
    expect(turn.calls.map(({ outcome }) => outcome)).toEqual(["overflowed", "answered"]);
    expect(JSON.stringify(script.requests.at(-2)?.messages)).toContain("Question 1: ");
    expect(all("compaction.applied")).toMatchObject([{ source: "model", provider: "s" }]);
    expect(JSON.stringify(script.requests.at(-1)?.messages[0])).toContain("They spoke of quays.");
    await sessions.close();
  });

  it("is raised after three calls with the provider's error and every attempt; the log keeps all", async () => {
    await using fixture = await connect(anthropic, {
      replies: [reads(6000), reads(6000), "Both read.", tooLong, tooLong, tooLong, "Too late."],
    });
    await using session = await fixture.sessions.open(key);
    await session.runTurn("Read the logs");
    const before = await allRecords(fixture.store);
    fixture.events.length = 0;
    const error = await session.runTurn("And?").catch((cause: unknown) => cause);
    expect(hasErrorCode(error, "CONTEXT_OVERFLOW")).toBe(true);
    expect(error).toMatchObject({
      cause: { status: 400 },
      details: {
        attempts: [{ attempt: 0, outcome: "overflowed" }, { attempt: 1 }, { attempt: 2, outcome: "overflowed" }],
      },
    });
    expect(fixture.asked()).toHaveLength(6);
    expect(fixture.attempts().map(({ attempt }) => attempt)).toEqual([0, 1, 2]);
    expect((await allRecords(fixture.store)).slice(0, before.length)).toEqual(before);
  });
});

describe("an error that is no overflow", () => {
  const errors: readonly (readonly [string, number, string])[] = [
    ["a rate limit that counts tokens", 429, "Number of request tokens has exceeded your per-minute rate limit"],
    ["credentials that name a token", 401, "invalid token"],
    ["a fault that names the context", 500, "internal error while loading the context"],
    ["a bad request that names a token", 400, "messages.0: unexpected token in the context of a tool"],
  ];
  it.each(errors)("ends the turn after one call and touches nothing: %s [GRD-06, C40]", async (_, status, message) => {
    await using fixture = await connect(anthropic, {
      replies: [reads(6000), "Read.", { kind: "error", status, message }],
    });
    await using session = await fixture.sessions.open(key);
    await session.runTurn("Read the log");
    fixture.events.length = 0;
    await expect(session.runTurn("And?")).rejects.toMatchObject({ code: "MODEL_FAILED", cause: { status } });
    expect(fixture.asked()).toHaveLength(3);
    expect(fixture.attempts()).toHaveLength(1);
    expect(fixture.events.map(({ name }) => name)).not.toContain("guard.shrunk");
    // Asked again, the provider gets the same messages.
    await session.resume();
    const [refused, repeated] = fixture
      .asked()
      .slice(-2)
      .map((request) => bodyOf(request)["messages"]);
    expect(repeated).toEqual(refused);
  });

  it("is the very object that the model's client threw", async () => {
    const thrown = Object.assign(new Error("invalid token"), { status: 401 });
    const script = createScriptedModel({ error: thrown });
    const store = createMemoryStore();
    await using sessions = createSessions({ store, model: { chat: script, modelId: "claude-sonnet-4-5" } });
    await using session = await sessions.open(key);
    const error = (await session.runTurn("Hello").catch((cause: unknown) => cause)) as Error;
    expect(error.cause).toBe(thrown);
    expect(outline(await allRecords(store)).filter((word) => word !== "call:failed")).toEqual([
      "turn:open",
      "user",
      "turn:failed",
    ]);
  });

  const refusals: readonly (readonly [string, SimulatedReply])[] = [
    ["by its code", { kind: "error", status: 400, message: "Nope.", code: "context_length_exceeded" }],
    ["by its status", { kind: "error", status: 413, message: "Request Entity Too Large" }],
    ["by its phrase", { kind: "error", status: 400, message: "This model's maximum context length is 9000 tokens." }],
  ];
  it.each(refusals)("differs from an overflow, which is known %s and cured [C40]", async (_, refusal) => {
    await using fixture = await connect(providerCases[1] as ProviderCase, { replies: [reads(6000), "Read.", refusal] });
    await using session = await fixture.sessions.open(key);
    await session.runTurn("Read the log");
    expect((await session.runTurn("And?")).text).toBe("Fine.");
    expect(fixture.attempts().at(-1)).toMatchObject({ attempt: 1 });
  });
});

describe("what is asked for", () => {
  const maxTokens = async (options: Partial<SessionsOptions["model"]>): Promise<unknown> => {
    await using simulator = createProviderSimulator({ fallback: () => "Fine." });
    await simulator.start();
    const { create, modelId } = anthropic;
    const model = { chat: create(simulator), modelId, ...options };
    await using sessions = createSessions({ store: createMemoryStore(), model });
    await using session = await sessions.open(key);
    await session.runTurn("Hello");
    return bodyOf(simulator.requests.findLast(({ path }) => !path.includes("count_tokens")))["max_tokens"];
  };

  it("is an answer of 8192 tokens, or of as many as the caller wants [GRD-08, C39]", async () => {
    expect(await maxTokens({})).toBe(8192);
    expect(await maxTokens({ maxOutputTokens: 3000 })).toBe(3000);
  });

  it("names tools only where there are any", async () => {
    for (const provider of providerCases) {
      await using without = await connect(provider, {}, { tools: [] });
      await (await without.sessions.open(key)).runTurn("Hello");
      expect(bodyOf(without.asked()[0])).not.toHaveProperty("tools");
      await using fixture = await connect(provider, {}, { tools: [echoTool] });
      await (await fixture.sessions.open(key)).runTurn("Hello");
      expect(bodyOf(fixture.asked()[0])["tools"]).toHaveLength(1);
    }
  });
});

describe("before the first call", () => {
  const long = "What a long question this is. ".repeat(1000);

  it("a request that cannot fit is made smaller, so that nothing is refused", async () => {
    await using fixture = await connect(anthropic, { ...window(20_000), replies: [reads(6000)] }, {});
    await using session = await fixture.sessions.open(key);
    await session.setModel({ ...session.model, windowTokens: 20_000 });
    await session.runTurn("Read the log");
    expect(fixture.simulator.refusals).toEqual([]);
    expect(fixture.attempts().map(({ attempt, remedies }) => [attempt, remedies])).toEqual([
      [0, []],
      [null, []],
      [0, ["truncate"]],
    ]);
  });

  it("the provider's counting endpoint is asked only where the estimate is near the limit", async () => {
    const counted = async (windowTokens: number): Promise<number> => {
      await using fixture = await connect(anthropic, window(windowTokens), {});
      await using session = await fixture.sessions.open(key);
      await session.setModel({ ...session.model, windowTokens });
      await session.runTurn(long);
      const [attempt] = fixture.attempts();
      const share = (attempt?.estimate.tokens ?? 0) / (windowTokens - 1000);
      const counts = fixture.simulator.requests.filter(({ path }) => path.includes("count_tokens")).length;
      expect(counts > 0, `${share}`).toBe(windowTokens < 20_000);
      return counts;
    };
    expect(await counted(100_000)).toBe(0);
    await using probe = await connect(anthropic, window(100_000), {});
    await (await probe.sessions.open(key)).runTurn(long);
    const estimate = probe.attempts()[0]?.estimate.tokens ?? 0;
    expect(await counted(Math.round(estimate / 0.93) + 1500)).toBe(1);
  });
});

import { openSession, type RecordDraft } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { createSessions, explainCalls, rebuildCall, type SessionsOptions } from "@throughline/session";
import type { AgentSessionsOptions } from "../src/whole-turn/whole-turn-options.ts";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { allRecords, key, modelId } from "./session-fixture.ts";

const windowTokens = 8000;
const system = "Be kind.";
const words = "what about the plan and the schedule of the team? ".repeat(20);

/** Forty turns of about 440 tokens each, the replies with signed thinking. */
function longHistory(): readonly RecordDraft[] {
  return Array.from({ length: 40 }, (_, at): readonly RecordDraft[] => [
    { type: "message", message: { role: "user", content: `Question ${at}: ${words}` } },
    {
      type: "message",
      message: {
        role: "assistant",
        provider: "anthropic",
        api: "anthropic",
        model: modelId,
        stopReason: "stop",
        content: [
          { type: "thinking", thinking: `Thought ${at}.`, thinkingSignature: `signature-${at}` },
          { type: "text", text: `Answer ${at}: ${words}` },
        ],
      },
    },
  ]).flat();
}

const withoutModels: Pick<AgentSessionsOptions, "summarizers" | "checkpoint" | "memoryFlush"> = {
  summarizers: [],
  checkpoint: { enabled: false },
  memoryFlush: { enabled: false },
};

interface Restored {
  readonly chat: ScriptedModel;
  readonly data: ReturnType<typeof createMemoryData>;
  readonly events: WholeTurnEvent[];
  options(
    given?: Partial<SessionsOptions>,
  ): Omit<SessionsOptions, "onEvent"> & { readonly onEvent: (event: WholeTurnEvent) => void };
}

async function restored(): Promise<Restored> {
  const data = createMemoryData();
  const store = createMemoryStore({ data });
  const ref = { namespace: "", agentId: "main", key };
  await openSession(store, ref, { random: systemRandom });
  await store.append(ref, longHistory());
  const chat = createScriptedModel();
  const events: WholeTurnEvent[] = [];
  return {
    chat,
    data,
    events,
    options: (given = {}) => ({
      store: createMemoryStore({ data }),
      model: { chat, modelId, windowTokens, maxOutputTokens: 500 },
      system,
      ...given,
      onEvent: (event) => void events.push(event),
    }),
  };
}

function textsOf(messages: readonly unknown[]): string {
  return JSON.stringify(messages);
}

describe("a restored history that is longer than the window", () => {
  it("is cut at a turn when it is opened, without a call, and the session keeps all of it", async () => {
    const { chat, data, events, options } = await restored();
    await using sessions = createSessions(options());
    await using session = await sessions.open(key);
    const { messages, gauge } = await session.messages();
    expect(gauge.tokens).toBeLessThanOrEqual(windowTokens * 0.9);
    expect(gauge.percent).toBeLessThanOrEqual(90);
    expect(textsOf(messages)).toContain("Question 39");
    expect(textsOf(messages)).not.toContain("Question 0:");
    expect((messages[0] as { role: string }).role).toBe("user");
    expect(chat.requests).toEqual([]);
    const [cut] = events.filter(({ name }) => name === "history.cut");
    expect(cut).toMatchObject({ name: "history.cut", leftOutMessages: 80 - messages.length, windowTokens });
    expect(await allRecords(createMemoryStore({ data }))).toHaveLength(80);
  });

  it("begins at the same message in every later call, in another process too, and each call can be rebuilt", async () => {
    const { chat, data, events, options } = await restored();
    for (const process of [1, 2]) {
      await using sessions = createSessions(options());
      await using session = await sessions.open(key);
      await session.runTurn(`Hello ${process}`);
      await session.runTurn(`And ${process}?`);
    }
    expect(events.filter(({ name }) => name === "history.cut")).toHaveLength(1);
    expect(events.filter(({ name }) => name === "guard.shrunk")).toEqual([]);
    const firsts = chat.requests.map(({ messages }) => JSON.stringify(messages[0]));
    expect(new Set(firsts).size).toBe(1);
    // What was thought with another beginning is bound to it.
    expect(textsOf(chat.requests[0]?.messages ?? [])).not.toContain("signature-");
    const records = await allRecords(createMemoryStore({ data }));
    const calls = explainCalls(records);
    expect(calls).toHaveLength(4);
    for (const [at, { facts }] of calls.entries()) {
      const rebuilt = rebuildCall(records, facts, { system, tools: [] });
      expect(JSON.stringify(rebuilt.messages), `call ${at}`).toBe(JSON.stringify(chat.requests[at]?.messages));
    }
  });

  it("is whole again for a model with a larger window, and after a rewind to what was left out", async () => {
    const { chat, options } = await restored();
    const first = createSessions(options());
    const session = await first.open(key);
    await session.runTurn("Hello");
    await first.close();
    await using sessions = createSessions(
      options({ model: { chat, modelId, windowTokens: 200_000, maxOutputTokens: 500 } }),
    );
    await using again = await sessions.open(key);
    const { messages } = await again.messages();
    expect(textsOf(messages)).toContain("Question 0:");
    await again.setModel({ chat, modelId, windowTokens, maxOutputTokens: 500 });
    expect(textsOf((await again.messages()).messages)).not.toContain("Question 0:");
  });

  it("counts anew where another program counted the whole", async () => {
    const { chat, data, events, options } = await restored();
    const store = createMemoryStore({ data });
    const counted = { input: 90_000, output: 10, cacheRead: 0, cacheWrite: 0 };
    await store.append({ namespace: "", agentId: "main", key }, [
      { type: "message", message: { role: "user", content: "And now?" } },
      {
        type: "message",
        message: {
          role: "assistant",
          provider: "anthropic",
          model: modelId,
          stopReason: "stop",
          usage: counted,
          content: [{ type: "text", text: "Fine." }],
        },
      },
    ]);
    await using sessions = createSessions(options());
    await using session = await sessions.open(key);
    await session.runTurn("Hello");
    expect(events.filter(({ name }) => name === "guard.shrunk")).toEqual([]);
    expect(textsOf(chat.requests[0]?.messages ?? [])).toContain("And now?");
  });

  it("is left to the compaction where there is one, unless it is to be cut", async () => {
    const { options } = await restored();
    await using sessions = createAgentSessions({ ...options(), ...withoutModels });
    await using session = await sessions.open(key);
    expect(textsOf((await session.messages()).messages)).toContain("Question 0:");
    await using cutting = createAgentSessions({ ...options(), ...withoutModels, restore: "cut" });
    await using other = await cutting.open(key);
    expect(textsOf((await other.messages()).messages)).not.toContain("Question 0:");
  });

  it("is summarized whole by a later compaction, and nothing is left out any more", async () => {
    const { chat, data, options } = await restored();
    await using sessions = createAgentSessions({ ...options(), ...withoutModels, restore: "cut" });
    await using session = await sessions.open(key);
    await session.runTurn("Hello");
    const cut = chat.requests[0]?.messages ?? [];
    expect(textsOf(cut)).not.toContain("Question 0:");
    const { kind } = await session.compact();
    expect(kind).toBe("compacted");
    await session.runTurn("And?");
    const calls = explainCalls(await allRecords(createMemoryStore({ data })));
    expect(calls[0]?.facts.cut).not.toBeNull();
    expect(calls.at(-1)?.facts.cut).toBeNull();
    expect(calls.at(-1)?.summaryId).not.toBeNull();
  });
});

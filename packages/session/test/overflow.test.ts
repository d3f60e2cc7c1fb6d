import type { AgentTool } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createProviderSimulator, type ProviderSimulator, type ReceivedRequest } from "@throughline/testing";
import { runSteps } from "@throughline/core/internal";
import { createSessions, explainCalls, rebuildCall, type Sessions } from "@throughline/session";
import { rebuildSteps } from "@throughline/session/internal";
import { providerCases } from "./provider-cases.ts";
import { allRecords, key } from "./session-fixture.ts";

const system = "You read logs.";

/** A tool whose results are far too long for a small window. */
const readTool: AgentTool = {
  definition: {
    name: "read",
    description: "Reads a log.",
    inputSchema: { type: "object", properties: { name: { type: "string" } } },
  },
  run: ({ name }) => `${String(name)}: a line of a long log\n`.repeat(3000),
};

const window = 20_000;

/** What was asked of the model; the guard also has requests counted. */
function asked({ requests }: ProviderSimulator): readonly ReceivedRequest[] {
  return requests.filter(({ path }) => !/count_tokens|input_tokens/.test(path));
}

describe.each(providerCases.slice(0, 3))("a window that is too small: $name", (provider) => {
  it(
    "overflows once, keeps what it learned over restarts, and every request can be told again",
    { tags: ["slow"] },
    async () => {
      await using simulator = createProviderSimulator({
        models: { "*": { windowTokens: window, maxOutputTokens: 2000 } },
        fallback: () => "Then that is it.",
      });
      await simulator.start();
      simulator.enqueue(
        {
          kind: "answer",
          content: [
            { type: "thinking", thinking: "I have to look." },
            { type: "tool-call", name: "read", input: { name: "one" } },
          ],
        },
        {
          kind: "answer",
          content: [
            { type: "thinking", thinking: "And at the other one." },
            { type: "tool-call", name: "read", input: { name: "two" } },
          ],
        },
        {
          kind: "answer",
          content: [
            { type: "thinking", thinking: "I see." },
            { type: "text", text: "Both are long." },
          ],
        },
      );
      const data = createMemoryData();
      const start = (): Sessions =>
        createSessions({
          store: createMemoryStore({ data }),
          system,
          tools: [readTool],
          // What the window is has to be learned from the refusal.
          model: {
            chat: provider.create(simulator),
            modelId: provider.modelId,
            windowTokens: null,
            maxOutputTokens: 1000,
          },
        });
      {
        await using sessions = start();
        await using session = await sessions.open(key);
        await session.runTurn("What do the logs say?");
        expect(simulator.refusals.length).toBeGreaterThan(0);
        await session.runTurn("And?");
      }
      const refusals = simulator.refusals.length;
      expect(simulator.refusals.map(({ kind }) => kind)).toEqual(simulator.refusals.map(() => "overflow"));
      {
        await using sessions = start();
        await using session = await sessions.open(key);
        const turn = await session.runTurn("Once more?");
        // The refusal of the Responses API states no figure.
        expect(turn.gauge.windowTokens).toBe(provider.name === "OpenAI Responses" ? null : window);
        await session.runTurn("And again?");
      }
      expect(simulator.refusals).toHaveLength(refusals);
      const records = await allRecords(createMemoryStore({ data }));
      const calls = explainCalls(records);
      expect(calls).toHaveLength(asked(simulator).length);
      expect(
        calls.some(({ changes }) => changes.some(({ what, recordId }) => what === "tool-result" && recordId !== null)),
      ).toBe(true);
      for (const [at, { facts, changes }] of calls.entries()) {
        const rebuilt = rebuildCall(records, facts, { system, tools: [readTool.definition] });
        const { places } = runSteps(rebuildSteps(records, facts, { system, tools: [readTool.definition] }));
        expect(places).toHaveLength(rebuilt.messages.length);
        const shortened = places.flat().flatMap(({ recordId, reason }) => (reason === "shortened" ? [recordId] : []));
        const wanted = changes.flatMap(({ what, recordId }) => (what === "tool-result" ? [recordId] : []));
        for (const id of wanted) expect(shortened, `call ${at}`).toContain(id);
        const received = asked(simulator)[at];
        if (received === undefined) throw new Error("as many requests as calls");
        expect(JSON.stringify(rebuilt.messages), `call ${at}`).toBe(JSON.stringify(provider.messagesOf(received)));
      }
      for (const { record } of records)
        if (record["customType"] === "throughline.call" && (record["data"] as { part?: number }).part !== 2)
          expect(JSON.stringify(record).length).toBeLessThanOrEqual(600);
    },
  );

  it(
    "a conversation longer than the window goes on, without a summary and without a refusal of its form",
    { tags: ["slow"] },
    async () => {
      await using simulator = createProviderSimulator({
        models: { "*": { windowTokens: 12_000, maxOutputTokens: 4000 } },
        fallback: ({ number }) => ({
          kind: "answer",
          content: [
            { type: "thinking", thinking: `Number ${number}.` },
            { type: "text", text: `Answer ${number}. ${"more words ".repeat(40)}` },
          ],
        }),
      });
      await simulator.start();
      const data = createMemoryData();
      const model = {
        chat: provider.create(simulator),
        modelId: provider.modelId,
        // A little less than it is: the simulator counts as nobody does.
        windowTokens: 11_000,
        maxOutputTokens: 2000,
      };
      for (let start = 0; start < 3; start++) {
        await using sessions = createSessions({ store: createMemoryStore({ data }), system, model });
        await using session = await sessions.open(key);
        for (let at = 0; at < 14; at++)
          await session.runTurn(`Question ${start}.${at} ${"and what is more ".repeat(80)}`);
      }
      expect(simulator.refusals.map(({ kind }) => kind).filter((kind) => kind !== "overflow")).toEqual([]);
      expect(simulator.refusals.length).toBeLessThanOrEqual(2);
      const records = await allRecords(createMemoryStore({ data }));
      const calls = explainCalls(records);
      expect(calls.filter(({ changes }) => changes.some(({ what }) => what === "history")).length).toBeGreaterThan(5);
      for (const [at, { facts }] of calls.entries()) {
        const rebuilt = rebuildCall(records, facts, { system, tools: [] });
        const received = asked(simulator)[at];
        if (received === undefined) throw new Error("as many requests as calls");
        expect(JSON.stringify(rebuilt.messages), `call ${at}`).toBe(JSON.stringify(provider.messagesOf(received)));
      }
    },
  );
});

describe("an answer that runs into the end of the window", () => {
  it.each(providerCases.slice(0, 1))(
    "is kept as far as it came, and the conversation goes on: $name",
    async (provider) => {
      await using simulator = createProviderSimulator({
        models: { "*": { windowTokens: window } },
        replies: [{ kind: "answer", content: "As far as it", stop: "context-window" }, "And on."],
      });
      await simulator.start();
      const store = createMemoryStore();
      const model = { chat: provider.create(simulator), modelId: provider.modelId, windowTokens: window };
      await using sessions = createSessions({ store, system, model });
      await using session = await sessions.open(key);
      const turn = await session.runTurn("Tell me all", { onDelta: () => undefined });
      expect(turn).toMatchObject({ outcome: "done", text: "As far as it" });
      expect(turn.calls.map(({ outcome }) => outcome)).toEqual(["partial"]);
      expect((await session.runTurn("Go on")).text).toBe("And on.");
      expect(JSON.stringify(simulator.requests.at(-1)?.body)).toContain("As far as it");
      expect(simulator.refusals).toEqual([]);
    },
  );
});

import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { createProviderSimulator } from "@throughline/testing";
import { createSessions, explainCalls, rebuildCall } from "@throughline/session";
import type { SessionModel } from "@throughline/core/internal";
import { providerCases } from "./provider-cases.ts";
import { allRecords, echoTool, key } from "./session-fixture.ts";

describe("another model", () => {
  it("takes the conversation over, for one turn or from now on, and every request can be told again", async () => {
    await using simulator = createProviderSimulator({
      models: { "*": { windowTokens: 100_000 } },
      fallback: ({ number }) => ({
        kind: "answer",
        content:
          number % 2 === 1
            ? [
                { type: "thinking", thinking: `Hm ${number}` },
                { type: "text", text: "I ask." },
                { type: "tool-call", name: "echo", input: { text: `${number}` } },
              ]
            : `Answer ${number}.`,
      }),
    });
    await simulator.start();
    const models = providerCases.map((provider): SessionModel => ({
      chat: provider.create(simulator),
      modelId: provider.modelId,
      windowTokens: 100_000,
    }));
    const store = createMemoryStore();
    const [first] = models as [SessionModel];
    await using sessions = createSessions({ store, model: first, system: "Be kind.", tools: [echoTool] });
    await using session = await sessions.open(key);
    for (const model of models) {
      await session.runTurn("Go on");
      await session.runTurn("With another one, once", { model });
      await session.setModel(model);
      await session.runTurn("And with this one from now on");
    }
    expect(simulator.refusals).toEqual([]);
    const records = await allRecords(store);
    const calls = explainCalls(records);
    expect(new Set(calls.map(({ provider, facts }) => `${provider} ${facts.api}`)).size).toBe(providerCases.length);
    for (const [at, { facts }] of calls.entries()) {
      const request = simulator.requests[at];
      const rebuilt = rebuildCall(records, facts, { system: "Be kind.", tools: [echoTool.definition] });
      const sent = request?.body as Readonly<Record<string, unknown>>;
      expect(JSON.stringify(rebuilt.messages), `call ${at}`).toBe(JSON.stringify(sent["messages"] ?? sent["input"]));
    }
  });
});

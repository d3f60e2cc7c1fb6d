import { describe, expect, it } from "vitest";
import { defineTool, type ChatModel } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { scriptedModel } from "@throughline/testing";
import { createSessions, explainCalls, rebuildCall, type SessionsOptions } from "@throughline/session";
import { ollama } from "@throughline/models/ollama";
import { allRecords, key } from "./session-fixture.ts";

const look = defineTool({ name: "look.up", description: "", input: { type: "object" }, run: () => "found" });

function setUp(model: SessionsOptions["model"], options: Partial<SessionsOptions> = {}) {
  const store = createMemoryStore();
  const sessions = createSessions({ store, model, tools: [look], ...options });
  return { store, open: () => sessions.open(key) };
}

const call = { calls: [{ name: "look_up" }] };

describe("toolChoice", () => {
  it.each(["required", { tool: "look.up" }] as const)(
    "%j holds for the first call of a turn only, so that the turn ends",
    async (toolChoice) => {
      const model = scriptedModel([call, "Done.", "Hello."]);
      const { store, open } = setUp(model);
      const session = await open();
      expect((await session.runTurn("Look", { toolChoice })).text).toBe("Done.");
      await session.runTurn("Hi");
      const sent = typeof toolChoice === "object" ? { tool: "look_up" } : toolChoice;
      expect(model.requests.map((request) => request.toolChoice)).toEqual([sent, undefined, undefined]);
      const records = await allRecords(store);
      const [first, second] = explainCalls(records);
      expect([first?.facts.toolChoice, second?.facts.toolChoice]).toEqual([toolChoice, undefined]);
      const prefix = { system: null, tools: [look.definition] };
      if (first === undefined) throw new Error("no call");
      expect(rebuildCall(records, first.facts, prefix)).toMatchObject({ toolChoice, areSameTools: true, output: null });
    },
  );

  it("none holds for the whole turn", async () => {
    const model = scriptedModel([call, "Done."]);
    await (await setUp(model).open()).runTurn("Look", { toolChoice: "none" });
    expect(model.requests.map((request) => request.toolChoice)).toEqual(["none", "none"]);
  });

  it("is repeated by a turn that resumes one without an answer", async () => {
    const model = scriptedModel([new Error("cut"), call, "Done."]);
    const session = await setUp(model).open();
    await expect(session.runTurn("Look", { toolChoice: "required" })).rejects.toMatchObject({ code: "MODEL_FAILED" });
    await session.resume();
    expect(model.requests.map((request) => request.toolChoice)).toEqual(["required", "required", undefined]);
  });

  it.each([
    [{ tool: "book" }, 'runTurn(): There is no tool "book" for `toolChoice`.', [look]],
    ["required", "runTurn(): There are no tools for `toolChoice`.", []],
  ] as const)("refuses %j without such a tool, before anything is stored", async (toolChoice, message, tools) => {
    const { store, open } = setUp(scriptedModel([]));
    const session = await open();
    await expect(session.runTurn("Look", { toolChoice, tools })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message,
    });
    expect(await allRecords(store)).toEqual([]);
  });

  it.each([
    ["ollama", ollama("qwen3", { baseUrl: "http://127.0.0.1:9" })],
    [
      "own",
      {
        chat: { provider: "own", api: "anthropic", chat: () => Promise.reject(new Error()) } satisfies ChatModel,
        modelId: "m",
      },
    ],
  ])("is refused by name where the provider has none: %s", async (provider, model) => {
    const session = await setUp(model).open();
    await expect(session.runTurn("Look", { toolChoice: "required" })).rejects.toMatchObject({
      code: "CAPABILITY_UNSUPPORTED",
      message: expect.stringContaining(`"${provider}"`),
    });
  });

  it.each(["any", { tool: "" }, { name: "look" }, null])("refuses %j", async (toolChoice) => {
    const session = await setUp(scriptedModel([])).open();
    await expect(session.runTurn("Look", { toolChoice: toolChoice as "auto" })).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
  });
});

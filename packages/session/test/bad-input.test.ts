import { defineTool, type AppendDraft } from "@throughline/core";
import { recordFromReply } from "@throughline/history/anthropic";
import { anthropic } from "@throughline/models/anthropic";
import { openai } from "@throughline/models/openai";
import { createSessions } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key } from "./session-fixture.ts";

/** What plain JavaScript may hand over. */
type Loose = (...args: readonly unknown[]) => unknown;

const refusal = (message: string): unknown =>
  expect.objectContaining({
    code: "INPUT_INVALID",
    outcome: "not-applied",
    message: expect.stringContaining(message) as string,
  });

describe("bad input is refused with the name of the argument, what was expected and what was received", () => {
  it.each([
    [{ sytem: "Be kind." }, "createSessions(): `sytem` is not an option; did you mean `system`?"],
    [{ maxSteps: "5" }, 'createSessions(): `maxSteps` must be a whole number from 1 on; received "5".'],
    [{ maxSteps: 0 }, "createSessions(): `maxSteps` must be a whole number from 1 on; received 0."],
    [{ model: { modelId: "x" } }, "createSessions(): `model.chat` must be an object with the function `chat`;"],
  ])("an option: %j", async (wrong, message) => {
    await using store = createMemoryStore();
    const model = { chat: createScriptedModel(), modelId: "scripted" };
    expect(() => (createSessions as Loose)({ store, model, ...wrong })).toThrow(refusal(message));
    expect((await store.list()).sessions).toEqual([]);
  });

  it("an option of a turn, and nothing of the turn is stored", async () => {
    const { sessions, records, model } = createFixture();
    await using session = await sessions.open(key);
    await expect((session.runTurn as Loose)("Hello", { whenBuzy: "queue" })).rejects.toEqual(
      refusal("runTurn(): `whenBuzy` is not an option; did you mean `whenBusy`?"),
    );
    await expect((session.runTurn as Loose)("Hello", { waitMs: -1 })).rejects.toEqual(
      refusal("runTurn(): `waitMs` must be a number from 0 on; received -1."),
    );
    expect(await records()).toEqual([]);
    expect(model.requests).toEqual([]);
  });

  it.each([[null], ["text"], [{ type: "mesage", message: { role: "user", content: "x" } }], [{ message: {} }]])(
    "a draft that is no record: %j",
    async (draft) => {
      const { sessions, records } = createFixture();
      await using session = await sessions.open(key);
      await expect(session.append([draft as unknown as AppendDraft as never])).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:INPUT_INVALID|RECORD_INVALID)$/) as string,
        outcome: "not-applied",
      });
      expect(await records()).toEqual([]);
    },
  );

  it.each([[null], [7], ["Hello"], [{ choices: [] }], [{ role: "user", content: "Hello" }]])(
    "a reply that is no reply of the provider: %j",
    (reply) => {
      expect(() => (recordFromReply as Loose)(reply)).toThrow(refusal("recordFromReply()"));
    },
  );

  it("a tool whose schema throws: the model reads why, and the turn goes on", { tags: ["slow"] }, async () => {
    const input = {
      "~standard": {
        version: 1,
        vendor: "broken",
        validate: () => {
          throw new Error("the schema is broken");
        },
      },
    } as const;
    let runs = 0;
    const tool = defineTool({
      name: "broken",
      description: "Never runs.",
      input: input as never,
      inputSchema: { type: "object" },
      run: () => `${runs++}`,
    });
    const script = createScriptedModel({ calls: [{ id: "1", name: "broken", arguments: {} }] }, "Done.");
    const { sessions } = createFixture({ script, tools: [tool] });
    await using session = await sessions.open(key);
    const turn = await session.runTurn("Go");
    const result = turn.messages.find(({ role }) => role === "toolResult");
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result)).toContain("the schema is broken");
    expect(runs).toBe(0);
  });

  it.each([
    ["anthropic", "ANTHROPIC_API_KEY", anthropic],
    ["openai", "OPENAI_API_KEY", openai],
  ] as const)("a model of %s without a key", (_, variable, factory) => {
    const environment = { get: () => undefined };
    expect(() => factory("some-model", { environment })).toThrow(
      expect.objectContaining({ remedy: expect.stringContaining(variable) as string }),
    );
  });
});

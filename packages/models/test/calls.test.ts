import type { AnswerReply } from "@throughline/testing/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { adapters, attempt, question } from "./adapters.ts";
import { converse } from "./conversation.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

async function start(replies: readonly (string | AnswerReply)[]): Promise<void> {
  simulator = createProviderSimulator({ replies });
  await simulator.start();
}

const calling = (input: unknown): AnswerReply => ({
  kind: "answer",
  content: [{ type: "tool-call", name: "look", input, id: "call_1" }],
});

describe.each(adapters)("$name", (adapter) => {
  it("keeps arguments that are no object as they were written, and the next request is accepted", async () => {
    for (const streamed of [false, true]) {
      await start([calling(["not", "an", "object"]), "Sorry."]);
      const conversation = converse(adapter.create(simulator), adapter.model);
      conversation.add({ role: "user", content: "Look." });
      // Ollama gives arguments as JSON values, the others as JSON text.
      const { message } = await conversation.ask(streamed ? { onDelta: () => undefined } : {});
      expect(message.content).toMatchObject([
        { type: "toolCall", id: "call_1", name: "look", arguments: {}, partialJson: '["not","an","object"]' },
      ]);
      expect(message.stopReason).toBe("toolUse");
      conversation.add({ role: "toolResult", toolCallId: "call_1", toolName: "look", content: "No.", isError: true });
      await conversation.ask();
      expect(simulator.refusals).toEqual([]);
      await simulator.close();
    }
  });

  it("gives no field of its own to arguments that are an object, whatever the object's names are", async () => {
    const input = JSON.parse('{"__proto__":{"a":1},"constructor":"x","":null}') as unknown;
    await start([calling(input), calling(input)]);
    const model = adapter.create(simulator);
    const { message } = await model.chat(question(adapter, "Look."));
    expect(JSON.stringify(message.content)).toContain(JSON.stringify(input));
    expect(message.content[0]).not.toHaveProperty("partialJson");
    const streamed = await attempt(model, question(adapter, "Look."));
    expect(JSON.stringify(streamed.reply?.message.content)).toContain(JSON.stringify(input));
  });
});

describe.each(adapters.filter(({ target }) => target !== "ollama"))(
  "$name, where arguments come in pieces",
  (adapter) => {
    it("keeps the pieces of a call that is cut in the middle of its arguments", async () => {
      const events = { anthropic: 6, openai: 4, "openai-responses": 5 }[adapter.target as "openai"];
      await start([{ ...calling({ place: "a place with a long name" }), breakAfter: { events, how: "cut" } }]);
      const { partials, deltas, error } = await attempt(adapter.create(simulator), question(adapter, "Look."));
      expect(error).toBeInstanceOf(Error);
      expect(deltas).toEqual([]);
      const [partial] = partials as readonly { readonly content: readonly Record<string, unknown>[] }[];
      const [call] = partial?.content ?? [];
      expect(call).toMatchObject({ type: "toolCall", id: "call_1", name: "look", arguments: {} });
      const text = String(call?.["partialJson"]);
      expect('{"place":"a place with a long name"}'.startsWith(text)).toBe(true);
      expect(text.length).toBeGreaterThan(5);
    });
  },
);

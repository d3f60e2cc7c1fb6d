import type { ChatDelta, ToolDefinition } from "@throughline/core";
import type { AnswerReply } from "@throughline/testing/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { adapters, attempt, question, type AdapterCase } from "./adapters.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

async function start(replies: readonly (string | AnswerReply)[]): Promise<void> {
  simulator = createProviderSimulator({ replies });
  await simulator.start();
}

const tools: readonly ToolDefinition[] = [
  {
    name: "look",
    description: "Looks at a place.",
    inputSchema: { type: "object", properties: { place: { type: "string" } }, additionalProperties: false },
  },
];

const looks: AnswerReply = {
  kind: "answer",
  content: [
    { type: "thinking", thinking: "Two places, so two looks. Größe 😀." },
    { type: "text", text: "I look in both. 👀 é" },
    { type: "tool-call", name: "look", input: { place: "München 🏔" }, id: "call_1" },
    { type: "tool-call", name: "look", input: {}, id: "call_2" },
  ],
  usage: { inputTokens: 100, outputTokens: 30 },
};

/** The blocks without what differs from call to call. */
function shape(content: unknown): unknown {
  return JSON.parse(JSON.stringify(content, (name, value: unknown) => (name === "thinkingSignature" ? "" : value)));
}

const calls = [
  { type: "toolCall", id: "call_1", name: "look", arguments: { place: "München 🏔" } },
  { type: "toolCall", id: "call_2", name: "look", arguments: {} },
];

function expectedBlocks({ thinks, target }: AdapterCase): unknown[] {
  const thinking = { type: "thinking", thinking: "Two places, so two looks. Größe 😀." };
  const signed = target === "ollama" ? thinking : { ...thinking, thinkingSignature: "" };
  return [...(thinks ? [signed] : []), { type: "text", text: "I look in both. 👀 é" }, ...calls];
}

describe.each(adapters)("$name", (adapter) => {
  it("gives a text as a record keeps it, whole and streamed", async () => {
    await start(["Hello there.", "Hello there."]);
    const model = adapter.create(simulator);
    const whole = await model.chat(question(adapter, "Hi"));
    expect(whole.message).toMatchObject({
      role: "assistant",
      content: [{ type: "text", text: "Hello there." }],
      api: adapter.api,
      provider: model.provider,
      model: adapter.model,
      stopReason: "stop",
    });
    const { reply, deltas, partials } = await attempt(model, question(adapter, "Hi"));
    expect(reply?.message.content).toEqual(whole.message.content);
    expect(reply?.stopReason).toBe(whole.stopReason);
    expect(deltas.map((delta) => ("text" in delta ? delta.text : "")).join("")).toBe("Hello there.");
    expect(partials).toEqual([]);
    expect(simulator.refusals).toEqual([]);
  });

  it("gives thinking, text and all parallel calls, whole and streamed at any byte border", async () => {
    await start([looks, looks, { ...looks, chunkBytes: [1] }, { ...looks, chunkBytes: [5, 1, 13] }]);
    const model = adapter.create(simulator);
    const request = { ...question(adapter, "Look"), tools };
    const whole = await model.chat(request);
    expect(shape(whole.message.content)).toEqual(expectedBlocks(adapter));
    expect(whole.message.stopReason).toBe("toolUse");
    for (let time = 0; time < 3; time++) {
      const { reply, deltas } = await attempt(model, request);
      expect(shape(reply?.message.content)).toEqual(expectedBlocks(adapter));
      expect(reply?.message.usage).toEqual(whole.message.usage);
      expect(reply?.message.stopReason).toBe("toolUse");
      expect(joined(deltas)).toEqual([
        ...(adapter.thinks ? ["thinking: Two places, so two looks. Größe 😀."] : []),
        "text: I look in both. 👀 é",
        "call_1 look",
        "call_2 look",
      ]);
    }
    expect(simulator.refusals).toEqual([]);
  });

  it("counts tokens in the record's fields and keeps the provider's own", async () => {
    await start([looks]);
    const { message, usage } = await adapter.create(simulator).chat({ ...question(adapter, "Look"), tools });
    expect(message.usage).toMatchObject({ input: 100, output: 30, cacheRead: 0, cacheWrite: 0, totalTokens: 130 });
    expect(Object.values(usage ?? {})).toEqual(expect.arrayContaining([100, 30]));
  });

  it("gives a reply without content when the model says nothing, whole and streamed", async () => {
    await start(["", ""]);
    const model = adapter.create(simulator);
    const whole = await model.chat(question(adapter, "Hi"));
    expect(whole.message).toMatchObject({ content: [], stopReason: "stop" });
    expect((await attempt(model, question(adapter, "Hi"))).reply?.message).toMatchObject({ content: [] });
  });

  it("says length at the end of the room, and keeps what there is", async () => {
    const short: AnswerReply = { kind: "answer", content: "A text that", stop: "length" };
    await start([short, short]);
    const model = adapter.create(simulator);
    const whole = await model.chat({ ...question(adapter, "Hi"), maxOutputTokens: 20 });
    expect(whole.message).toMatchObject({ content: [{ text: "A text that" }], stopReason: "length" });
    expect((await attempt(model, question(adapter, "Hi"))).reply?.message.stopReason).toBe("length");
    expect(JSON.stringify(simulator.requests[0]?.body)).toMatch(/"(?:max_\w*tokens|num_predict)":20/);
  });

  it.skipIf(adapter.target === "ollama")(
    "keeps what a filter ended as an error, so that it is not replayed",
    async () => {
      const filtered: AnswerReply = { kind: "answer", content: "I can", stop: "refusal" };
      await start([filtered, filtered]);
      const model = adapter.create(simulator);
      const whole = await model.chat(question(adapter, "Hi"));
      expect(whole.message).toMatchObject({ content: [{ text: "I can" }], stopReason: "error" });
      expect(whole.message.errorMessage).toMatch(/filter ended the answer/);
      expect((await attempt(model, question(adapter, "Hi"))).reply?.message.stopReason).toBe("error");
    },
  );

  it("sends the system text where the provider wants it, and only once", async () => {
    await start(["One.", "Two."]);
    const model = adapter.create(simulator);
    const request = question(adapter, "Hi");
    await model.chat(request);
    const body = JSON.stringify(simulator.requests[0]?.body);
    expect(body.match(/You help\./g)).toHaveLength(1);
    if (adapter.target === "anthropic" || adapter.target === "openai-responses") return;
    // History has put it there already.
    await model.chat({ ...request, messages: [{ role: "system", content: "You help." }, ...request.messages] });
    expect(JSON.stringify(simulator.requests[1]?.body).match(/You help\./g)).toHaveLength(1);
  });
});

/** Neighboring pieces of one kind joined. */
function joined(deltas: readonly ChatDelta[]): readonly string[] {
  const lines: string[] = [];
  let last = "";
  for (const delta of deltas) {
    if (delta.type === "tool-call") lines.push(`${delta.id} ${delta.name}`);
    else if (delta.type === last) lines.push(`${lines.pop() ?? ""}${delta.text}`);
    else lines.push(`${delta.type}: ${delta.text}`);
    last = delta.type;
  }
  return lines;
}

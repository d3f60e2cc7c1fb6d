import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChatRequest } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { anthropic } from "@throughline/models/anthropic";
import { ollama } from "@throughline/models/ollama";
import { openai } from "@throughline/models/openai";

let simulator: ProviderSimulator;

beforeEach(async () => {
  simulator = createProviderSimulator({
    fallback: () => ({ kind: "answer", content: [{ type: "json", value: { city: "Graz" } }] }),
    models: { "*": { windowTokens: 1_000_000 } },
  });
  await simulator.start();
});
afterEach(() => simulator.close());

const models: Readonly<Record<string, (modelId?: string) => SessionModel>> = {
  anthropic: (id = "claude-opus-5") => anthropic(id, { apiKey: "k", baseUrl: simulator.url }),
  openai: (id = "gpt-5") => openai(id, { apiKey: "k", baseUrl: `${simulator.url}/v1`, api: "openai" }),
  "openai-responses": (id = "gpt-5") =>
    openai(id, { apiKey: "k", baseUrl: `${simulator.url}/v1`, api: "openai-responses" }),
  ollama: (id = "qwen3") => ollama(id, { baseUrl: simulator.url }),
};

const tools = [{ name: "look", description: "Looks.", inputSchema: { type: "object", properties: {} } }];
const closed = {
  type: "object",
  properties: { city: { type: "string", minLength: 1 }, size: { type: "integer", minimum: 0 } },
  required: ["city"],
};

function requestFor(api: string, rest: Partial<ChatRequest>): ChatRequest {
  const model = models[api]?.();
  const message = { role: "user", content: "Where?" };
  return { modelId: model?.modelId ?? "", system: null, messages: [message], maxOutputTokens: 4000, ...rest };
}

const lastBody = (): Readonly<Record<string, unknown>> =>
  simulator.requests.at(-1)?.body as Readonly<Record<string, unknown>>;

describe.each(Object.keys(models))("%s", (api) => {
  const model = (): SessionModel => (models[api] as () => SessionModel)();

  it.each([true, false])("answers in JSON of a schema that no provider refuses (streamed: %s)", async (isStreamed) => {
    const { chat, modelId } = model();
    const output = { name: "answer", schema: closed };
    expect(chat.acceptsOutput?.({ modelId, output })).toBe(true);
    const onDelta = isStreamed ? { onDelta: () => {} } : {};
    const reply = await chat.chat(requestFor(api, { output, ...onDelta }));
    expect(simulator.refusals).toEqual([]);
    expect(reply.message.content).toMatchObject([{ type: "text", text: '{"city":"Graz"}' }]);
  });

  it("sends every choice that it lists, and no field for the usual one", async () => {
    const { chat } = model();
    for (const name of chat.toolChoices ?? []) {
      const toolChoice = name === "tool" ? { tool: "look" } : name;
      await chat.chat(requestFor(api, { tools, toolChoice, thinkingLevel: "low" }));
    }
    expect(simulator.refusals).toEqual([]);
    await chat.chat(requestFor(api, { tools }));
    expect(lastBody()).not.toHaveProperty("tool_choice");
  });
});

it("thinks in no call of Anthropic that must use a tool", async () => {
  const { chat } = (models["anthropic"] as () => SessionModel)();
  await chat.chat(requestFor("anthropic", { tools, toolChoice: "required", thinkingLevel: "high" }));
  expect(lastBody()).not.toHaveProperty("thinking");
  await chat.chat(requestFor("anthropic", { tools, toolChoice: "none", thinkingLevel: "high" }));
  expect(lastBody()).toMatchObject({ thinking: { type: "adaptive" }, output_config: { effort: "high" } });
});

it("keeps the effort beside the schema", async () => {
  const { chat } = (models["anthropic"] as () => SessionModel)();
  const output = { name: "answer", schema: closed };
  await chat.chat(requestFor("anthropic", { output, thinkingLevel: "high" }));
  expect(lastBody()).toMatchObject({ output_config: { effort: "high", format: { type: "json_schema" } } });
});

it("leaves the tools out where Ollama is to call none", async () => {
  const { chat } = (models["ollama"] as () => SessionModel)();
  await chat.chat(requestFor("ollama", { tools, toolChoice: "none" }));
  expect(lastBody()).not.toHaveProperty("tools");
});

describe("a schema", () => {
  const record = {
    type: "object",
    properties: { sizes: { type: "object", additionalProperties: { type: "number" } } },
  };
  const output = { name: "answer", schema: record };

  it("with arbitrary keys is not for Anthropic's JSON mode, and for OpenAI's without strictness", async () => {
    const { chat: claude } = (models["anthropic"] as () => SessionModel)();
    expect(claude.acceptsOutput?.({ modelId: "claude-opus-5", output })).toBe(false);
    const { chat: gpt } = (models["openai"] as () => SessionModel)();
    await gpt.chat(requestFor("openai", { output }));
    expect(simulator.refusals).toEqual([]);
    expect(lastBody()).toMatchObject({ response_format: { json_schema: { strict: false, schema: record } } });
  });

  it("that names all fields is strict, and its limits move into the descriptions", async () => {
    const { chat } = (models["openai-responses"] as () => SessionModel)();
    const schema = { ...closed, required: ["city", "size"] };
    await chat.chat(requestFor("openai-responses", { output: { name: "answer", schema } }));
    expect(lastBody()).toMatchObject({
      text: {
        format: {
          strict: true,
          schema: {
            additionalProperties: false,
            properties: { city: { type: "string", description: "minLength: 1" }, size: { description: "minimum: 0" } },
          },
        },
      },
    });
  });
});

it.each([
  ["anthropic", "claude-sonnet-4-0", false],
  ["anthropic", "claude-3-5-haiku-latest", false],
  ["anthropic", "claude-sonnet-4-5", true],
  ["openai", "gpt-4", false],
  ["openai", "gpt-4-turbo", false],
  ["openai", "gpt-4.1", true],
  ["openai-responses", "gpt-4o-mini", true],
])("%s: %s answers in JSON: %s", (api, modelId, expected) => {
  const { chat } = (models[api] as () => SessionModel)();
  expect(chat.acceptsOutput?.({ modelId, output: { name: "answer", schema: closed } })).toBe(expected);
});

it("gives a tool, not a schema, to servers that only copy OpenAI's API", () => {
  const { chat } = openai("qwen3", { baseUrl: "http://127.0.0.1:9/v1", provider: "vllm" });
  expect(chat.acceptsOutput?.({ modelId: "qwen3", output: { name: "answer", schema: closed } })).toBe(false);
});

it("gives no schema to Ollama beside tools, because the schema would keep the model from calling them", () => {
  const { chat } = (models["ollama"] as () => SessionModel)();
  const output = { name: "answer", schema: closed };
  expect(chat.acceptsOutput?.({ modelId: "qwen3", tools, output })).toBe(false);
});

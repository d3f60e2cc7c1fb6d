import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import type { ProviderSimulatorOptions } from "@throughline/testing";
import type { GatewayOptions, ServerOptions } from "@throughline/server";
import { createMemoryStore } from "@throughline/store-memory";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";
import { createLeavingStore } from "./leaving-store.ts";

let gateway: GatewayServing | null = null;
afterEach(async () => {
  await gateway?.close();
  gateway = null;
});

const small = { windowTokens: 4000, maxOutputTokens: 1000 };
const simulated: ProviderSimulatorOptions = {
  models: { "*": small },
  ollamaContextTokens: 2000,
  fallback: () => "It fits now.",
};

async function start(
  options: ProviderSimulatorOptions = {},
  more: Partial<ServerOptions> = {},
  own: Partial<GatewayOptions> = {},
): Promise<GatewayServing> {
  gateway = await serveGateway({ ...simulated, ...options }, more, own, { mode: "guard" });
  return gateway;
}

const long = (index: number): string => `line ${index} of a long file\n`.repeat(150);
const turns = Array.from({ length: 8 }, (_, index) => index);
const call = (index: number): object => ({ name: "read", arguments: JSON.stringify({ path: `${index}.txt` }) });
const anthropicMessages = turns.flatMap((index) => [
  {
    role: "user",
    content: [
      { type: "text", text: `Read file ${index}.`, ...(index < 7 ? {} : { cache_control: { type: "ephemeral" } }) },
    ],
  },
  {
    role: "assistant",
    content: [{ type: "tool_use", id: `t${index}`, name: "read", input: { path: `${index}.txt` } }],
  },
  { role: "user", content: [{ type: "tool_result", tool_use_id: `t${index}`, content: long(index) }] },
  { role: "assistant", content: [{ type: "text", text: `I have read file ${index}.` }] },
]);
const chatMessages = [
  { role: "system", content: "You help." },
  ...turns.flatMap((index) => [
    { role: "user", content: `Read file ${index}.` },
    { role: "assistant", content: null, tool_calls: [{ id: `t${index}`, type: "function", function: call(index) }] },
    { role: "tool", tool_call_id: `t${index}`, content: long(index) },
    { role: "assistant", content: `I have read file ${index}.` },
  ]),
  { role: "user", content: "What did they say?" },
];
const items = [
  ...turns.flatMap((index) => [
    { role: "user", content: `Read file ${index}.` },
    { type: "function_call", call_id: `t${index}`, ...call(index) },
    { type: "function_call_output", call_id: `t${index}`, output: long(index) },
    { role: "assistant", content: `I have read file ${index}.` },
  ]),
  { role: "user", content: "What did they say?" },
];
const ollamaMessages = turns.flatMap((index) => [
  { role: "user", content: `Read file ${index}.` },
  { role: "assistant", content: "", tool_calls: [{ function: { name: "read", arguments: { path: `${index}.txt` } } }] },
  { role: "tool", tool_name: "read", content: long(index) },
  { role: "assistant", content: `I have read file ${index}.` },
]);
const question = { role: "user", content: "What did they say?" };

type Ask = (serving: { readonly url: string; readonly key: string; readonly fetch: typeof fetch }) => Promise<string>;

const anthropicRequest = {
  model: "claude-opus-5",
  max_tokens: 300,
  messages: [...anthropicMessages, question] as Anthropic.MessageParam[],
};
const asks: Readonly<Record<string, readonly [upstream: string, ask: Ask]>> = {
  "anthropic whole": [
    "anthropic",
    async ({ url, key, fetch }) => {
      const client = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0, fetch });
      return JSON.stringify((await client.messages.create(anthropicRequest)).content);
    },
  ],
  "anthropic stream": [
    "anthropic",
    async ({ url, key, fetch }) => {
      const client = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0, fetch });
      return client.messages.stream(anthropicRequest).finalText();
    },
  ],
  "chat whole": [
    "openai",
    async ({ url, key, fetch }) => {
      const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, fetch });
      const { choices } = await client.chat.completions.create({ model: "gpt-4.1", messages: chatMessages as never });
      return choices[0]?.message.content ?? "";
    },
  ],
  "chat stream": [
    "openai",
    async ({ url, key, fetch }) => {
      const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, fetch });
      const request = { model: "gpt-4.1", messages: chatMessages as never, stream: true as const };
      let text = "";
      for await (const { choices } of await client.chat.completions.create(request))
        text += choices[0]?.delta.content ?? "";
      return text;
    },
  ],
  "responses whole": [
    "openai",
    async ({ url, key, fetch }) => {
      const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, fetch });
      return (await client.responses.create({ model: "gpt-4.1", input: items as never, store: false })).output_text;
    },
  ],
  "responses stream": [
    "openai",
    async ({ url, key, fetch }) => {
      const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, fetch });
      const request = { model: "gpt-4.1", input: items as never, store: false, stream: true as const };
      let text = "";
      for await (const event of await client.responses.create(request))
        if (event.type === "response.output_text.delta") text += event.delta;
      return text;
    },
  ],
};

const read = (at: GatewayServing, name: string): Parameters<Ask>[0] & { readonly heads: Headers[] } => {
  const heads: Headers[] = [];
  const own: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    heads.push(answer.headers);
    return answer;
  };
  return { url: `${at.url}/${name}`, key: at.token, fetch: own, heads };
};
const metricsOf = async ({ serving }: GatewayServing): Promise<string> =>
  (await fetch(`${serving.url}/metrics`, { headers: { authorization: `Bearer ${serving.token}` } })).text();

/** Sends a body as it is; the answer with its bytes. */
async function post(at: GatewayServing, path: string, body: unknown): Promise<{ answer: Response; text: string }> {
  const answer = await fetch(`${at.url}/${path}`, {
    method: "POST",
    headers: { "x-api-key": at.token, authorization: `Bearer ${at.token}`, "anthropic-version": "2023-06-01" },
    body: JSON.stringify(body),
  });
  return { answer, text: await answer.text() };
}

/** Both attempts are in the log behind those that were there, and both requests are given back byte for byte. */
async function assertBothKept(at: GatewayServing, known: ReadonlySet<string> = new Set()): Promise<string> {
  const calls = (await at.calls(known.size * 2 + 2)).filter(({ turnId }) => !known.has(turnId));
  expect(calls.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
    [0, "overflowed"],
    [1, "answered"],
  ]);
  expect(new Set(calls.map(({ turnId }) => turnId)).size).toBe(1);
  const rebuilt = await Promise.all(calls.map(async (one) => sha256(await at.requestOf(one))));
  expect(rebuilt).toEqual(at.simulator.requests.slice(-2).map(({ bytes }) => sha256(bytes)));
  return calls[0]?.turnId ?? "";
}

describe("an overflow", () => {
  it("is healed with one rebuilt request on each surface, whole and streamed", { tags: ["slow"] }, async () => {
    const at = await start();
    const known = new Set<string>();
    for (const [name, [upstream, ask]] of Object.entries(asks)) {
      const base = read(at, upstream);
      expect([name, await ask(base)]).toEqual([name, expect.stringContaining("It fits now.")]);
      expect(at.simulator.requests).toHaveLength(known.size * 2 + 2);
      expect(base.heads[0]?.get("throughline-guard")).toMatch(/^(?:truncated|compacted); call=call-[\w-]+$/);
      known.add(await assertBothKept(at, known));
    }
    expect(new Set(at.simulator.refusals.map(({ kind }) => kind))).toEqual(new Set(["overflow"]));
    expect(await metricsOf(at)).toMatch(/^throughline_gateway_guard_total\{action="(?:truncated|compacted)"\} \d$/m);
    // What the log has of the conversation is what the client said, and not what was sent in its place.
    const [first] = await at.calls(1);
    const { body } = await at.serving.ask("GET", `/sessions/${first?.session}/records?limit=500`, { token: at.token });
    const records = body["items"] as readonly { readonly record: Record<string, unknown> }[];
    const said = JSON.stringify(records.filter(({ record }) => record["type"] === "message"));
    expect(said).toContain(JSON.stringify(long(7)).slice(1, -1));
    expect(said).not.toContain("truncated (");
    const changes = JSON.stringify(records.filter(({ record }) => record["customType"] === "throughline.call"));
    expect(changes).toContain('"changes":[{"recordId":"m');
  });

  it("of a conversation without results is summed up, with the beginning of the messages left out", async () => {
    const at = await start();
    const messages = turns.flatMap((index) => [
      { role: "user", content: `Remember ${index}: ${long(index)}` },
      { role: "assistant", content: `I remember ${index}.` },
    ]);
    const { answer, text } = await post(at, "anthropic/v1/messages", {
      model: "claude-opus-5",
      max_tokens: 300,
      messages: [...messages, question],
    });
    expect([answer.status, answer.headers.get("throughline-guard")]).toEqual([
      200,
      expect.stringMatching(/^compacted; /),
    ]);
    expect(text).toContain("It fits now.");
    const sent = JSON.stringify(at.simulator.requests[1]?.body);
    expect(sent).toContain("[Previous conversation summary]");
    expect(sent).toContain("What did they say?");
    await assertBothKept(at);
  });

  it("at Ollama is seen before it would be cut without a word", async () => {
    const at = await start({ models: { "*": { windowTokens: 100_000 } } });
    const base = read(at, "ollama");
    const client = new Ollama({ host: base.url, headers: { authorization: `Bearer ${base.key}` }, fetch: base.fetch });
    const messages = [...ollamaMessages, question];
    for (const stream of [false, true]) {
      const options = { num_ctx: 2000 };
      const request = { model: "qwen3:8b", messages, options };
      if (!stream) expect((await client.chat({ ...request, stream: false })).message.content).toBe("It fits now.");
      else
        for await (const part of await client.chat({ ...request, stream: true })) expect(part.model).toBe("qwen3:8b");
    }
    const asked = at.simulator.requests.filter(({ path }) => path === "/api/chat");
    expect(asked).toHaveLength(2);
    for (const { body, promptTokens } of asked) {
      expect(body).toMatchObject({ truncate: false, shift: false });
      expect(promptTokens).toBeLessThan(2000);
    }
    expect(at.simulator.refusals).toEqual([]);
    expect(base.heads.map((headers) => headers.get("throughline-guard")?.split(";")[0])).toContain("truncated");
    // One that fits is sent as it is.
    await client.chat({ model: "qwen3:8b", messages: [question], options: { num_ctx: 2000 }, stream: false });
    expect(at.simulator.requests.at(-1)?.body).not.toHaveProperty("truncate");
  });

  it("is kept in the spool while the store is away, with both attempts", async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-guard-"));
    const leaving = createLeavingStore(createMemoryStore());
    const at = await start({}, { openStore: () => leaving.store }, { spoolFolder: folder });
    leaving.leave("fails");
    expect((await post(at, "anthropic/v1/messages", anthropicRequest)).answer.status).toBe(200);
    await expect.poll(() => readdirSync(folder)).toHaveLength(1);
    leaving.comeBack();
    await assertBothKept(at);
    await expect.poll(() => readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});

describe("an invalid history", () => {
  const orphan = [
    { role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] },
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: { path: "a", size: 1 } }] },
    { role: "user", content: "Never mind." },
  ];

  it.each([
    ["anthropic/v1/messages", { model: "claude-opus-5", max_tokens: 99, messages: orphan }],
    [
      "openai/v1/chat/completions",
      {
        model: "gpt-4.1",
        messages: [
          { role: "system", content: "You help." },
          { role: "user", content: "Hi" },
          { role: "assistant", content: null, tool_calls: [{ id: "t1", type: "function", function: call(1) }] },
          { role: "user", content: "Never mind." },
        ],
      },
    ],
    [
      "openai/v1/responses",
      {
        model: "gpt-4.1",
        store: false,
        input: [
          { role: "user", content: "Hi" },
          { type: "function_call", call_id: "t1", ...call(1) },
          { role: "user", content: "Never mind." },
        ],
      },
    ],
  ])("is repaired at %s", async (path, body) => {
    const at = await start();
    const { answer, text } = await post(at, path, body);
    expect([answer.status, answer.headers.get("throughline-guard")]).toEqual([
      200,
      expect.stringMatching(/^repaired; /),
    ]);
    expect(text).toContain("It fits now.");
    expect(at.simulator.refusals.map(({ kind }) => kind)).toEqual(["invalid"]);
    const calls = await at.calls(2);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["failed", "answered"]);
    const rebuilt = await Promise.all(calls.map(async (one) => sha256(await at.requestOf(one))));
    expect(rebuilt).toEqual(at.simulator.requests.map(({ bytes }) => sha256(bytes)));
    // What needed no repair is as the client wrote it, with its marks.
    if (path.startsWith("anthropic")) expect(JSON.stringify(at.simulator.requests[1]?.body)).toContain("cache_control");
  });
});

describe("a refusal that cannot be healed", () => {
  const one = [{ role: "user", content: "w ".repeat(20_000) }];
  const hi = [{ role: "user", content: "Hi" }];

  it.each([
    ["one message that is too large", { messages: one }, null, 1],
    ["a wrong value", { messages: hi }, { kind: "error", status: 400, message: "temperature: must be at most 1" }, 1],
    ["a rate limit", { messages: hi }, { kind: "error", status: 429, retryAfterMs: 20 }, 1],
    ["an overload", { messages: hi }, { kind: "error", status: 529 }, 1],
    [
      "a limit of tokens a minute",
      { messages: hi },
      { kind: "error", status: 429, message: "Too many tokens per minute" },
      1,
    ],
    ["no credentials", { messages: hi }, { kind: "error", status: 401 }, 1],
  ] as const)("goes back unchanged: %s", async (_, body, reply, count) => {
    const at = await start({ replies: reply === null ? [] : [reply, reply] });
    const request = { model: "claude-opus-5", max_tokens: 300, ...body };
    const { answer, text } = await post(at, "anthropic/v1/messages", request);
    expect(at.simulator.requests).toHaveLength(count);
    const direct = await fetch(`${at.simulator.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": "provider-key", "anthropic-version": "2023-06-01" },
      body: JSON.stringify(request),
    });
    const withoutId = (said: string): string => said.replaceAll(/req_\w+/g, "id");
    expect([answer.status, withoutId(text)]).toEqual([direct.status, withoutId(await direct.text())]);
    expect(answer.headers.get("content-type")).toBe(direct.headers.get("content-type"));
    expect(answer.headers.get("retry-after-ms")).toBe(direct.headers.get("retry-after-ms"));
  });

  const overflow = {
    kind: "error",
    status: 400,
    message: "prompt is too long: 9000 tokens > 4000 maximum",
  } as const;

  it("goes back unchanged where the rebuilt request is refused too", async () => {
    const at = await start({
      models: {},
      replies: [overflow, { ...overflow, message: "prompt is too long: 8000 tokens > 10 maximum" }],
    });
    const { answer, text } = await post(at, "anthropic/v1/messages", anthropicRequest);
    expect([answer.status, JSON.parse(text)]).toEqual([
      400,
      expect.objectContaining({ error: expect.objectContaining({ message: overflow.message }) }),
    ]);
    expect(answer.headers.get("throughline-guard")).toMatch(/; refused$/);
    expect(at.simulator.requests).toHaveLength(2);
    expect((await at.calls(2)).map(({ outcome }) => outcome)).toEqual(["overflowed", "failed"]);
    expect(await metricsOf(at)).toContain('throughline_gateway_guard_total{action="refused"} 1');
  });

  it("is what the rebuilt request met, where the client may repeat that", async () => {
    const at = await start({ models: {}, replies: [overflow, { kind: "error", status: 529, retryAfterMs: 30 }] });
    const { answer } = await post(at, "anthropic/v1/messages", anthropicRequest);
    expect([answer.status, answer.headers.get("retry-after-ms")]).toEqual([529, "30"]);
  });
});

describe("record mode", () => {
  it("is what a client that may write can ask for, and no other", async () => {
    const at = await start();
    const headers = { "x-api-key": at.token, "anthropic-version": "2023-06-01", "throughline-mode": "record" };
    const body = JSON.stringify(anthropicRequest);
    const refused = await fetch(`${at.url}/anthropic/v1/messages`, { method: "POST", headers, body });
    expect([refused.status, refused.headers.get("throughline-error")]).toEqual([403, "FORBIDDEN"]);
    const writer = await at.serving.tokenOf({ namespace: "", scopes: ["read", "write", "gateway:anthropic"] });
    const asked = { ...headers, "x-api-key": writer };
    const answer = await fetch(`${at.url}/anthropic/v1/messages`, { method: "POST", headers: asked, body });
    expect(answer.status).toBe(400);
    const wrong = { ...asked, "throughline-mode": "other" };
    expect((await fetch(`${at.url}/anthropic/v1/messages`, { method: "POST", headers: wrong, body })).status).toBe(400);
    expect(at.simulator.requests).toHaveLength(1);
  });
});

import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator, type SimulatedReply } from "@throughline/testing";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";

let gateway: GatewayServing | null = null;
afterEach(async () => {
  await gateway?.close();
  gateway = null;
});

const tool = {
  name: "read",
  description: "Reads a file.",
  schema: { type: "object", properties: { path: { type: "string" } } },
};
const withCall: SimulatedReply = {
  kind: "answer",
  content: [
    { type: "text", text: "I look at both files, é and 漢字." },
    { type: "tool-call", name: "read", input: { path: "a.txt" } },
    { type: "tool-call", name: "read", input: { path: "b.txt" } },
  ],
};

type Fetch = typeof fetch;
type Ask = (base: {
  readonly url: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly fetch: Fetch;
}) => Promise<unknown>;

const anthropicRequest = {
  model: "claude-opus-5",
  max_tokens: 500,
  system: "You help.",
  messages: [{ role: "user" as const, content: "Hi" }],
};
const anthropicTools = [
  { name: tool.name, description: tool.description, input_schema: tool.schema as { type: "object" } },
];
const openAiTools = [
  { type: "function" as const, function: { name: tool.name, description: tool.description, parameters: tool.schema } },
];
const responsesTools = [
  { type: "function" as const, name: tool.name, description: tool.description, parameters: tool.schema, strict: false },
];

const anthropicOf = ({ url, key, headers, fetch }: Parameters<Ask>[0]): Anthropic =>
  new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0, defaultHeaders: headers, fetch });
const openAiOf = ({ url, key, headers, fetch }: Parameters<Ask>[0]): OpenAI =>
  new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, defaultHeaders: headers, fetch });
const ollamaOf = ({ url, key, headers, fetch }: Parameters<Ask>[0]): Ollama =>
  new Ollama({ host: url, headers: { ...headers, authorization: `Bearer ${key}` }, fetch });

async function all(stream: AsyncIterable<unknown>): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

const asks: Readonly<Record<string, readonly [upstream: string, ask: Ask]>> = {
  "anthropic whole": [
    "anthropic",
    async (base) => anthropicOf(base).messages.create({ ...anthropicRequest, tools: anthropicTools }),
  ],
  "anthropic stream": [
    "anthropic",
    async (base) =>
      all(await anthropicOf(base).messages.create({ ...anthropicRequest, tools: anthropicTools, stream: true })),
  ],
  "chat whole": [
    "openai",
    async (base) =>
      openAiOf(base).chat.completions.create({
        model: "gpt-5",
        messages: [{ role: "user", content: "Hi" }],
        tools: openAiTools,
      }),
  ],
  "chat stream": [
    "openai",
    async (base) =>
      all(
        await openAiOf(base).chat.completions.create({
          model: "gpt-5",
          messages: [{ role: "user", content: "Hi" }],
          tools: openAiTools,
          stream: true,
          stream_options: { include_usage: true },
        }),
      ),
  ],
  "responses whole": [
    "openai",
    async (base) => openAiOf(base).responses.create({ model: "gpt-5", input: "Hi", tools: responsesTools }),
  ],
  "responses stream": [
    "openai",
    async (base) =>
      all(await openAiOf(base).responses.create({ model: "gpt-5", input: "Hi", tools: responsesTools, stream: true })),
  ],
  "ollama whole": [
    "ollama",
    async (base) =>
      ollamaOf(base).chat({
        model: "qwen3:8b",
        messages: [{ role: "user", content: "Hi" }],
        tools: openAiTools as never,
      }),
  ],
  "ollama stream": [
    "ollama",
    async (base) =>
      all(
        await ollamaOf(base).chat({
          model: "qwen3:8b",
          messages: [{ role: "user", content: "Hi" }],
          tools: openAiTools as never,
          stream: true,
        }),
      ),
  ],
};

/** What came of a call: the result, or the error that the SDK throws, and the bytes of the answer. */
async function outcomeOf(
  ask: Ask,
  base: Omit<Parameters<Ask>[0], "fetch">,
): Promise<{ readonly said: unknown; readonly bytes: string; readonly headers: readonly unknown[] }> {
  const bodies: Promise<ArrayBuffer>[] = [];
  const headers: unknown[] = [];
  const watching: Fetch = async (input, init) => {
    const answer = await fetch(input, init);
    const [one, other] = answer.body?.tee() ?? [null, null];
    headers.push([answer.status, answer.headers.get("content-type"), answer.headers.get("retry-after-ms")]);
    bodies.push(new Response(other).arrayBuffer().catch(() => new ArrayBuffer(0)));
    return new Response(one, { status: answer.status, headers: answer.headers });
  };
  let said: unknown;
  try {
    said = plain(await ask({ ...base, fetch: watching }));
  } catch (error) {
    const { name, message, status } = error as Error & { readonly status?: number };
    said = { name, message, status };
  }
  const bytes = await Promise.all(bodies);
  return { said, bytes: sha256(Buffer.concat(bytes.map((body) => Buffer.from(body)))), headers };
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

const replies: Readonly<Record<string, SimulatedReply>> = {
  answer: withCall,
  "one byte at a time": { ...withCall, chunkBytes: [1] },
  401: { kind: "error", status: 401 },
  429: { kind: "error", status: 429, retryAfterMs: 1200 },
  500: { kind: "error", status: 500 },
  529: { kind: "error", status: 529 },
  "broken off": { ...withCall, breakAfter: { events: 4, how: "cut" } },
  "error in the stream": { ...withCall, breakAfter: { events: 3, how: "error-event" } },
};

describe("official SDKs through the gateway", () => {
  it("get what they get without it, and the log gives back every request byte for byte", async () => {
    const direct = createProviderSimulator();
    await direct.start();
    gateway = await serveGateway();
    const { url, token, simulator, ownSimulator } = gateway;
    for (const [which, [upstream, ask]] of Object.entries(asks))
      for (const [kind, reply] of Object.entries(replies)) {
        if (which.endsWith("stream") ? /^(401|500|529)$/.test(kind) : /^one byte|in the stream$/.test(kind)) continue;
        for (const each of [direct, simulator, ownSimulator]) each.enqueue(reply);
        const name = `${which}, ${kind}`;
        const alone = await outcomeOf(ask, { url: direct.url, key: "provider-key", headers: {} });
        const own = await outcomeOf(ask, { url: `${url}/${upstream}`, key: token, headers: {} });
        const headers = { "throughline-token": token };
        const caller = await outcomeOf(ask, { url: `${url}/own-${upstream}`, key: "the caller's key", headers });
        expect([name, own]).toEqual([name, alone]);
        expect([name, caller]).toEqual([name, alone]);
        const sent = [direct, simulator, ownSimulator].map(({ requests }) => requests.at(-1));
        expect([name, sent.map((request) => sha256(request?.bytes ?? new Uint8Array()))]).toEqual([
          name,
          sent.map(() => sha256(sent[0]?.bytes ?? new Uint8Array())),
        ]);
        const keys = sent.slice(1).map((request) => request?.headers["x-api-key"] ?? request?.headers["authorization"]);
        expect(keys.map((key) => String(key).replace("Bearer ", ""))).toEqual(["provider-key", "the caller's key"]);
      }
    const received = [...simulator.requests, ...ownSimulator.requests];
    expect(JSON.stringify(received.map(({ headers }) => headers))).not.toMatch(/throughline|tl_/);
    const calls = await gateway.calls(received.length);
    const rebuilt = await Promise.all(
      calls.map(async (call) => sha256(await (gateway as GatewayServing).requestOf(call))),
    );
    expect(rebuilt.toSorted()).toEqual(received.map(({ bytes }) => sha256(bytes)).toSorted());
    await direct.close();
  });
});

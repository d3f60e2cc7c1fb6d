import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import type { ProviderSimulatorOptions } from "@throughline/testing";
import { createMemoryStore } from "@throughline/store-memory";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";
import { createLeavingStore, type LeavingStore } from "./leaving-store.ts";

let gateway: GatewayServing | null = null;
let inner: SessionStore;
let leaving: LeavingStore;
beforeEach(() => {
  inner = createMemoryStore();
  leaving = createLeavingStore(inner);
});
afterEach(async () => {
  leaving.comeBack();
  await gateway?.close();
  gateway = null;
});

let said = 0;
async function start(options: ProviderSimulatorOptions = {}): Promise<GatewayServing> {
  said = 0;
  const store = { openStore: () => leaving.store };
  gateway = await serveGateway({ fallback: () => `Answer ${++said}.`, ...options }, store, {}, { mode: "stateful" });
  return gateway;
}

interface Posted {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: () => Record<string, unknown>;
}

async function post(
  at: GatewayServing,
  path: string,
  body: unknown,
  more: Record<string, string> = {},
  token = at.token,
): Promise<Posted> {
  const answer = await fetch(`${at.url}/${path}`, {
    method: "POST",
    headers: { "x-api-key": token, authorization: `Bearer ${token}`, "anthropic-version": "2023-06-01", ...more },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, json: () => JSON.parse(text) as never };
}

/** What the provider was sent last. */
const lastMessages = (at: GatewayServing): readonly (readonly [unknown, string])[] => {
  const last = at.simulator.requests.at(-1)?.body ?? {};
  const { messages, input } = last as Record<string, readonly Record<string, unknown>[]>;
  return (messages ?? input ?? []).map(({ role, type, content }) => [role ?? type, JSON.stringify(content)]);
};
const texts = (at: GatewayServing): string =>
  lastMessages(at)
    .map(([role, content]) => `${String(role)}: ${/(?:Question|Answer) \w+/.exec(content)?.[0] ?? content}`)
    .join(" | ");

/** All main messages of the session, in the order of the log. */
async function storedMessages(key: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { records } of inner.read({ namespace: "", agentId: "main", key }))
    for (const { record } of records)
      if (record.type === "message") {
        const { role, content } = record["message"] as { role: string; content: unknown };
        found.push(`${role}: ${/(?:Question|Answer) \w+/.exec(JSON.stringify(content))?.[0] ?? ""}`);
      }
  return found;
}

const claude = { model: "claude-opus-5", max_tokens: 99 };
const asking = (text: string): object => ({ ...claude, messages: [{ role: "user", content: text }] });
const session = { "throughline-session": "home" };

describe("a session that holds the history", () => {
  it("is continued by messages that are new, with the official SDKs", { tags: ["slow"] }, async () => {
    const at = await start();
    const anthropic = new Anthropic({
      apiKey: at.token,
      baseURL: `${at.url}/anthropic`,
      maxRetries: 0,
      defaultHeaders: session,
    });
    const ask = async (text: string): Promise<string> =>
      anthropic.messages.stream({ ...claude, messages: [{ role: "user", content: text }] }).finalText();
    expect([await ask("Question one"), await ask("Question two"), await ask("Question three")]).toEqual([
      "Answer 1.",
      "Answer 2.",
      "Answer 3.",
    ]);
    expect(texts(at)).toBe(
      "user: Question one | assistant: Answer 1 | user: Question two | assistant: Answer 2 | user: Question three",
    );
    const openai = new OpenAI({ apiKey: at.token, baseURL: `${at.url}/openai/v1`, maxRetries: 0 });
    const chat = { model: "gpt-5", stream: true as const };
    for (const text of ["Question one", "Question two"]) {
      const messages = [
        { role: "system" as const, content: "You help." },
        { role: "user" as const, content: text },
      ];
      const stream = await openai.chat.completions.create(
        { ...chat, messages },
        { headers: { "throughline-session": "chat" } },
      );
      for await (const part of stream) expect(part.object).toBe("chat.completion.chunk");
    }
    expect(texts(at)).toBe('system: "You help." | user: Question one | assistant: Answer 4 | user: Question two');
    const ollama = new Ollama({
      host: `${at.url}/ollama`,
      headers: { authorization: `Bearer ${at.token}`, "throughline-session": "local" },
    });
    for (const content of ["Question one", "Question two"])
      for await (const part of await ollama.chat({
        model: "qwen3:8b",
        messages: [{ role: "user", content }],
        stream: true,
      }))
        expect(part.model).toBe("qwen3:8b");
    expect(texts(at)).toBe("user: Question one | assistant: Answer 6 | user: Question two");
    const first = await openai.responses.create({ model: "gpt-5", input: "Question one" });
    const second = await openai.responses.create({
      model: "gpt-5",
      input: "Question two",
      previous_response_id: first.id,
    });
    expect(texts(at)).toBe("user: Question one | assistant: Answer 8 | user: Question two");
    // Another question after the first answer is a branch.
    await openai.responses.create({ model: "gpt-5", input: "Question other", previous_response_id: first.id });
    expect(texts(at)).toBe("user: Question one | assistant: Answer 8 | user: Question other");
    await openai.responses.create({ model: "gpt-5", input: "Question three", previous_response_id: second.id });
    expect(texts(at)).toBe(
      "user: Question one | assistant: Answer 8 | user: Question two | assistant: Answer 9 | user: Question three",
    );
    for (const name of ["previous_response_id", "conversation", "thread"])
      expect(at.simulator.requests.some(({ body }) => Object.hasOwn(body as object, name))).toBe(false);
    expect(at.simulator.refusals).toEqual([]);
    // Each request that the provider got is in the log.
    const calls = await at.calls(at.simulator.requests.length);
    const rebuilt = await Promise.all(calls.map(async (call) => sha256(await at.requestOf(call))));
    expect(rebuilt.toSorted()).toEqual(at.simulator.requests.map(({ bytes }) => sha256(bytes)).toSorted());
  });

  it("is named by a conversation, and begins with a call that names none", async () => {
    const at = await start();
    const body = (input: string): object => ({ model: "gpt-5", input, conversation: { id: "conv-1" } });
    await post(at, "openai/v1/responses", body("Question one"));
    await post(at, "openai/v1/responses", body("Question two"));
    expect(texts(at)).toBe("user: Question one | assistant: Answer 1 | user: Question two");
    const fresh = await post(at, "anthropic/v1/messages", asking("Question new"));
    expect(texts(at)).toBe("user: Question new");
    const key = fresh.headers.get("throughline-session") ?? "";
    await post(at, "anthropic/v1/messages", asking("Question next"), { "throughline-session": key }, at.token);
    expect(texts(at)).toBe("user: Question new | assistant: Answer 3 | user: Question next");
  });

  it("takes a client's own copy of the history for what it is", async () => {
    const at = await start();
    const messages: object[] = [];
    for (const text of ["Question one", "Question two", "Question three"]) {
      messages.push({ role: "user", content: text });
      const answer = await post(at, "anthropic/v1/messages", { ...claude, messages }, session);
      messages.push({ role: "assistant", content: answer.json()["content"] });
    }
    expect(texts(at)).toBe(
      "user: Question one | assistant: Answer 1 | user: Question two | assistant: Answer 2 | user: Question three",
    );
    const [call] = await at.calls(3);
    expect(await storedMessages(call?.session ?? "")).toHaveLength(6);
  });

  it("keeps tool calls and their results together", async () => {
    const call = {
      kind: "answer",
      content: [{ type: "tool-call", name: "read", input: { path: "a" }, id: "toolu_1" }],
    } as const;
    const at = await start({ replies: [call, "Answer done."] });
    const tools = [{ name: "read", description: "Reads.", input_schema: { type: "object" } }];
    await post(at, "anthropic/v1/messages", { ...(asking("Question one") as object), tools }, session);
    const result = { type: "tool_result", tool_use_id: "toolu_1", content: "text of a" };
    const request = { ...claude, tools, messages: [{ role: "user", content: [result] }] };
    expect((await post(at, "anthropic/v1/messages", request, session)).status).toBe(200);
    expect(at.simulator.refusals).toEqual([]);
    const [found] = await at.calls(2);
    const { body } = await at.serving.ask("GET", `/sessions/${found?.session}/records?limit=50`, { token: at.token });
    expect(JSON.stringify(body)).toContain('"toolName":"read"');
  });

  it("goes on behind what another program appended", async () => {
    const at = await start();
    const first = await post(at, "anthropic/v1/messages", asking("Question one"), session);
    const key = first.headers.get("throughline-session") ?? "";
    const ref = { namespace: "", agentId: "main", key };
    await inner.append(ref, [{ type: "message", message: { role: "user", content: "Question between" } }]);
    await post(at, "anthropic/v1/messages", asking("Question two"), session);
    await post(at, "anthropic/v1/messages", asking("Question three"), session);
    expect(texts(at)).toMatch(
      /^user: Question one \| assistant: Answer 1 \| user: Question between.* \| assistant: Answer 2 \| user: Question three$/,
    );
    expect(JSON.stringify(at.simulator.requests[1]?.body)).toContain("Question two");
  });
});

describe("a question", () => {
  it(
    "is on the disk before the provider is asked, and the reply before its end goes out",
    { tags: ["slow"] },
    async () => {
      const at = await start();
      for (const stream of [true, false]) {
        at.simulator.enqueue({ kind: "answer", content: `Answer ${String(stream)}`, delayMs: 150, eventDelayMs: 5 });
        const before = at.simulator.requests.length;
        const answering = fetch(`${at.url}/anthropic/v1/messages`, {
          method: "POST",
          headers: { "x-api-key": at.token, "anthropic-version": "2023-06-01", ...session },
          body: JSON.stringify({ ...(asking(`Question ${String(stream)}`) as object), stream }),
        });
        await expect.poll(() => at.simulator.requests.length).toBe(before + 1);
        const [{ ref } = { ref: null }] = (await inner.list({ namespace: "" })).sessions;
        expect(await storedMessages(ref?.key ?? "")).toContain(`user: Question ${String(stream)}`);
        const reader = (await answering).body?.getReader();
        let text = "";
        for (;;) {
          const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
          text += new TextDecoder().decode(value as Uint8Array | undefined);
          if (text.includes("message_stop") || done) break;
        }
        // Nothing is waited for.
        expect(await storedMessages(ref?.key ?? "")).toContain(`assistant: Answer ${String(stream)}`);
        await reader?.cancel();
      }
    },
  );

  it("that was not answered is asked again without being stored twice", async () => {
    const at = await start({
      replies: [
        { kind: "error", status: 529 },
        { kind: "error", status: 500 },
      ],
    });
    const statuses: number[] = [];
    for (let tries = 0; tries < 3; tries++)
      statuses.push((await post(at, "anthropic/v1/messages", asking("Question one"), session)).status);
    expect(statuses).toEqual([529, 500, 200]);
    const [call] = await at.calls(3);
    expect(await storedMessages(call?.session ?? "")).toEqual(["user: Question one", "assistant: Answer 1"]);
    // The same words again are another question, unless the SDK repeats a call whose end it did not hear.
    await post(at, "anthropic/v1/messages", asking("Question one"), session);
    expect(texts(at)).toBe("user: Question one | assistant: Answer 1 | user: Question one");
    await post(at, "anthropic/v1/messages", asking("Question one"), { ...session, "x-stainless-retry-count": "1" });
    expect(texts(at)).toBe("user: Question one | assistant: Answer 1 | user: Question one");
    expect((await storedMessages(call?.session ?? "")).filter((one) => one.startsWith("user"))).toHaveLength(2);
  });

  it.each([
    ["anthropic/v1/messages", asking("Question two"), { type: "error", error: { type: "invalid_request_error" } }],
    ["openai/v1/responses", { model: "gpt-5", input: "Question two" }, { error: { type: "invalid_request_error" } }],
    [
      "openai/v1/chat/completions",
      { model: "gpt-5", messages: [{ role: "user", content: "Question two" }] },
      { error: {} },
    ],
    [
      "ollama/api/chat",
      { model: "qwen3:8b", messages: [{ role: "user", content: "Question two" }] },
      { error: expect.any(String) },
    ],
  ])(
    "while another one is answered is 409, which SDKs repeat, at %s",
    { tags: ["slow"] },
    async (path, body, shape) => {
      const at = await start();
      at.simulator.enqueue({ kind: "answer", content: "Answer slow.", delayMs: 700 });
      const first = post(at, "anthropic/v1/messages", asking("Question one"), session);
      await expect.poll(() => at.simulator.requests.length).toBe(1);
      const second = await post(at, path, body, session);
      expect([second.status, second.headers.get("retry-after-ms"), second.json()]).toEqual([
        409,
        "1000",
        expect.objectContaining(shape.error === undefined ? {} : { error: expect.anything() }),
      ]);
      expect(second.json()).toMatchObject(shape);
      expect((await first).status).toBe(200);
      expect(at.simulator.requests).toHaveLength(1);
    },
  );

  it("waits its turn by the SDK's own repeats", { tags: ["slow"] }, async () => {
    const at = await start();
    at.simulator.enqueue({ kind: "answer", content: "Answer slow.", delayMs: 500 });
    const first = post(at, "anthropic/v1/messages", asking("Question one"), session);
    await expect.poll(() => at.simulator.requests.length).toBe(1);
    const client = new Anthropic({ apiKey: at.token, baseURL: `${at.url}/anthropic`, defaultHeaders: session });
    const second = await client.messages.create(asking("Question two") as never);
    expect(JSON.stringify(second)).toContain("Answer 1.");
    await first;
    expect(texts(at)).toBe("user: Question one | assistant: Answer slow | user: Question two");
  });

  it("that is too long for the window is asked with what fits", async () => {
    const at = await start({ models: { "*": { windowTokens: 3000 } } });
    for (let index = 0; index < 8; index++) {
      const answer = await post(
        at,
        "anthropic/v1/messages",
        asking(`Question ${index} ${"and so on ".repeat(200)}`),
        session,
      );
      expect([index, answer.status]).toEqual([index, 200]);
    }
    expect(at.simulator.refusals.length).toBeGreaterThan(0);
  });
});

describe("ids of others", () => {
  it("lead nowhere, and the provider hears nothing", async () => {
    const at = await start();
    const other = await at.serving.tokenOf({ namespace: "", scopes: ["read", "gateway:openai", "gateway:anthropic"] });
    const first = await post(at, "openai/v1/responses", { model: "gpt-5", input: "Question one" });
    const id = String(first.json()["id"]);
    const key = first.headers.get("throughline-session") ?? "";
    const asks: readonly (readonly [string, object, Record<string, string>, number])[] = [
      ["openai/v1/responses", { model: "gpt-5", input: "Question", previous_response_id: id }, {}, 404],
      ["openai/v1/responses", { model: "gpt-5", input: "Question", conversation: key }, {}, 403],
      ["anthropic/v1/messages", { ...(asking("Question") as object), thread: { previous_message_id: id } }, {}, 404],
      ["anthropic/v1/messages", asking("Question"), { "throughline-session": key }, 403],
    ];
    for (const [path, body, headers, status] of asks)
      expect([path, (await post(at, path, body, headers, other)).status]).toEqual([path, status]);
    // A name of the same letters is a session of its own.
    await post(at, "openai/v1/responses", { model: "gpt-5", input: "Question mine", conversation: "c" });
    await post(at, "openai/v1/responses", { model: "gpt-5", input: "Question other", conversation: "c" }, {}, other);
    expect(texts(at)).toBe("user: Question other");
    expect(at.simulator.requests).toHaveLength(3);
  });
});

describe("a call that cannot be kept", () => {
  it("is refused before the provider is asked", async () => {
    const at = await start();
    leaving.leave("fails");
    const answer = await post(at, "anthropic/v1/messages", asking("Question one"), session);
    expect([answer.status, answer.headers.get("throughline-error")]).toEqual([503, "STORE_UNREACHABLE"]);
    leaving.comeBack();
    const odd = await post(at, "ollama/api/generate", { model: "m", prompt: "Question" });
    expect([odd.status, odd.headers.get("throughline-error")]).toEqual([400, "INPUT_INVALID"]);
    expect(at.simulator.requests).toEqual([]);
  });

  it("has no end that the client hears where the store goes in between", { tags: ["slow"] }, async () => {
    const at = await start();
    at.simulator.enqueue({ kind: "answer", content: "Answer late.", delayMs: 200 });
    const answering = fetch(`${at.url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": at.token, "anthropic-version": "2023-06-01", ...session },
      body: JSON.stringify({ ...(asking("Question one") as object), stream: true }),
    });
    await expect.poll(() => at.simulator.requests.length).toBe(1);
    leaving.leave("fails");
    const answer = await answering;
    await expect(answer.text()).rejects.toThrow("terminated");
    leaving.comeBack();
  });
});

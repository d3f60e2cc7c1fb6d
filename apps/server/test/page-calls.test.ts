import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createScriptedModel } from "../../../packages/session/test/scripted-model.ts";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

type Fields = Readonly<Record<string, unknown>>;

const folder = mkdtempSync(join(quickFolder(), "throughline-calls-"));
let gateway: GatewayServing;
let store: SessionStore;
beforeAll(async () => {
  gateway = await serveGateway(
    { fallback: () => "It holds three files." },
    { openStore: (onEvent) => (store = createSqliteStore({ path: join(folder, "sessions.db"), onEvent })) },
  );
});
afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true, force: true });
});

async function read(path: string): Promise<Fields> {
  const { status, body } = await gateway.serving.ask("GET", path);
  expect([path, status]).toEqual([path, 200]);
  return body;
}

function sum(breakdown: unknown): number {
  return Object.values(breakdown as Readonly<Record<string, number>>).reduce((one, other) => one + other, 0);
}

async function newestCall(key: string): Promise<{ readonly call: Fields; readonly request: Fields }> {
  const { items } = await read(`/sessions/${key}/calls?tail=1`);
  const [call] = items as readonly Fields[];
  return { call: call ?? {}, request: await read(`/sessions/${key}/calls/${String(call?.["callId"])}/request`) };
}

describe("a call of a session", () => {
  it("has its times, and parts that add up to what the provider counted", async () => {
    const usage = { input: 700, output: 5, cacheRead: 300, cacheWrite: 1 };
    const chat = createScriptedModel(
      { calls: [{ id: "t1", name: "read", arguments: { path: "a" } }], usage },
      { text: "Done", usage },
    );
    const tool = {
      definition: { name: "read", description: "Reads a file.", inputSchema: { type: "object" } },
      run: () => Promise.resolve("word ".repeat(400)),
    };
    const sessions = createSessions({
      store,
      model: { chat, modelId: "claude-sonnet-4-5", windowTokens: 100_000 },
      system: "You help.",
      tools: [tool],
    });
    const key = "agent:main:parts";
    const session = await sessions.open(key);
    await session.runTurn("Read the file a.");
    await sessions.close();
    const { call, request } = await newestCall(key);
    expect(Number(call["endedMs"])).toBeGreaterThanOrEqual(Number(call["startedMs"]));
    expect(call).toMatchObject({ firstByteMs: null, startedMs: expect.any(Number) });
    // The log of a session holds the hashes of system prompt and tools only.
    expect(request).toMatchObject({ system: null, tools: null, systemHash: expect.any(String) });
    expect(sum(request["breakdown"])).toBe(1001);
    const { prefixTokens, messageTokens, toolResultTokens } = request["breakdown"] as Readonly<Record<string, number>>;
    expect(prefixTokens).toBeGreaterThan(0);
    expect(messageTokens).toBeGreaterThan(0);
    expect(toolResultTokens).toBeGreaterThan(5 * (messageTokens ?? 0));
  });

  it("that somebody forged has parts of nothing", async () => {
    const data = { turnId: "t", step: 1, provider: "p", api: "anthropic", model: "m", toSeq: 1, outcome: "answered" };
    const call = (id: string, more: object): object => ({
      id,
      type: "custom",
      customType: "throughline.call",
      v: 1,
      critical: false,
      data: { ...data, turnId: id, ...more },
    });
    const calls = [
      call("a", { actual: ["x", null, {}, 1] }),
      call("b", { estimate: -1, prefix: -5 }),
      call("c", { estimate: 1.5, actual: [1e300, 1e300, 1e300, 1e300] }),
    ];
    await gateway.serving.begin("forged-parts", [
      { type: "message", message: { role: "user", content: "x" } },
      ...calls,
    ]);
    for (const id of ["a", "b", "c"])
      expect(sum((await read(`/sessions/forged-parts/calls/${id}/request`))["breakdown"])).toBe(0);
  });
});

describe("a call through the gateway", () => {
  const tools = [{ name: "list", description: "Lists a folder. ".repeat(20), input_schema: { type: "object" } }];

  /** Sends one call; gives its session and the times around it. */
  async function send(path: string, body: object): Promise<string> {
    const response = await fetch(`${gateway.url}/${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${gateway.token}`,
        "anthropic-version": "2023-06-01",
      },
      body: JSON.stringify(body),
    });
    expect([path, response.status, await response.text()]).toEqual([path, 200, expect.any(String)]);
    const key = response.headers.get("throughline-session") ?? "";
    const id = response.headers.get("throughline-call") ?? "";
    await expect.poll(async () => (await gateway.serving.ask("GET", `/sessions/${key}/calls/${id}`)).status).toBe(200);
    return key;
  }

  const messages = [{ role: "user", content: "List the folder." }];
  const cases: readonly (readonly [string, object, string, unknown])[] = [
    [
      "anthropic/v1/messages",
      { model: "claude-opus-5", max_tokens: 9, system: [{ type: "text", text: "You list." }], tools, messages },
      "You list.",
      tools,
    ],
    [
      "openai/v1/chat/completions",
      { model: "gpt-5", messages: [{ role: "developer", content: "You list." }, ...messages] },
      "You list.",
      null,
    ],
    ["ollama/api/chat", { model: "small", stream: false, messages }, "", null],
  ];

  it.each(cases)("has the texts of system prompt and tools, and its times: %s", async (path, body, system, sent) => {
    const fromMs = Date.now();
    const { call, request } = await newestCall(await send(path, body));
    expect(request["messages"]).toEqual([expect.objectContaining(messages[0] ?? {})]);
    const kept = { recordId: expect.any(String), seq: expect.any(Number), reason: "kept", rule: null };
    expect(request["places"]).toEqual([[kept]]);
    expect(request["system"]).toBe(system === "" ? null : system);
    expect(JSON.parse(String(request["tools"]))).toEqual(sent);
    const { startedMs, firstByteMs, endedMs } = call as Readonly<Record<string, number>>;
    const times = [fromMs, startedMs, firstByteMs, endedMs, Date.now()];
    expect(times).toEqual(times.toSorted((one, other) => Number(one) - Number(other)));
    const { actual, estimatedTokens } = call as { readonly actual: Fields | null; readonly estimatedTokens: number };
    const counted = actual === null ? estimatedTokens : sum({ ...actual, output: 0 });
    expect(sum(request["breakdown"])).toBe(counted);
  });

  it("has no text of a system prompt whose session was redacted", async () => {
    const secret = "The password is tide-secret.";
    const key = await send("anthropic/v1/messages", {
      model: "claude-opus-5",
      max_tokens: 9,
      system: `You list. ${secret}`,
      messages: [{ role: "user", content: "Once more." }],
    });
    const { items } = await read(`/sessions/${key}/records?limit=500`);
    const ids = (items as readonly { readonly id: string }[]).map(({ id }) => id);
    const redacted = await gateway.serving.ask("POST", `/sessions/${key}/redact`, { body: { ids, reason: "a test" } });
    expect(redacted.status).toBe(200);
    const { items: calls } = await read(`/sessions/${key}/calls`);
    for (const { callId } of calls as readonly Fields[]) {
      const answer = await gateway.serving.ask("GET", `/sessions/${key}/calls/${String(callId)}/request`);
      expect(JSON.stringify(answer.body)).not.toContain("tide-secret");
    }
  });
});

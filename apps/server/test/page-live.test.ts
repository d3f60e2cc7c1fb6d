import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSessions } from "@throughline/session";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { createScriptedModel } from "../../../packages/session/test/scripted-model.ts";
import { serve, type Answered, type Serving } from "./serving.ts";

const folder = mkdtempSync(join(quickFolder(), "throughline-live-"));
let serving: Serving;
let store: SessionStore;
beforeAll(async () => {
  serving = await serve({
    openStore: (onEvent) => (store = createSqliteStore({ path: join(folder, "sessions.db"), onEvent })),
    limits: { requestsPerMinute: 60, requestBurst: 20 },
  });
});
afterAll(async () => {
  await serving.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the open reply in a stream of events", () => {
  it("comes as it grows, to each stream, and ends with the turn", async () => {
    const key = "live";
    await serving.begin(key);
    const lease = await serving.ask("POST", `/sessions/${key}/turns`, { body: { owner: "x", turnId: "t1" } });
    const { fence } = lease.body;
    const { body } = await serving.ask("GET", `/sessions/${key}`);
    const { lastSeq } = body["head"] as { readonly lastSeq: number };
    const put = (text: string): Promise<Answered> =>
      serving.ask("PUT", `/sessions/${key}/partial`, {
        body: {
          v: 1,
          sessionId: body["sessionId"],
          turnId: "t1",
          fence,
          step: 1,
          attempt: 0,
          afterSeq: lastSeq,
          provider: null,
          api: null,
          model: null,
          text,
          updatedMs: 5,
        },
      });
    expect((await put("Hel")).status).toBe(200);
    const one = await follow(key, "?partial=true");
    const none = await follow(key, "");
    await one.until('"text":"Hel"');
    await put("Hello\n\nevent: gone");
    await one.until('"text":"Hello\\n\\nevent: gone"');
    const other = await follow(key, "?partial=true");
    await other.until('"text":"Hello\\n\\nevent: gone"');
    expect(one.text()).toContain('"turnId":"t1","step":1,"attempt":0');
    await serving.ask("POST", `/sessions/${key}/turns/${String(fence)}/close`, { body: {} });
    await one.until('"turn":null');
    expect(one.text().split("event: partial").length - 1).toBe(2);
    expect(none.text()).not.toContain("event: partial");
    await Promise.all([one, none, other].map(({ end }) => end()));
  });
});

interface Following {
  text(): string;
  until(part: string): Promise<void>;
  end(): Promise<void>;
}

async function follow(key: string, query: string): Promise<Following> {
  const response = await fetch(`${serving.url}/api/v1/sessions/${key}/events${query}`, {
    headers: { authorization: `Bearer ${serving.token}` },
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    text: () => text,
    async until(part) {
      while (!text.includes(part)) {
        const { done, value } = (await reader?.read()) ?? { done: true };
        if (done) throw new Error(`The stream ended without ${part}: ${text}`);
        text += value;
      }
    },
    end: async () => reader?.cancel(),
  };
}

describe("calls and contexts for a page", () => {
  it("have the API of each call, pages from the newest, and the point of compaction", async () => {
    const model = { chat: createScriptedModel({ text: "Hello" }), modelId: "claude-sonnet-4-5", windowTokens: 100_000 };
    await using sessions = createSessions({ store, model });
    const key = "agent:main:called";
    const session = await sessions.open(key);
    for (const text of ["one", "two", "three"]) await session.runTurn(text);
    const calls = async (query: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
      (await serving.ask("GET", `/sessions/${key}/calls${query}`)).body["items"] as never;
    const all = await calls("");
    expect(all.length).toBe(3);
    expect(all[0]).toMatchObject({ api: expect.any(String), cut: null });
    const newest = await calls("?tail=1");
    expect(newest).toEqual(all.slice(2));
    const before = await calls(`?tail=1&before=${String(newest[0]?.["callId"])}`);
    expect(before).toEqual(all.slice(1, 2));
    expect((await serving.ask("GET", `/sessions/${key}/calls?before=nothing`)).status).toBe(404);
    const context = await serving.ask("GET", `/sessions/${key}/context?window=100000`);
    expect(context.body["compactsAtTokens"]).toBe(75_000);
    await serving.begin("unknown");
    expect((await serving.ask("GET", "/sessions/unknown/context")).body["compactsAtTokens"]).toBe(null);
  });
});

describe("a limit of a token's own", () => {
  // Each request has a token of its own, because the limit of the tests is low.
  const create = async (body: object, token?: string): Promise<Answered> =>
    serving.ask("POST", "/admin/tokens", {
      body: { scopes: ["read"], ...body },
      token: token ?? (await serving.tokenOf({})),
    });
  const statuses = async (token: string, count: number): Promise<readonly number[]> => {
    const found: number[] = [];
    for (let at = 0; at < count; at++) found.push((await serving.ask("GET", "/store", { token })).status);
    return found;
  };

  it("is none, smaller, or that of the server", async () => {
    const none = await create({ requestsPerMinute: null });
    expect([none.status, none.body["requestsPerMinute"]]).toEqual([201, null]);
    expect(new Set(await statuses(String(none.body["secret"]), 60))).toEqual(new Set([200]));
    const small = await create({ requestsPerMinute: 6 });
    expect((await statuses(String(small.body["secret"]), 6)).slice(-3)).toEqual([429, 429, 429]);
    const usual = await create({});
    expect(usual.body).not.toHaveProperty("requestsPerMinute");
    expect(await statuses(String(usual.body["secret"]), 40)).toContain(429);
  });

  it("is set by a token of all namespaces and agents only", async () => {
    for (const rights of [{ namespace: "" }, { agents: ["main"] }]) {
      const token = await serving.tokenOf({ ...rights, scopes: ["admin", "read"] });
      for (const requestsPerMinute of [null, 5])
        expect((await create({ requestsPerMinute }, token)).body).toMatchObject({ code: "FORBIDDEN" });
    }
    for (const requestsPerMinute of [0, -1, 1.5, "6", 1e9])
      expect((await create({ requestsPerMinute })).body).toMatchObject({ code: "INPUT_INVALID" });
  });
});

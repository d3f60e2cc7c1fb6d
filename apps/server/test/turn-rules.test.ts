import { afterEach, describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import type { ServerOptions, UpstreamOptions } from "@throughline/server";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";
import { serve, type Answered, type Serving } from "./serving.ts";
import { itOfOurs } from "./start-server.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const key = "agent:main:telegram:group:42";
const rules = readSendPolicy({ rules: [{ match: { channel: "telegram" }, action: "deny" }] });
const gatewayRules = readSendPolicy({ rules: [{ match: { channel: "gateway" }, action: "deny" }] });
const idle = readResetPolicy({ reset: { mode: "idle", idleMinutes: 10 } });
const said = { type: "message", message: { role: "user", content: "hi" } };

/** A clock that can be set forward. */
function movingClock(): { readonly clock: NonNullable<ServerOptions["clock"]>; aheadMs: number } {
  const moving = {
    aheadMs: 0,
    clock: {
      nowMs: () => Date.now() + moving.aheadMs,
      sleep: (ms: number, signal?: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          const timer = setTimeout(resolve, ms).unref();
          signal?.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason as Error);
          });
        }),
    },
  };
  return moving;
}

async function serving(options: Partial<ServerOptions>): Promise<Serving> {
  const served = await serve({ openStore: () => createMemoryStore(), ...options });
  closing.push(() => served.close());
  return served;
}

const open = ({ ask }: Serving, more: object = {}, headers = {}): Promise<Answered> =>
  ask("POST", `/sessions/${key}/turns`, { body: { owner: "ada", drafts: [said], ...more }, headers });
const stateOf = async ({ ask }: Serving): Promise<Record<string, unknown>> =>
  (await ask("GET", `/sessions/${key}`)).body as Record<string, unknown>;

describe("a turn over HTTP", () => {
  it("is refused with the rule where the agent may not answer, and nothing is stored", async () => {
    const served = await serving({ sessionPolicy: { sendPolicy: rules } });
    await served.ask("PUT", `/sessions/${key}`, { body: {} });
    const { status, body } = await open(served);
    expect([status, body]).toEqual([
      403,
      expect.objectContaining({
        code: "SEND_DENIED",
        outcome: "not-applied",
        details: expect.objectContaining({ source: "rule", ruleIndex: 0, rule: rules.rules[0] }),
      }),
    ]);
    expect(await stateOf(served)).toMatchObject({ messageCount: 0 });
    await served.ask("PATCH", `/sessions/${key}/entry`, { body: { sendPolicy: "allow" } });
    expect((await open(served)).status).toBe(201);
  });

  it("obeys what the entry itself denies, without any policy", async () => {
    const served = await serving({});
    for (const value of ["deny", "no"]) {
      await served.ask("PUT", `/sessions/${key}`, { body: { entry: { sendPolicy: value } } });
      await served.ask("PATCH", `/sessions/${key}/entry`, { body: { sendPolicy: value } });
      expect((await open(served)).body["code"]).toBe("SEND_DENIED");
    }
  });

  it("resets a session that is due before its turn, once, also when it is repeated", async () => {
    const moving = movingClock();
    const served = await serving({ sessionPolicy: { reset: idle }, clock: moving.clock });
    await served.ask("PUT", `/sessions/${key}`, { body: {} });
    const first = await open(served, {}, { "idempotency-key": "one" });
    await served.ask("POST", `/sessions/${key}/turns/${String(first.body["fence"])}/close`, { body: {} });
    const { sessionId: before } = await stateOf(served);
    moving.aheadMs = 11 * 60_000;
    // The same opening again is no new turn.
    expect((await open(served, {}, { "idempotency-key": "one" })).body["replayed"]).toBe(true);
    expect((await stateOf(served))["sessionId"]).toBe(before);
    const due = await open(served, {}, { "idempotency-key": "two" });
    expect(due.status).toBe(201);
    const { sessionId: after, messageCount } = await stateOf(served);
    expect([after === before, messageCount]).toEqual([false, 1]);
    expect((await open(served, {}, { "idempotency-key": "two" })).body["replayed"]).toBe(true);
    expect((await stateOf(served))["sessionId"]).toBe(after);
  });

  it("resets nothing while a turn runs, nor where the session is denied", async () => {
    const moving = movingClock();
    const served = await serving({ sessionPolicy: { reset: idle }, clock: moving.clock });
    await served.ask("PUT", `/sessions/${key}`, { body: {} });
    await open(served, { leaseMs: 3_600_000 });
    const { sessionId } = await stateOf(served);
    moving.aheadMs = 11 * 60_000;
    expect((await open(served)).body["code"]).toBe("SESSION_BUSY");
    await served.ask("POST", `/sessions/${key}/turns/1/close`, { body: {} });
    await served.ask("PATCH", `/sessions/${key}/entry`, { body: { sendPolicy: "deny" } });
    moving.aheadMs = 30 * 60_000;
    expect((await open(served)).body["code"]).toBe("SEND_DENIED");
    expect((await stateOf(served))["sessionId"]).toBe(sessionId);
  });
});

describe("a call through the gateway", () => {
  const start = async (
    mode: NonNullable<UpstreamOptions["mode"]>,
    options: Partial<ServerOptions>,
  ): Promise<GatewayServing> => {
    const openStore = createMemoryStore();
    const gateway = await serveGateway(
      { fallback: () => "Yes." },
      { openStore: () => openStore, ...options },
      {},
      { mode },
    );
    closing.push(() => gateway.close());
    return gateway;
  };
  const ask = async (gateway: GatewayServing, path: string, body: object, named = "home"): Promise<Response> =>
    fetch(`${gateway.url}/${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${gateway.token}`,
        "anthropic-version": "2023-06-01",
        ...(named === "" ? {} : { "throughline-session": named }),
      },
      body: JSON.stringify(body),
    });
  const claude = { model: "claude-opus-5", max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
  const chat = { model: "gpt-5", messages: [{ role: "user", content: "hi" }] };
  const respond = { model: "gpt-5", input: "hi" };
  const calls = [
    ["anthropic/v1/messages", claude],
    ["anthropic/v1/messages", { ...claude, stream: true }],
    ["openai/v1/chat/completions", chat],
    ["openai/v1/responses", respond],
  ] as const;

  itOfOurs.each(["guard", "stateful"] as const)("is refused in %s mode before the provider is asked", async (mode) => {
    const gateway = await start(mode, { sessionPolicy: { sendPolicy: gatewayRules } });
    for (const [path, body] of calls) {
      for (const named of ["home", ""]) {
        const answer = await ask(gateway, path, body, named);
        expect([path, named, answer.status, answer.headers.get("throughline-error")]).toEqual([
          path,
          named,
          403,
          "SEND_DENIED",
        ]);
        expect(await answer.text()).toContain("may not answer");
      }
    }
    expect(gateway.simulator.requests).toEqual([]);
  });

  itOfOurs.each(["guard", "stateful"] as const)(
    "obeys in %s mode what the entry denies from one call to the next",
    async (mode) => {
      const gateway = await start(mode, {});
      const first = await ask(gateway, "anthropic/v1/messages", claude);
      expect(first.status).toBe(200);
      await first.text();
      const name = first.headers.get("throughline-session") ?? "";
      await gateway.calls(1);
      await gateway.serving.ask("PATCH", `/sessions/${name}/entry`, { body: { sendPolicy: "deny" } });
      const second = await ask(gateway, "anthropic/v1/messages", { ...claude, max_tokens: 8 });
      expect([second.status, gateway.simulator.requests.length]).toEqual([403, 1]);
      await gateway.serving.ask("PATCH", `/sessions/${name}/entry`, { body: { sendPolicy: null } });
      expect((await ask(gateway, "anthropic/v1/messages", { ...claude, max_tokens: 7 })).status).toBe(200);
    },
  );

  itOfOurs("is passed on in record mode", async () => {
    const gateway = await start("record", { sessionPolicy: { sendPolicy: gatewayRules } });
    expect((await ask(gateway, "anthropic/v1/messages", claude)).status).toBe(200);
  });

  itOfOurs("resets a session that is due before a question in stateful mode", async () => {
    const moving = movingClock();
    const gateway = await start("stateful", { sessionPolicy: { reset: idle }, clock: moving.clock });
    const messages = async (text: string): Promise<number> => {
      const answer = await ask(gateway, "anthropic/v1/messages", {
        ...claude,
        messages: [{ role: "user", content: text }],
      });
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
      const sent = gateway.simulator.requests.at(-1)?.body as { readonly messages: unknown[] } | undefined;
      return sent?.messages.length ?? 0;
    };
    expect(await messages("one")).toBe(1);
    expect(await messages("two")).toBe(3);
    moving.aheadMs = 11 * 60_000;
    expect(await messages("three")).toBe(1);
  });
});

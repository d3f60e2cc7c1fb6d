import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { ThroughlineError } from "@throughline/core";
import type { AnswerReply } from "@throughline/testing/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import type { ProviderSimulatorOptions } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { adapters, attempt, key, question } from "./adapters.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

async function start(options: ProviderSimulatorOptions): Promise<void> {
  simulator = createProviderSimulator(options);
  await simulator.start();
}

const text = "A longer text than that, in many pieces of a stream.";
const slow: AnswerReply = { kind: "answer", content: text, eventDelayMs: 20 };

describe.each(adapters)("$name", (adapter) => {
  it("gives what was received when it is aborted in the middle, then rejects with ABORTED", async () => {
    await start({ replies: [slow] });
    const controller = new AbortController();
    let received = "";
    const { error, partials } = await attempt(
      adapter.create(simulator),
      { ...question(adapter, "Hi"), signal: controller.signal },
      (delta) => {
        received += "text" in delta ? delta.text : "";
        if (received.length > 12) controller.abort(new Error("enough"));
      },
    );
    expect(error).toMatchObject({ code: "ABORTED", cause: { message: "enough" } });
    expect(text.startsWith(received)).toBe(true);
    expect(received.length).toBeLessThan(text.length);
    expect(partials).toEqual([
      expect.objectContaining({ content: [{ type: "text", text: received }], stopReason: "aborted", api: adapter.api }),
    ]);
    await expect.poll(() => simulator.requests[0]?.outcome).toBe("aborted");
  });

  it("ends at once when it is aborted before the first piece, whole, and before it began", async () => {
    await start({
      replies: [
        { ...slow, delayMs: 60_000 },
        { ...slow, delayMs: 60_000 },
      ],
    });
    const model = adapter.create(simulator);
    for (const streamed of [true, false]) {
      const controller = new AbortController();
      const partials: unknown[] = [];
      const request = {
        ...question(adapter, "Hi"),
        signal: controller.signal,
        onPartial: (partial: unknown) => void partials.push(partial),
      };
      const asked = model.chat(streamed ? { ...request, onDelta: () => undefined } : request);
      const count = streamed ? 1 : 2;
      await expect.poll(() => simulator.requests.length).toBe(count);
      controller.abort();
      await expect(asked).rejects.toMatchObject({ code: "ABORTED" });
      expect(partials).toEqual([]);
    }
    await expect(model.chat({ ...question(adapter, "Hi"), signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "ABORTED",
    });
    expect(simulator.requests).toHaveLength(2);
  });

  it("gives what was received of a stream that is cut, or ends in an error, then the SDK's own error", async () => {
    const events = { anthropic: 5, openai: 3, "openai-responses": 6, ollama: 2 }[adapter.target as "openai"];
    const broken = (how: "cut" | "error-event"): AnswerReply => ({
      kind: "answer",
      content: text,
      breakAfter: { events, how },
    });
    await start({ replies: [broken("cut"), broken("error-event")] });
    const model = adapter.create(simulator);
    for (const how of ["cut", "error-event"]) {
      const { error, partials, deltas } = await attempt(model, question(adapter, "Hi"));
      expect(error).toBeInstanceOf(Error);
      expect(ThroughlineError.isInstance(error)).toBe(false);
      const received = deltas.map((delta) => ("text" in delta ? delta.text : "")).join("");
      expect(received.length).toBeGreaterThan(5);
      expect(partials).toEqual([
        expect.objectContaining({ content: [{ type: "text", text: received }], stopReason: "error" }),
      ]);
      if (how === "error-event") expect(String(error)).toMatch(/overloaded|unexpectedly stopped/i);
    }
  });

  it("takes a stream that simply ends for a failure, at every event", async () => {
    // Every event but the last: what is left out is the end.
    for (let events = 0; events < 4; events++) {
      await start({ replies: [{ kind: "answer", content: text, breakAfter: { events, how: "cut" } }] });
      const { error, reply } = await attempt(adapter.create(simulator, { maxRetries: 0 }), question(adapter, "Hi"));
      expect(reply).toBeNull();
      expect(error).toBeInstanceOf(Error);
      await simulator.close();
    }
  });

  it("rejects with the SDK's error and no key in it: 401, 400, 500", async () => {
    await start({
      replies: [401, 400, 500].map((status) => ({ kind: "error" as const, status })),
    });
    const model = adapter.create(simulator, { maxRetries: 0 });
    for (const status of [401, 400, 500]) {
      const error = await model.chat(question(adapter, "Hi")).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ [adapter.statusField]: status });
      const shown = `${inspect(error, { depth: 20, showHidden: true, getters: true })} ${JSON.stringify(error)}`;
      expect(shown).not.toContain(key);
    }
  });

  it("is refused over the window by the provider, and nothing is cut in silence", async () => {
    await start({ replies: ["Hello."], models: { "*": { windowTokens: 300 } } });
    const model = adapter.create(simulator);
    const request = { ...question(adapter, "long ".repeat(2000)), maxOutputTokens: 16 };
    const error = await model.chat(request).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ [adapter.statusField]: 400 });
    const streamed = await attempt(model, request);
    expect(streamed.error).toBeInstanceOf(Error);
    expect(streamed.partials).toEqual([]);
    expect(simulator.refusals.map(({ kind }) => kind)).toEqual(["overflow", "overflow"]);
  });

  it.skipIf(!adapter.retries)("reports each wait before it asks again, and none after the last attempt", async () => {
    await start({});
    const askedAtMs: number[] = [];
    const server = createServer((request, response) => {
      askedAtMs.push(performance.now());
      request.resume();
      const headers = askedAtMs.length === 1 ? { "retry-after": "0.3" } : {};
      response.writeHead(429, { "content-type": "application/json", ...headers }).end('{"error":{"message":"spent"}}');
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const model = adapter.create({ ...simulator, url } as ProviderSimulator, { maxRetries: 2 });
      const waits: { readonly delayMs: number; readonly status: number; readonly attempt: number }[] = [];
      const asked = model.chat({ ...question(adapter, "Hi"), onWait: (wait) => void waits.push(wait) });
      await expect(asked).rejects.toMatchObject({ status: 429 });
      expect(waits).toEqual([
        { delayMs: 300, status: 429, attempt: 1 },
        { delayMs: expect.any(Number), status: 429, attempt: 2 },
      ]);
      expect(waits[1]?.delayMs).toBeGreaterThanOrEqual(750);
      expect(waits[1]?.delayMs).toBeLessThanOrEqual(1000);
      const [first = 0, second = 0, third = 0] = askedAtMs;
      expect([second - first >= 295, third - second >= 745]).toEqual([true, true]);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it.skipIf(!adapter.retries).each([
    ["in an hour", { "retry-after": "3600" }, 1],
    ["in two minutes, in milliseconds", { "retry-after-ms": "120000" }, 1],
    ["at a time", { "retry-after": "Wed, 21 Oct 2099 07:28:00 GMT" }, 1],
    ["at a time that is past", { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, 2],
    ["in a word", { "retry-after": "later" }, 2],
  ])("does not wait for long in silence: a 429 to be asked again %s", async (_, headers, times) => {
    await start({});
    let asked = 0;
    const server = createServer((request, response) => {
      asked += 1;
      request.resume();
      response.writeHead(429, { "content-type": "application/json", ...headers }).end('{"error":{"message":"spent"}}');
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const model = adapter.create({ ...simulator, url } as ProviderSimulator, { maxRetries: 1 });
      await expect(model.chat(question(adapter, "Hi"))).rejects.toMatchObject({ status: 429 });
    } finally {
      server.closeAllConnections();
      server.close();
    }
    expect(asked).toBe(times);
  });

  it.skipIf(!adapter.retries)("leaves retries to the SDK: 429, then 529 or 503, then an answer", async () => {
    const status = adapter.target === "anthropic" ? 529 : 503;
    await start({
      replies: [{ kind: "error", status: 429, retryAfterMs: 1 }, { kind: "error", status, retryAfterMs: 1 }, "Hello."],
    });
    const reply = await adapter.create(simulator).chat(question(adapter, "Hi"));
    expect(reply.message.content).toEqual([{ type: "text", text: "Hello." }]);
    expect(simulator.requests.map((request) => request.status)).toEqual([429, status, 200]);
  });

  it.skipIf(!adapter.retries)("asks no more often than it is told", async () => {
    await start({ fallback: () => ({ kind: "error", status: 429, retryAfterMs: 1 }) });
    const model = adapter.create(simulator, { maxRetries: 1 });
    await expect(model.chat(question(adapter, "Hi"))).rejects.toMatchObject({ status: 429 });
    expect(simulator.requests).toHaveLength(2);
  });

  it("lets a listener's error through and goes on with nothing", async () => {
    await start({ replies: [slow] });
    const { error } = await attempt(adapter.create(simulator), question(adapter, "Hi"), () => {
      throw new TypeError("listener");
    });
    expect(error).toMatchObject({ message: "listener" });
    await expect.poll(() => simulator.requests[0]?.outcome).toBe("aborted");
  });
});

import { Buffer } from "node:buffer";
import { connect as openSocket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { ProviderSimulator, ProviderSimulatorOptions } from "../src/simulator-options.ts";
import type { SimulatedApi } from "../src/wire-adapter.ts";
import { ask, user } from "./anthropic-cases.ts";
import { ask as askOllama } from "./ollama-cases.ts";
import { chat, input } from "./openai-cases.ts";
import { errorText, post } from "./refusal-case.ts";
import type { Body } from "./refusal-case.ts";

let simulator: ProviderSimulator;

async function start(options: ProviderSimulatorOptions = {}): Promise<void> {
  simulator = createProviderSimulator(options);
  await simulator.start();
}

const hi = ask([user("Hi")]);
const bodies: readonly (readonly [SimulatedApi, Body])[] = [
  ["anthropic", hi],
  ["openai-chat", chat([{ role: "user", content: "Hi" }])],
  ["openai-responses", input("Hi")],
  ["ollama", askOllama([{ role: "user", content: "Hi" }])],
];

describe("the simulator", () => {
  afterEach(() => simulator.close());

  it("validates before it looks at the script, so that no reply hides a fault", async () => {
    await start({ replies: [{ kind: "error", status: 529 }, "Hello."] });
    expect((await post(simulator.url, "anthropic", ask([]))).status).toBe(400);
    expect((await post(simulator.url, "anthropic", hi)).status).toBe(529);
    expect((await post(simulator.url, "anthropic", ask([]))).status).toBe(400);
    expect((await post(simulator.url, "anthropic", hi)).status).toBe(200);
    expect(simulator.refusals.map(({ request }) => request)).toEqual([1, 3]);
  });

  it("keeps the bytes it received, and headers without regard to their case", async () => {
    const seen: number[] = [];
    await start({ replies: ["Hello."], onRequest: ({ number, status }) => void seen.push(number, status) });
    const sent = '{"model":"m",  "max_tokens":1e1, "messages":[{"role":"user","content":"\\u00e9 é"}]}';
    await post(simulator.url, "anthropic", sent, { "X-Session": "a" });
    const [request] = simulator.requests;
    expect(Buffer.from(request?.bytes ?? []).toString()).toBe(sent);
    expect(request).toMatchObject({
      number: 1,
      path: "/v1/messages",
      headers: { "x-session": "a" },
      body: { max_tokens: 10 },
    });
    expect(seen).toEqual([1, 0]);
  });

  it("keeps an idle connection for longer than a busy machine stalls", async () => {
    await start({ replies: ["Hello."] });
    const answer = await post(simulator.url, "anthropic", hi, { Connection: "keep-alive" });
    expect(answer.headers.get("keep-alive")).toBe("timeout=65");
  });

  it.each(bodies)("%s: gives the same bytes in two runs, and none that the script has not", async (api, body) => {
    const runs: string[] = [];
    for (const _run of [1, 2]) {
      await start({ replies: ["Hello."] });
      runs.push(await (await post(simulator.url, api, body)).text());
      const exhausted = await post(simulator.url, api, body);
      expect([exhausted.status, exhausted.headers.get("x-should-retry")]).toEqual([500, "false"]);
      await simulator.close();
    }
    expect(runs[1]).toBe(runs[0]);
    expect(runs[0]).toContain("Hello.");
  });

  it.each(bodies)("%s: stamps answers with the clock it was given and ids with the prefix", async (api, body) => {
    await start({ replies: ["Hello."], clock: { nowMs: () => Date.UTC(2031, 1, 1) }, idPrefix: "second" });
    const text = await (await post(simulator.url, api, body)).text();
    if (api !== "anthropic") expect(text).toMatch(/1927670400|2031-02-01T00:00:00/);
    if (api !== "ollama") expect(text).toContain("_second_1");
  });

  it.each(bodies)("%s: takes usage from the script where it has any", async (api, body) => {
    await start({
      replies: [
        { kind: "answer", content: "Hello.", usage: { inputTokens: 7654, outputTokens: 4321, cacheReadTokens: 333 } },
      ],
    });
    const text = await (await post(simulator.url, api, body)).text();
    expect(text).toContain("7654");
    expect(text).toContain("4321");
    if (api !== "ollama") expect(text).toContain("333");
  });

  it.each(bodies)("%s: refuses what is no JSON object", async (api) => {
    await start();
    for (const text of ['{"model":', "[]", ""]) {
      const response = await post(simulator.url, api, text);
      expect(response.status).toBe(400);
      expect(await errorText(response)).toMatch(/not valid JSON/);
    }
    expect(simulator.requests.map(({ outcome }) => outcome)).toEqual(["refused", "refused", "refused"]);
  });

  it.each(bodies)("%s: refuses a missing key, except to Ollama, and a model it was not told of", async (api, body) => {
    await start({ replies: ["Hello."], onlyListedModels: true, models: { known: {} } });
    const anonymous = await post(simulator.url, api, body, { "x-api-key": "", authorization: "" });
    expect(anonymous.status).toBe(api === "ollama" ? 404 : 401);
    const response = await post(simulator.url, api, body);
    expect(response.status).toBe(404);
    expect(await errorText(response)).toContain(String(body["model"]));
    expect((await post(simulator.url, api, { ...body, model: "known" })).status).toBe(200);
  });

  it("answers at the time the script says, several at once", async () => {
    await start({ replies: [{ kind: "answer", content: "slow", delayMs: 200 }, "fast"] });
    const order: string[] = [];
    const take = async (): Promise<void> => {
      const text = await (await post(simulator.url, "anthropic", hi)).text();
      order.push(text.includes("slow") ? "slow" : "fast");
    };
    const slow = take();
    await expect.poll(() => simulator.requests.length).toBe(1);
    await Promise.all([slow, take()]);
    expect(order).toEqual(["fast", "slow"]);
  });

  it("can cut an answer that is not streamed", async () => {
    await start({ replies: [{ kind: "answer", content: "Hello.", breakAfter: { events: 0, how: "cut" } }] });
    const read = async (): Promise<string> => (await post(simulator.url, "anthropic", hi)).text();
    await expect(read()).rejects.toThrow();
    expect(simulator.requests[0]?.outcome).toBe("cut");
  });

  it("outlives a client that goes away while it is still sending", async () => {
    await start({ replies: ["Hello."] });
    const socket = openSocket(Number(new URL(simulator.url).port), "127.0.0.1");
    await new Promise(
      (resolve) => void socket.write("POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{", resolve),
    );
    socket.destroy();
    expect((await post(simulator.url, "anthropic", hi)).status).toBe(200);
    expect(simulator.requests).toHaveLength(1);
  });

  it("has an address only while it listens, and ends open answers when it closes", async () => {
    simulator = createProviderSimulator({ replies: [{ kind: "answer", content: "Hello.", delayMs: 60_000 }] });
    expect(() => simulator.url).toThrow("not started");
    await simulator.start();
    const waiting = post(simulator.url, "anthropic", hi);
    const failed = expect(waiting).rejects.toThrow();
    await expect.poll(() => simulator.requests.length).toBe(1);
    await simulator.close();
    await simulator.close();
    await failed;
    expect(() => simulator.url).toThrow("not started");
  });

  it("says 404 to everything else", async () => {
    await start({ replies: ["Hello."] });
    expect((await fetch(`${simulator.url}/v1/messages`)).status).toBe(404);
    expect((await fetch(`${simulator.url}/v1/none`, { method: "POST", body: "{}" })).status).toBe(404);
    expect(simulator.requests).toEqual([]);
  });

  it("does not hide its own faults", async () => {
    simulator = createProviderSimulator({
      fallback: () => {
        throw new TypeError("the script is broken");
      },
    });
    await simulator.start();
    await expect(post(simulator.url, "anthropic", hi)).rejects.toThrow();
    await expect(simulator.close()).rejects.toThrow("the script is broken");
  });
});

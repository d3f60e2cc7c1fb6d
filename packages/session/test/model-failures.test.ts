import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ChatModel, ThroughlineError } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { ollama } from "@throughline/models/ollama";
import { openai } from "@throughline/models/openai";
import { createProviderSimulator, type ProviderSimulator, type SimulatedReply } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createFixture } from "./session-fixture.ts";
import { providerCases, type ProviderCase } from "./provider-cases.ts";

/** What the simulator answers next. */
let reply: SimulatedReply = "";
let simulator: ProviderSimulator | null = null;
afterEach(() => simulator?.close());

async function started(): Promise<ProviderSimulator> {
  simulator = createProviderSimulator({ fallback: () => reply });
  await simulator.start();
  return simulator;
}

/** Gives the failure of one turn in a new session. */
type Fail = (isStreamed?: boolean) => Promise<ThroughlineError>;

function failing(chat: ChatModel, modelId: string): Fail {
  const { sessions } = createFixture({ model: { chat, modelId, windowTokens: 200_000 }, tools: [] });
  let count = 0;
  return async (isStreamed = false) => {
    await using session = await sessions.open(`agent:main:cli:direct:turn-${(count += 1)}`);
    try {
      await session.runTurn("Hi", isStreamed ? { onDelta: () => undefined } : {});
    } catch (error) {
      return error as ThroughlineError;
    }
    throw new Error("The turn did not fail.");
  };
}

/** 4xx that pass by themselves; every other one is about the request or who sends it. `fetch` shows a 407 as a failed connection. */
const passing = new Set([407, 408, 409, 424, 425, 429, 499]);
const isRetryable = (status: number): boolean =>
  status >= 500 ? status !== 501 && status !== 505 : passing.has(status);

describe.each(providerCases)("a call that $name answers with a status", ({ create, modelId }: ProviderCase) => {
  const start = async (): Promise<Fail> => failing(create(await started()), modelId);
  const all = Array.from({ length: 130 }, (_, index) => 400 + index);
  // In the short tier those that have a name, and some that have none.
  const named = all.filter((status) => status <= 431 || (status >= 498 && status <= 511) || status >= 528);
  const every = testSize({ short: named.filter((status) => status % 3 !== 0 || passing.has(status)), long: all });

  it.each([
    ["whole", every],
    ["streamed", [400, 401, 403, 404, 408, 413, 422, 429, 498, 499, 500, 501, 503, 529]],
  ])("states whether it may succeed later, for every status from 400 to 529: %s", async (how, statuses) => {
    const fail = await start();
    const found: unknown[] = [];
    for (const status of statuses) {
      reply = { kind: "error", status };
      const { code, retryable } = await fail(how === "streamed");
      found.push({ status, code, retryable });
    }
    expect(found).toEqual(
      statuses.map((status) => ({
        status,
        // A body that is too large is an overflow, which the guard has done with by then.
        code: status === 413 ? "CONTEXT_OVERFLOW" : "MODEL_FAILED",
        retryable: isRetryable(status),
      })),
    );
  });

  it("is not to be repeated where the account is out of credit, unless the provider says when", async () => {
    const fail = await start();
    const message = "You exceeded your current quota, please check your plan and billing details.";
    const spent = {
      kind: "error",
      status: 429,
      type: "insufficient_quota",
      code: "insufficient_quota",
      message,
    } as const;
    reply = spent;
    expect(await fail()).toMatchObject({ retryable: false, details: { category: "quota" } });
    reply = { ...spent, retryAfterMs: 90_000 };
    const later = await fail();
    // Ollama's SDK keeps no headers of a failed request.
    if (!modelId.startsWith("qwen")) expect(later).toMatchObject({ retryable: true, remedy: "Try again in 90 s." });
  });

  it("says what happened and what to do", async () => {
    const fail = await start();
    const shown: string[] = [];
    for (const status of [401, 404, 529]) {
      reply = { kind: "error", status };
      const { message, remedy } = await fail();
      shown.push(`${message.split(":")[0] ?? ""}. ${remedy}`);
    }
    expect(shown).toEqual([
      "The provider rejected the request. Check the API key, and what it may use.",
      "The provider rejected the request. Check the name of the model, the base URL, and what the message names.",
      "The provider is overloaded. Try again later.",
    ]);
  });

  it.each(["cut", "error-event"] as const)(
    "that breaks off in the middle of the answer (%s) may succeed later",
    async (how) => {
      const fail = await start();
      reply = { kind: "answer", content: "A longer answer in several words.", breakAfter: { events: 3, how } };
      expect(await fail(true)).toMatchObject({ code: "MODEL_FAILED", retryable: true });
    },
  );
});

const unreached: readonly (readonly [string, (url: string) => ChatModel])[] = [
  ["Anthropic", (baseUrl) => anthropic("claude-opus-5", { baseUrl, maxRetries: 0, timeoutMs: 300 }).chat],
  [
    "OpenAI chat completions",
    (baseUrl) => openai("gpt-5", { api: "openai", baseUrl, maxRetries: 0, timeoutMs: 300 }).chat,
  ],
  [
    "OpenAI Responses",
    (baseUrl) => openai("gpt-5", { api: "openai-responses", baseUrl, maxRetries: 0, timeoutMs: 300 }).chat,
  ],
  ["Ollama", (baseUrl) => ollama("qwen3", { baseUrl, timeoutMs: 300 }).chat],
];

describe.each(unreached)("a server that %s does not reach", (_, create) => {
  it("refuses the connection: the call may succeed later, and the message says what was refused", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const error = await failing(create(`http://127.0.0.1:${port}`), "m")();
    expect(error).toMatchObject({ code: "MODEL_FAILED", retryable: true, details: { category: "network" } });
    expect(error.message).toContain("ECONNREFUSED");
  });

  it("has no address", async () => {
    expect(await failing(create("http://throughline.invalid"), "m")()).toMatchObject({ retryable: true });
  });

  it.each(["never answers", "closes the connection", "sends what is no HTTP"])("%s", async (how) => {
    const server = createServer((request, response) => {
      request.resume();
      if (how === "closes the connection") response.destroy();
      if (how === "sends what is no HTTP") response.socket?.end("no HTTP at all\r\n\r\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const error = await failing(create(`http://127.0.0.1:${port}`), "m")();
      expect(error).toMatchObject({ code: "MODEL_FAILED", retryable: true });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

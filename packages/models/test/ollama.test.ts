import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ChatRequest } from "@throughline/core";
import { createProviderSimulator, type ProviderSimulator, type ProviderSimulatorOptions } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { ollama } from "../src/ollama.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

async function start(options: ProviderSimulatorOptions = {}): Promise<string> {
  simulator = createProviderSimulator(options);
  await simulator.start();
  return simulator.url;
}

const ask = (how: Partial<ChatRequest> = {}): ChatRequest => ({
  modelId: "qwen3",
  system: null,
  messages: [{ role: "user", content: "Hi" }],
  ...how,
});

const body = (number = 0): Record<string, unknown> => simulator.requests[number]?.body as Record<string, unknown>;

/** Answers once with what a broken server or a proxy might send. */
async function answering(
  status: number,
  type: string,
  text: string,
  run: (url: string) => Promise<void>,
): Promise<void> {
  const server = createServer((_request, response) => {
    response.writeHead(status, { "content-type": type });
    response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe("Ollama's requests", () => {
  it("say that nothing may be cut, and which window is wanted when one is", async () => {
    const baseUrl = await start({ fallback: () => "Yes." });
    await ollama("qwen3", { baseUrl }).chat.chat(ask());
    expect(body(0)).toMatchObject({ truncate: false, shift: false, think: false, stream: false });
    expect(body(0)).not.toHaveProperty("options");
    await ollama("qwen3", { baseUrl, windowTokens: 16_384, keepAlive: "30m" }).chat.chat(ask({ maxOutputTokens: 50 }));
    expect(body(1)).toMatchObject({ options: { num_ctx: 16_384, num_predict: 50 }, keep_alive: "30m" });
  });

  it("turn thinking on, by degrees only where the model knows degrees", async () => {
    const model = ollama("qwen3", { baseUrl: await start({ fallback: () => "Yes." }) }).chat;
    await model.chat(ask({ thinkingLevel: "high" }));
    await model.chat(ask({ thinkingLevel: "high", modelId: "gpt-oss:20b" }));
    await model.chat(ask({ thinkingLevel: "minimal", modelId: "gpt-oss:20b" }));
    expect([0, 1, 2].map((number) => body(number)["think"])).toEqual([true, "high", "low"]);
  });

  it("leave the caller's messages as they are", async () => {
    const message = Object.freeze({ role: "user", content: "Look", images: Object.freeze(["aGk="]) });
    await ollama("qwen3", { baseUrl: await start({ replies: ["Yes."] }) }).chat.chat(ask({ messages: [message] }));
    expect(body(0)["messages"]).toEqual([message]);
  });

  it("carry a key only when there is one", async () => {
    const baseUrl = await start({ fallback: () => "Yes." });
    await ollama("qwen3", { baseUrl }).chat.chat(ask());
    await ollama("qwen3", { baseUrl, apiKey: "secret", headers: { "x-team": "a" } }).chat.chat(ask());
    await ollama("qwen3", { baseUrl: baseUrl.replace("//", "//ada:p%40ss@") }).chat.chat(ask());
    await ollama("qwen3", { baseUrl: baseUrl.replace("http://", "") }).chat.chat(ask());
    expect(simulator.requests.map(({ headers }) => [headers["authorization"], headers["x-team"]])).toEqual([
      [undefined, undefined],
      ["Bearer secret", "a"],
      [`Basic ${btoa("ada:p@ss")}`, undefined],
      [undefined, undefined],
    ]);
  });
});

describe("Ollama's answers", () => {
  it("give calls without an id one of their own, each another", async () => {
    const call = (name: string): object => ({ function: { name, arguments: { a: 1 } } });
    const lines = [
      { model: "qwen3", message: { role: "assistant", content: "", tool_calls: [call("one")] }, done: false },
      { model: "qwen3", message: { role: "assistant", content: "", tool_calls: [call("two")] }, done: false },
      { model: "qwen3", message: { role: "assistant", content: "" }, done: true, done_reason: "stop" },
    ];
    const text = `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
    await start();
    await answering(200, "application/x-ndjson", text, async (baseUrl) => {
      const { message, usage } = await ollama("qwen3", { baseUrl }).chat.chat(ask({ onDelta: () => undefined }));
      const calls = message.content as readonly { readonly id: string; readonly name: string }[];
      expect(calls.map(({ name }) => name)).toEqual(["one", "two"]);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      expect(calls.every(({ id }) => /^call_[0-9a-f]{24}$/.test(id))).toBe(true);
      // A server that counted nothing.
      expect([usage, message.usage]).toEqual([null, undefined]);
    });
  });

  it("fail with the server's words when they are no JSON, and nothing is written to the console", async () => {
    await start();
    await answering(502, "text/html", "<h1>Bad gateway</h1>", async (baseUrl) => {
      await expect(ollama("qwen3", { baseUrl }).chat.chat(ask())).rejects.toMatchObject({
        status_code: 502,
        message: "<h1>Bad gateway</h1>",
      });
    });
  });

  it.each(["text/html", "application/json", "text/plain"])(
    "fail at what is no stream, as %s, in silence",
    async (type) => {
      await start();
      for (const text of ["<h1>Sign in</h1>", "<h1>Sign\nin</h1>\n"]) {
        await answering(200, type, text, async (baseUrl) => {
          const asked = ollama("qwen3", { baseUrl }).chat.chat(ask({ onDelta: () => undefined }));
          await expect(asked).rejects.toBeInstanceOf(SyntaxError);
        });
      }
    },
  );

  it("fail at a line that is broken, with what came before it", async () => {
    await start();
    const line = JSON.stringify({ model: "qwen3", message: { role: "assistant", content: "Half" }, done: false });
    for (const rest of ['{"mod', "not json\n"]) {
      await answering(200, "application/x-ndjson", `${line}\n${rest}`, async (baseUrl) => {
        const partials: unknown[] = [];
        const asked = ollama("qwen3", { baseUrl }).chat.chat(
          ask({ onDelta: () => undefined, onPartial: (partial) => void partials.push(partial) }),
        );
        await expect(asked).rejects.toBeInstanceOf(Error);
        expect(partials).toMatchObject([{ content: [{ type: "text", text: "Half" }], stopReason: "error" }]);
      });
    }
  });

  it("end after the time that was given", async () => {
    const baseUrl = await start({ replies: [{ kind: "answer", content: "Yes.", delayMs: 60_000 }] });
    await expect(ollama("qwen3", { baseUrl, timeoutMs: 50 }).chat.chat(ask())).rejects.toThrow(/timeout|aborted/i);
  });
});

describe("Ollama's window", () => {
  it("is what is asked for, else what the server says, never more than the model was trained for", async () => {
    const baseUrl = await start({ models: { qwen3: { windowTokens: 32_768 } }, ollamaContextTokens: 8192 });
    expect(await ollama("qwen3", { baseUrl }).chat.windowTokens?.("qwen3")).toBe(8192);
    expect(await ollama("qwen3", { baseUrl, windowTokens: 16_384 }).chat.windowTokens?.("qwen3")).toBe(16_384);
    expect(await ollama("qwen3", { baseUrl, windowTokens: 1_000_000 }).chat.windowTokens?.("qwen3")).toBe(32_768);
    await expect(ollama("qwen3", { baseUrl }).chat.windowTokens?.("qwen3", AbortSignal.abort())).rejects.toMatchObject({
      code: "ABORTED",
    });
  });

  it("is not known of a model the server does not have", async () => {
    await start();
    await answering(404, "application/json", '{"error":"model not found"}', async (baseUrl) => {
      expect(await ollama("qwen3", { baseUrl }).chat.windowTokens?.("none")).toBeNull();
    });
  });
});

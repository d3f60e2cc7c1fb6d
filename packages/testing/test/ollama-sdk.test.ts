import { Ollama } from "ollama";
import type { ChatRequest, ChatResponse, Message } from "ollama";
import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { AnswerReply } from "../src/simulated-reply.ts";
import type { ProviderSimulator, ProviderSimulatorOptions } from "../src/simulator-options.ts";

let simulator: ProviderSimulator;

async function connect(options: ProviderSimulatorOptions): Promise<Ollama> {
  simulator = createProviderSimulator(options);
  await simulator.start();
  return new Ollama({ host: simulator.url });
}

const model = "llama3.1";
const hi: Message = { role: "user", content: "Hi" };
const looks: AnswerReply = {
  kind: "answer",
  content: [
    { type: "thinking", thinking: "Two places, so two looks. Größe 😀." },
    { type: "text", text: "I look in both. 👀 é" },
    { type: "tool-call", name: "look", input: { place: "München 🏔" } },
    { type: "tool-call", name: "look", input: {} },
  ],
};

/** `truncate` and `shift` are in the protocol but not in the SDK's types; the SDK passes what it is given. */
function withSwitches(
  request: ChatRequest,
  switches: { truncate?: boolean; shift?: boolean },
): ChatRequest & { stream: false } {
  return { ...request, ...switches, stream: false };
}

async function collect(stream: AsyncIterable<ChatResponse>): Promise<readonly ChatResponse[]> {
  const lines: ChatResponse[] = [];
  for await (const line of stream) lines.push(line);
  return lines;
}

describe("Ollama's SDK", () => {
  afterEach(() => simulator.close());

  it("gets the same message streamed as whole, at any byte border, and may go on from it", async () => {
    const client = await connect({ replies: [looks, { ...looks, chunkBytes: [2, 9, 1] }, "Done."] });
    const whole = await client.chat({ model, messages: [hi] });
    const lines = await collect(await client.chat({ model, messages: [hi], stream: true }));
    const join = (field: "content" | "thinking"): string => lines.map(({ message }) => message[field] ?? "").join("");
    expect(join("content")).toBe(whole.message.content);
    expect(join("thinking")).toBe(whole.message.thinking);
    const calls = lines.flatMap(({ message }) => message.tool_calls ?? []);
    expect(calls.map((call) => call.function.arguments)).toEqual([{ place: "München 🏔" }, {}]);
    const last = lines.at(-1);
    expect([last?.done, last?.prompt_eval_count, last?.eval_count]).toEqual([
      true,
      whole.prompt_eval_count,
      whole.eval_count,
    ]);
    expect(lines.slice(0, -1).every(({ done }) => !done)).toBe(true);
    const results = calls.map((): Message => ({ role: "tool", content: "found", tool_name: "look" }));
    await client.chat({ model, messages: [hi, whole.message, ...results] });
    expect(simulator.refusals).toEqual([]);
  });

  it("is not told that the oldest messages were left out, except by the count", async () => {
    const client = await connect({ fallback: () => "Hello.", models: { [model]: { windowTokens: 131_072 } } });
    const system: Message = { role: "system", content: "s".repeat(40) };
    const long = (letter: string): Message => ({ role: "user", content: letter.repeat(4000) });
    const messages = [system, long("a"), long("b"), long("c"), long("d"), long("e")];
    const count = async (request: Partial<ChatRequest>): Promise<number> =>
      (await client.chat({ model, messages, ...request, stream: false })).prompt_eval_count;
    // 14 for the system message, 1,004 for each other; the default window is 4,096.
    expect(await count({})).toBe(14 + 4 * 1004);
    expect(await count({ options: { num_ctx: 8192 } })).toBe(14 + 5 * 1004);
    expect(await count({ options: { num_ctx: 1500 } })).toBe(14 + 1004);
    expect(simulator.refusals).toEqual([]);
    // What may not be dropped is larger than the window: about half of the window is kept.
    expect(await count({ options: { num_ctx: 1000 } })).toBe(500);
  });

  it("is refused instead when it asks for that", async () => {
    const client = await connect({ fallback: () => "Hello." });
    const long: Message = { role: "user", content: "a".repeat(20_000) };
    const says = /^the prompt is longer than the context length currently available to the model; shorten the prompt/;
    const request = { model, messages: [long, long] };
    await expect(client.chat(withSwitches(request, { truncate: false, shift: false }))).rejects.toMatchObject({
      status_code: 400,
      message: expect.stringMatching(says) as string,
    });
    await expect(client.chat(withSwitches(request, { shift: false }))).rejects.toThrow(says);
    await expect(
      client.chat({ ...withSwitches(request, { truncate: false, shift: false }), stream: true }),
    ).rejects.toThrow(says);
    expect((await client.chat(withSwitches(request, {}))).prompt_eval_count).toBe(2048);
    expect(simulator.refusals.map(({ kind }) => kind)).toEqual(["overflow", "overflow", "overflow"]);
  });

  it("shows a model's window and abilities", async () => {
    const client = await connect({
      models: { [model]: { windowTokens: 131_072, capabilities: ["completion", "tools"] } },
    });
    const shown = await client.show({ model });
    expect(shown.model_info).toEqual({ "general.architecture": "sim", "sim.context_length": 131_072 });
    expect(shown.capabilities).toEqual(["completion", "tools"]);
    expect((await client.ps()).models).toMatchObject([{ name: model, context_length: 4096 }]);
    expect((await client.list()).models).toMatchObject([{ name: model }]);
    expect((await fetch(`${simulator.url}/api/none`)).status).toBe(404);
  });

  it("sees failures, a stream cut off, an error inside it, and can abort", async () => {
    const text = "A longer text than that.";
    const client = await connect({
      replies: [
        { kind: "error", status: 500 },
        { kind: "error", status: 429, message: "slow down" },
        { kind: "answer", content: text, breakAfter: { events: 2, how: "cut" } },
        { kind: "answer", content: text, breakAfter: { events: 2, how: "error-event" } },
        { kind: "answer", content: text, eventDelayMs: 60_000 },
      ],
    });
    const read = async (): Promise<readonly ChatResponse[]> =>
      collect(await client.chat({ model, messages: [hi], stream: true }));
    await expect(read()).rejects.toMatchObject({ status_code: 500 });
    await expect(read()).rejects.toMatchObject({ status_code: 429, message: "slow down" });
    await expect(read()).rejects.toThrow();
    await expect(read()).rejects.toThrow(/^model runner has unexpectedly stopped/);
    const stream = await client.chat({ model, messages: [hi], stream: true });
    const aborted = (async (): Promise<void> => {
      for await (const line of stream) if (!line.done) stream.abort();
    })();
    await expect(aborted).rejects.toThrow(/abort/i);
    await expect
      .poll(() => simulator.requests.map(({ outcome }) => outcome))
      .toEqual(["failed", "failed", "cut", "cut", "aborted"]);
  });
});

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ChatModel } from "@throughline/core";
import { anthropic } from "../src/anthropic.ts";
import { ollama } from "../src/ollama.ts";
import { openai } from "../src/openai.ts";

const server = createServer();
afterEach(() => {
  server.removeAllListeners("request");
  server.closeAllConnections();
  server.close();
});

/** Sends the pieces, and breaks the connection off instead of ending the answer. */
async function breaking(type: string, pieces: readonly string[]): Promise<string> {
  server.on("request", (_, response) => {
    response.writeHead(200, { "content-type": type });
    for (const piece of pieces) response.write(piece);
    setTimeout(() => response.destroy(), 20);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const event = (value: { readonly type?: string }): string =>
  `${value.type === undefined ? "" : `event: ${value.type}\n`}data: ${JSON.stringify(value)}\n\n`;
const choice = (delta: object, finish: string | null): string =>
  event({ id: "x", choices: [{ index: 0, delta, finish_reason: finish }] } as object);

interface Case {
  readonly name: string;
  readonly type: string;
  readonly text: readonly string[];
  readonly last: string;
  readonly create: (url: string) => ChatModel;
}

const cases: readonly Case[] = [
  {
    name: "Chat Completions",
    type: "text/event-stream",
    text: [choice({ content: "Yes." }, null)],
    last: choice({}, "stop"),
    create: (url) => openai("gpt-5", { api: "openai", apiKey: "k", baseUrl: url, maxRetries: 0 }).chat,
  },
  {
    name: "Anthropic",
    type: "text/event-stream",
    text: [
      event({ type: "message_start", message: { id: "m", content: [] } } as object),
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Yes." } } as object),
    ],
    last: event({ type: "message_delta", delta: { stop_reason: "end_turn" } } as object),
    create: (url) => anthropic("claude-opus-5", { apiKey: "k", baseUrl: url, maxRetries: 0 }).chat,
  },
  {
    name: "Ollama",
    type: "application/x-ndjson",
    text: [`${JSON.stringify({ model: "m", message: { role: "assistant", content: "Yes." }, done: false })}\n`],
    last: `${JSON.stringify({ model: "m", message: { content: "" }, done: true, done_reason: "stop" })}\n`,
    create: (url) => ollama("qwen3", { baseUrl: url }).chat,
  },
];

describe.each(cases)("a connection that breaks: $name", ({ type, text, last, create }) => {
  const ask = (url: string): ReturnType<ChatModel["chat"]> =>
    create(url).chat({
      modelId: "m",
      system: null,
      messages: [{ role: "user", content: "Hi" }],
      onDelta: () => undefined,
    });

  it("behind the last word takes nothing from the answer", async () => {
    const { message } = await ask(await breaking(type, [...text, last]));
    expect(message).toMatchObject({ content: [{ type: "text", text: "Yes." }], stopReason: "stop" });
  });

  it("before it is an error", async () => {
    await expect(ask(await breaking(type, text))).rejects.toThrow();
  });
});

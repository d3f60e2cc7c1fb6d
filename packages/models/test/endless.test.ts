import { createServer, type Server, type ServerResponse } from "node:http";
import type { ChatModel } from "@throughline/core";
import { afterEach, describe, expect, it } from "vitest";
import { anthropic } from "../src/anthropic.ts";
import { ollama } from "../src/ollama.ts";
import { openai } from "../src/openai.ts";
import { maxReplyCharacters } from "../src/reply-draft.ts";

interface Provider {
  readonly name: string;
  readonly type: string;
  readonly create: (url: string) => ChatModel;
  /** What a stream begins with, and a piece of its answer. */
  readonly beginning: string;
  readonly piece: (text: string) => string;
}

const event = (body: object & { readonly type?: string }): string =>
  `${body.type === undefined ? "" : `event: ${body.type}\n`}data: ${JSON.stringify(body)}\n\n`;

const providers: readonly Provider[] = [
  {
    name: "Anthropic",
    type: "text/event-stream",
    create: (url) => anthropic("claude-opus-5", { apiKey: "k", baseUrl: url, maxRetries: 0 }).chat,
    beginning:
      event({ type: "message_start", message: { id: "m", model: "m", usage: { input_tokens: 1 } } } as object) +
      event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } } as object),
    piece: (text) => event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } } as object),
  },
  {
    name: "OpenAI Chat Completions",
    type: "text/event-stream",
    create: (url) => openai("gpt-5", { api: "openai", apiKey: "k", baseUrl: url, maxRetries: 0 }).chat,
    beginning: "",
    piece: (text) => event({ id: "m", choices: [{ index: 0, delta: { content: text } }] } as object),
  },
  {
    name: "OpenAI Responses",
    type: "text/event-stream",
    create: (url) => openai("gpt-5", { api: "openai-responses", apiKey: "k", baseUrl: url, maxRetries: 0 }).chat,
    beginning: event({ type: "response.created", response: { id: "m", model: "m" } } as object),
    piece: (text) =>
      event({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: text } as object),
  },
  {
    name: "Ollama",
    type: "application/x-ndjson",
    create: (url) => ollama("qwen3", { baseUrl: url }).chat,
    beginning: "",
    piece: (text) => `${JSON.stringify({ model: "m", message: { role: "assistant", content: text }, done: false })}\n`,
  },
];

let server: Server | null = null;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

interface Answering {
  readonly url: string;
  /** Resolves when the client has gone, with what was sent until then. */
  readonly left: Promise<number>;
}

/** Sends the same piece for as long as somebody takes it. */
async function endlessly(type: string, beginning: string, piece: string): Promise<Answering> {
  const { promise: left, resolve } = Promise.withResolvers<number>();
  const answer = (response: ServerResponse): void => {
    let sent = 0;
    let isGone = false;
    response.writeHead(200, { "content-type": type });
    response.write(beginning);
    response.on("close", () => {
      isGone = true;
      resolve(sent);
    });
    const more = (): void => {
      while (!isGone) {
        sent += piece.length;
        if (!response.write(piece)) return void response.once("drain", more);
      }
    };
    more();
  };
  const made = createServer((request, response) => {
    request.resume();
    request.on("end", () => answer(response));
  });
  server = made;
  await new Promise<void>((listening) => made.listen(0, "127.0.0.1", listening));
  const address = made.address();
  return { url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`, left };
}

const request = { modelId: "m", system: null, messages: [{ role: "user", content: "Hi" }] };

describe.each(providers)("an answer of $name that does not end", ({ type, create, beginning, piece }) => {
  it("is ended at a bound, as one that reached its limit, and the connection with it", async () => {
    const { url, left } = await endlessly(type, beginning, piece("word ".repeat(2000)).repeat(4));
    let heard = 0;
    const reply = await create(url).chat({
      ...request,
      onDelta: (delta) => void (heard += delta.type === "tool-call" ? 0 : delta.text.length),
    });
    expect(reply).toMatchObject({ stopReason: "length", message: { stopReason: "length" } });
    expect(reply.message.errorMessage).toContain("did not end within");
    const [block] = reply.message.content as readonly { readonly text: string }[];
    expect(block?.text.length).toBe(heard);
    expect(heard).toBeGreaterThan(maxReplyCharacters);
    expect(heard).toBeLessThan(maxReplyCharacters + 20_000);
    // What was sent is what was read, and what fits into the buffers between.
    expect(await left).toBeLessThan(maxReplyCharacters * 4);
  });

  it("is refused when it is one line without end", async () => {
    const start = piece("x").slice(0, piece("x").indexOf('"x"') + 2);
    const { url, left } = await endlessly(type, beginning + start, "word ".repeat(20_000));
    const answer = create(url).chat({ ...request, onDelta: () => undefined });
    await expect(answer).rejects.toThrow(/longer than \d+ bytes, so it was not read any further/);
    expect(await left).toBeLessThan(64 * 1024 * 1024);
  });

  it("is refused when it was to come whole", async () => {
    const { url, left } = await endlessly("application/json", '{"content":"', "word\n".repeat(20_000));
    await expect(create(url).chat(request)).rejects.toThrow(/longer than \d+ bytes|Connection error/);
    expect(await left).toBeLessThan(128 * 1024 * 1024);
  });
});

import Anthropic from "@anthropic-ai/sdk";
import type { ChatModel } from "@throughline/core";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { anthropic } from "../src/anthropic.ts";
import { openai } from "../src/openai.ts";
import { takeOllamaResponse } from "../src/ollama-reply.ts";
import { ReplyDraft } from "../src/reply-draft.ts";

type Fetch = () => Promise<Response>;

interface Provider {
  readonly name: string;
  readonly create: (fetch: Fetch) => ChatModel;
  /** A whole answer that says "Yes." */
  readonly answer: object;
}

const providers: readonly Provider[] = [
  {
    name: "Anthropic",
    create: (fetch) =>
      anthropic("claude-opus-5", { client: new Anthropic({ apiKey: "k", fetch, logLevel: "off" }) }).chat,
    answer: { id: "m", content: [{ type: "text", text: "Yes." }], stop_reason: "end_turn" },
  },
  {
    name: "OpenAI Chat Completions",
    create: (fetch) =>
      openai("gpt-5", { api: "openai", client: new OpenAI({ apiKey: "k", fetch, logLevel: "off" }) }).chat,
    answer: { id: "m", choices: [{ message: { content: "Yes." }, finish_reason: "stop" }] },
  },
  {
    name: "OpenAI Responses",
    create: (fetch) =>
      openai("gpt-5", { api: "openai-responses", client: new OpenAI({ apiKey: "k", fetch, logLevel: "off" }) }).chat,
    answer: {
      id: "m",
      status: "completed",
      output: [{ type: "message", content: [{ type: "output_text", text: "Yes." }] }],
    },
  },
];

const request = (isStream: boolean): Parameters<ChatModel["chat"]>[0] => ({
  modelId: "m",
  system: null,
  messages: [{ role: "user", content: "Hi" }],
  ...(isStream ? { onDelta: (): void => undefined } : {}),
});

const words = "prompt is too long: 210000 tokens > 200000 maximum";

describe.each(providers)("$name, with status 200", ({ create, answer }) => {
  const asked = (text: string, type: string, isStream: boolean): Promise<unknown> =>
    create(async () => new Response(text, { headers: { "content-type": type } })).chat(request(isStream));

  it("fails with what a body says went wrong, whole and in the place of a stream", async () => {
    const bodies = [
      { error: { message: words, code: 400 } },
      { type: "error", error: { type: "invalid_request_error", message: words } },
      { error: words },
      { detail: words },
      { code: "1210", msg: words, choices: null },
    ];
    for (const body of bodies) {
      for (const isStream of [true, false]) {
        await expect(asked(JSON.stringify(body), "application/json", isStream)).rejects.toThrow(words);
      }
    }
  });

  it("fails with a page for people, and with what is no object, in words of its own", async () => {
    const texts = [
      ["<html>Log in</html>", "text/html"],
      ["null", "application/json"],
      ["[]", "application/json"],
    ] as const;
    for (const [text, type] of texts) {
      for (const isStream of [true, false])
        await expect(asked(text, type, isStream)).rejects.toThrow(`The server gave no answer but this: ${text}`);
    }
    await expect(asked("", "text/plain", true)).rejects.toThrow("The stream ended before the answer was complete.");
    await expect(asked('{"id":', "application/json", true)).rejects.toThrow("before the answer was complete");
  });

  it("takes a whole answer of a server that streams nothing, and JSON under another name", async () => {
    for (const [type, isStream] of [
      ["application/json", true],
      ["text/plain", true],
      ["text/plain", false],
    ] as const) {
      const reply = await asked(JSON.stringify(answer), type, isStream);
      expect(reply).toMatchObject({ message: { content: [{ type: "text", text: "Yes." }], stopReason: "stop" } });
    }
  });
});

const stream = (events: readonly object[]): Fetch => {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return async () => new Response(text, { headers: { "content-type": "text/event-stream" } });
};

describe("a choice of Chat Completions that failed", () => {
  it("is an error in the gateway's words, with what had come before it", async () => {
    const failed = { finish_reason: "error", error: { code: 502, message: words } };
    const partials: unknown[] = [];
    const streamed = stream([
      { id: "x", choices: [{ delta: { content: "Hel" } }] },
      { id: "x", choices: [{ delta: { content: "" }, ...failed }] },
    ]);
    const model = (fetch: Fetch): ChatModel =>
      openai("gpt-5", { api: "openai", client: new OpenAI({ apiKey: "k", fetch }) }).chat;
    const onPartial = (partial: unknown): void => void partials.push(partial);
    await expect(model(streamed).chat({ ...request(true), onPartial })).rejects.toThrow(words);
    expect(partials).toMatchObject([{ content: [{ type: "text", text: "Hel" }], stopReason: "error" }]);
    const whole = { id: "x", choices: [{ message: { content: "" }, ...failed }] };
    await expect(model(async () => Response.json(whole)).chat(request(false))).rejects.toThrow(words);
  });
});

describe("a stream of Responses without pieces", () => {
  const item = { type: "message", content: [{ type: "output_text", text: "Yes." }] };
  const done = { type: "response.completed", response: { id: "r", status: "completed", output: [item] } };
  const piece = { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Yes." };
  const ended = { type: "response.output_item.done", output_index: 0, item };

  it.each([
    ["with whole items", [ended, done]],
    ["with its end alone", [done]],
    ["with both", [piece, ended, done]],
  ])("is an answer once: %s", async (_, events) => {
    const model = openai("gpt-5", {
      api: "openai-responses",
      client: new OpenAI({ apiKey: "k", fetch: stream(events) }),
    }).chat;
    const { message } = await model.chat(request(true));
    expect(message.content).toEqual([{ type: "text", text: "Yes." }]);
  });
});

describe("a whole answer of Ollama", () => {
  it("that states an error or is none fails with it", () => {
    const draft = new ReplyDraft({ api: "ollama", provider: "ollama", model: "m" }, null);
    expect(() => takeOllamaResponse({ error: words } as never, draft)).toThrow(words);
    expect(() => takeOllamaResponse(null as never, draft)).toThrow("The server gave no answer but this: null");
  });
});

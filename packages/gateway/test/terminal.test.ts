import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { endOf } from "../src/terminal-event.ts";

const streamed = { headers: {} } as IncomingMessage;
const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;

describe("the end of an answer", () => {
  it.each([
    ["Anthropic", 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    ["chat", "data: [DONE]\n\n"],
    ["Responses", data({ type: "response.completed", response: { output: [] } })],
    ["Ollama", '{"message":{"content":""},"done":true}\n'],
    ["Ollama, with blanks", '{"message": {"content": ""}, "done": true}\r\n'],
  ])("is the last event of %s, in one chunk or in single bytes", (_, text) => {
    expect(endOf(streamed)(Buffer.from(text))).toBe(true);
    const isLast = endOf(streamed);
    expect([...Buffer.from(text)].some((byte) => isLast(Buffer.from([byte])))).toBe(true);
  });

  it.each([
    [
      "Anthropic",
      data({ type: "content_block_delta", delta: { text: 'event: message_stop\ndata: {"type":"message_stop"}\n\n' } }),
    ],
    ["chat", data({ choices: [{ delta: { content: "data: [DONE]\n\n" } }] })],
    ["Responses", data({ type: "response.output_text.delta", delta: '"type":"response.completed"' })],
    ["Ollama", `${JSON.stringify({ message: { content: '{"done":true}' }, done: false })}\n`],
    ["a half line", 'data: {"type":"message_stop"}'],
  ])("is not what the model quotes of it: %s", (_, text) => {
    expect(endOf(streamed)(Buffer.from(text))).toBe(false);
    const isLast = endOf(streamed);
    expect([...Buffer.from(text)].some((byte) => isLast(Buffer.from([byte])))).toBe(false);
  });

  it("is not looked for in a line that nests deeper than the limit", () => {
    const nested = (levels: number): Buffer =>
      Buffer.from(`{"done":true,"message":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}\n`);
    expect([endOf(streamed)(nested(180)), endOf(streamed)(nested(181))]).toEqual([true, false]);
  });

  it("is where its length says, whatever it holds", () => {
    const isLast = endOf({ headers: { "content-length": "16" } } as IncomingMessage);
    expect([isLast(Buffer.from("data: [D")), isLast(Buffer.from("ONE]\n\n12"))]).toEqual([false, true]);
  });
});

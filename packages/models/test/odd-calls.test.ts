import type { ChatModel } from "@throughline/core";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { takeAnthropicEvent } from "../src/anthropic-reply.ts";
import { takeResponseEvent } from "../src/openai-responses-reply.ts";
import { openai } from "../src/openai.ts";
import { ReplyDraft } from "../src/reply-draft.ts";

type Block = Readonly<Record<string, unknown>>;

/** A model whose server answers with this, as a stream of chunks or as a whole. */
function answering(answer: readonly object[] | object): ChatModel {
  const text = Array.isArray(answer) ? answer.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") : null;
  const headers = { "content-type": "text/event-stream" };
  const fetch = async (): Promise<Response> =>
    text === null ? Response.json(answer) : new Response(text, { headers });
  return openai("gpt-5", { api: "openai", client: new OpenAI({ apiKey: "k", fetch }) }).chat;
}

async function callsOf(model: ChatModel, isStream: boolean): Promise<{ blocks: readonly Block[]; told: string[] }> {
  const told: string[] = [];
  const { message } = await model.chat({
    modelId: "m",
    system: null,
    messages: [{ role: "user", content: "Hi" }],
    ...(isStream
      ? { onDelta: (delta): void => void (delta.type === "tool-call" && told.push(`${delta.id} ${delta.name}`)) }
      : {}),
  });
  expect(message.stopReason).toBe("toolUse");
  return { blocks: message.content as readonly Block[], told };
}

interface Piece {
  readonly index?: number;
  readonly id?: string;
  readonly name?: string;
  readonly args?: string;
}

const wire = ({ index, id, name, args }: Piece): object => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  type: "function",
  function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
});
const chunk = (delta: object, finish: string | null = null): object => ({
  id: "x",
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const stream = (...pieces: readonly Piece[]): readonly object[] => [
  ...pieces.map((piece) => chunk({ tool_calls: [wire(piece)] })),
  chunk({}, "tool_calls"),
];
const whole = (message: object): object => ({ id: "x", choices: [{ message, finish_reason: "tool_calls" }] });
const one = { type: "toolCall", id: "a", name: "one", arguments: { x: 1 } };
const two = { type: "toolCall", id: "b", name: "two", arguments: { y: 2 } };
const ownId = expect.stringMatching(/^call_[0-9a-f]{24}$/);

describe("calls of servers that speak Chat Completions in their own way", () => {
  it("keep id and name where later pieces say them as empty or with another id", async () => {
    const pieces = [
      stream(
        { index: 0, id: "a", name: "one", args: "" },
        { index: 0, id: "", name: "", args: '{"x"' },
        { index: 0, id: "", args: ":1}" },
      ),
      stream({ index: 0, id: "a", name: "one", args: '{"x"' }, { index: 0, id: "other", args: ":1}" }),
      stream({ index: 0, id: "a", name: "one", args: '{"x"' }, { index: 0, id: "other", name: "one", args: ":1}" }),
      stream({ index: 0, id: "a", name: "one", args: '{"x":1}' }, { index: 0, id: "a", name: "one", args: "" }),
      stream({ index: 0, id: "a", name: "one", args: '{"x":1}' }, { index: 0, name: "one", args: "" }),
    ];
    for (const answer of pieces) {
      const { blocks, told } = await callsOf(answering(answer), true);
      expect(blocks).toEqual([one]);
      expect(told).toEqual(["a one"]);
    }
  });

  it("stay apart where all are numbered 0, or none is", async () => {
    for (const index of [{ index: 0 }, {}]) {
      const first = { ...index, id: "a", name: "one" };
      const answers = [
        stream({ ...first, args: '{"x":1}' }, { ...index, id: "b", name: "two", args: '{"y":2}' }),
        stream(
          { ...first, args: '{"x"' },
          { ...index, args: ":1}" },
          { ...index, id: "b", name: "two", args: "" },
          { ...index, id: "b", args: '{"y":2}' },
        ),
      ];
      for (const answer of answers) expect((await callsOf(answering(answer), true)).blocks).toEqual([one, two]);
      const none = stream({ ...first, args: "" }, { ...index, id: "b", name: "two", args: '{"y":2}' });
      expect((await callsOf(answering(none), true)).blocks).toEqual([{ ...one, arguments: {} }, two]);
    }
  });

  it("get an id of their own where the server gives none, or gives one twice", async () => {
    const calls = [
      { name: "one", args: '{"x":1}' },
      { name: "one", args: '{"x":1}' },
      { name: "two", args: '{"y":2}' },
    ];
    for (const id of [undefined, "", "same"]) {
      const named = calls.map((call) => (id === undefined ? call : { ...call, id }));
      const answers = [
        whole({ tool_calls: named.map(wire) }),
        [chunk({ tool_calls: named.map(wire) }), chunk({}, "tool_calls")],
        ...(id === "same" ? [] : [stream(...named), stream(...named.map((call) => ({ ...call, index: 0 })))]),
      ];
      for (const answer of answers) {
        const { blocks, told } = await callsOf(answering(answer), Array.isArray(answer));
        const first = id === "same" ? "same" : ownId;
        expect(blocks).toEqual([
          { ...one, id: first },
          { ...one, id: ownId },
          { ...two, id: ownId },
        ]);
        expect(new Set(blocks.map((block) => block["id"])).size).toBe(3);
        if (Array.isArray(answer)) expect(told).toEqual(blocks.map((block) => `${block["id"]} ${block["name"]}`));
      }
    }
  });

  it("are read where they stand as the one call of the format before", async () => {
    const call = { name: "one", arguments: '{"x":1}' };
    const pieces = [
      chunk({ function_call: { name: "one", arguments: "" } }),
      chunk({ function_call: { arguments: call.arguments } }),
    ];
    const answers = [
      { id: "x", choices: [{ message: { content: null, function_call: call }, finish_reason: "function_call" }] },
      [...pieces, chunk({}, "function_call")],
    ];
    for (const answer of answers) {
      const { blocks } = await callsOf(answering(answer), Array.isArray(answer));
      expect(blocks).toEqual([{ ...one, id: ownId }]);
    }
    const both = whole({ tool_calls: [wire({ id: "a", name: "one", args: '{"x":1}' })], function_call: call });
    expect((await callsOf(answering(both), false)).blocks).toEqual([one]);
  });

  it("are told apart in Responses too", async () => {
    const item = { type: "function_call", call_id: "", name: "one", arguments: '{"x":1}' };
    const response = { id: "r", object: "response", status: "completed", output: [item, item] };
    const client = new OpenAI({ apiKey: "k", fetch: async () => Response.json(response) });
    const { blocks } = await callsOf(openai("gpt-5", { api: "openai-responses", client }).chat, false);
    expect(blocks).toEqual([
      { ...one, id: ownId },
      { ...one, id: ownId },
    ]);
    expect(blocks[0]?.["id"]).not.toBe(blocks[1]?.["id"]);
  });
});

describe("events that leave out what they should say", () => {
  it.each([
    { type: "message_start" },
    { type: "message_start", message: { id: 5 } },
    { type: "content_block_start", index: 0, content_block: { type: "text" } },
    { type: "content_block_start", index: 0, content_block: { type: "thinking" } },
    { type: "content_block_start", index: 0 },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta" } },
    { type: "content_block_delta", index: 0, delta: null },
    { type: "message_delta" },
  ])("of Anthropic's format say nothing: %j", (event) => {
    const draft = new ReplyDraft({ api: "anthropic-messages", provider: "p", model: "m" }, null);
    takeAnthropicEvent(event as never, draft);
    expect(draft.message({ stopReason: "stop" })).toEqual({
      role: "assistant",
      content: [],
      api: "anthropic-messages",
      provider: "p",
      model: "m",
      stopReason: "stop",
    });
  });

  it.each([
    [{ type: "response.output_item.added", output_index: 0 }, null],
    [{ type: "response.output_text.delta", output_index: 0, content_index: 0 }, null],
    [{ type: "response.created" }, null],
    [{ type: "response.completed" }, "completed"],
    [{ type: "response.incomplete" }, "incomplete"],
  ])("of Responses say no more than their names: %j", (event, stopReason) => {
    const draft = new ReplyDraft({ api: "openai-responses", provider: "p", model: "m" }, null);
    const errors = { failureOf: (): Error => new Error("failed"), brokenOff: (): Error => new Error("broken") };
    takeResponseEvent(event as never, draft, errors);
    expect([draft.stopReason, draft.message({ stopReason: "stop" }).content]).toEqual([stopReason, []]);
    expect(() => takeResponseEvent({ type: "response.failed" } as never, draft, errors)).toThrow("failed");
  });
});

import * as anthropic from "@throughline/history/anthropic";
import * as ollama from "@throughline/history/ollama";
import * as openai from "@throughline/history/openai";
import type { AssistantMessage } from "@throughline/core";
import fc from "fast-check";
import process from "node:process";
import { describe, expect, it } from "vitest";
import type { AnswerErrors } from "../src/answer-body.ts";
import { anthropicEnd, takeAnthropicMessage } from "../src/anthropic-reply.ts";
import { collectReply } from "../src/collect-reply.ts";
import { ollamaEnd, takeOllamaResponse } from "../src/ollama-reply.ts";
import { chatEnd, takeChatCompletion } from "../src/openai-chat-reply.ts";
import { responseEnd, takeResponse } from "../src/openai-responses-reply.ts";
import { ReplyDraft, type ReplyEnd } from "../src/reply-draft.ts";

const errors: AnswerErrors = {
  failureOf: (body) => new Error(JSON.stringify(body)),
  brokenOff: () => new Error("broken off"),
};

type Take = (reply: never, draft: ReplyDraft, errors: AnswerErrors) => void;

/** What the model of ours makes of a whole reply. */
async function byModel(
  api: string,
  provider: string,
  reply: unknown,
  take: Take,
  endOf: (word: string) => ReplyEnd,
): Promise<AssistantMessage> {
  const draft = new ReplyDraft({ api, provider, model: "asked" }, null, counter());
  const answer = await collectReply({
    request: { modelId: "asked", system: null, messages: [] },
    draft,
    open: async () => [reply as never],
    take: (event) => take(event, draft, errors),
    endOf,
    brokenOff: errors.brokenOff,
  });
  return answer.message;
}

function counter(): () => string {
  let count = 0;
  return () => `own_${(count += 1)}`;
}

const words = fc.constantFrom("", "Hi.", "Größe 😀", " ", "a\nb");
const id = fc.constantFrom("c1", "c2", "c3", "");
const args = fc.constantFrom("{}", '{"a":1}', '{"a":{"b":[1,"x"]}}', "", "[1]", "no json", '"text"');
const input = fc.constantFrom({}, { a: 1 }, { a: { b: [1] } });
const count = fc.nat({ max: 5000 });
const envelope = { id: fc.constantFrom("r1", "", null), model: fc.constantFrom("asked", "asked-001") };

const anthropicReply = fc.record({
  ...envelope,
  content: fc.array(
    fc.oneof(
      fc.record({ type: fc.constant("text"), text: words, citations: fc.constantFrom(null, [{ url: "u" }]) }),
      fc.record({ type: fc.constant("thinking"), thinking: words, signature: fc.constantFrom("sig", "") }),
      fc.record({ type: fc.constant("redacted_thinking"), data: fc.constant("xyz") }),
      fc.record({ type: fc.constant("tool_use"), id, name: fc.constant("read"), input: fc.oneof(input, args) }),
      fc.record({ type: fc.constant("server_tool_use"), id, name: fc.constant("web_search"), input }),
    ),
    { maxLength: 5 },
  ),
  stop_reason: fc.constantFrom("end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "stop_sequence"),
  usage: fc.record({
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: fc.option(count),
    cache_creation_input_tokens: count,
    output_tokens_details: fc.constantFrom({ thinking_tokens: 7 }, {}),
  }),
});

const completion = fc.record({
  ...envelope,
  choices: fc
    .record({
      message: fc.record(
        {
          role: fc.constant("assistant"),
          content: fc.oneof(words, fc.constant(null), fc.array(fc.record({ type: fc.constant("text"), text: words }))),
          refusal: fc.constantFrom(null, "I will not."),
          reasoning_content: words,
          reasoning: words,
          tool_calls: fc.array(
            fc.record({
              id,
              type: fc.constant("function"),
              function: fc.record({ name: fc.constant("read"), arguments: args }),
            }),
            { maxLength: 3 },
          ),
        },
        { requiredKeys: ["role", "content"] },
      ),
      finish_reason: fc.constantFrom("stop", "tool_calls", "length", "content_filter", "error"),
    })
    .map((choice) => [choice]),
  usage: fc.record({ prompt_tokens: count, completion_tokens: count }),
});

const response = fc.record({
  ...envelope,
  status: fc.constant("completed"),
  output: fc.array(
    fc.oneof(
      fc.record({
        type: fc.constant("message"),
        role: fc.constant("assistant"),
        content: fc.array(
          fc.oneof(
            fc.record({ type: fc.constant("output_text"), text: words }),
            fc.record({ type: fc.constant("refusal"), refusal: words }),
          ),
        ),
      }),
      fc.record({ type: fc.constant("function_call"), call_id: id, name: fc.constant("read"), arguments: args }),
      fc.record({
        type: fc.constant("reasoning"),
        id: fc.constant("rs_1"),
        summary: fc.array(fc.record({ type: fc.constant("summary_text"), text: words })),
        encrypted_content: fc.constant("e"),
      }),
      fc.record({ type: fc.constant("web_search_call"), id: fc.constant("ws_1") }),
    ),
    { maxLength: 5 },
  ),
  usage: fc.record({
    input_tokens: count,
    output_tokens: count,
    input_tokens_details: fc.constant({ cached_tokens: 3 }),
  }),
});

const ollamaReply = fc.record({
  model: envelope.model,
  done: fc.constant(true),
  done_reason: fc.constantFrom("stop", "length"),
  message: fc.record(
    {
      role: fc.constant("assistant"),
      content: words,
      thinking: words,
      tool_calls: fc.array(fc.record({ function: fc.record({ name: fc.constant("read"), arguments: input }) }), {
        maxLength: 3,
      }),
    },
    { requiredKeys: ["role", "content"] },
  ),
  prompt_eval_count: count,
  eval_count: count,
});

const cases = [
  ["Anthropic", "anthropic-messages", "anthropic", anthropicReply, anthropic, takeAnthropicMessage, anthropicEnd],
  ["Chat Completions", "openai-completions", "openai", completion, openai, takeChatCompletion, chatEnd],
  ["Responses", "openai-responses", "openai", response, openai, takeResponse, responseEnd],
  ["Ollama", "ollama", "ollama", ollamaReply, ollama, takeOllamaResponse, ollamaEnd],
] as const;

describe("the record of a reply", () => {
  it.each(cases)(
    "of %s is the same whether a model of ours asked or a loop did",
    async (_name, api, provider, replies, entry, take, endOf) => {
      let kept = 0;
      await fc.assert(
        fc.asyncProperty(replies as fc.Arbitrary<unknown>, async (reply) => {
          const expected = await byModel(api, provider, reply, take as Take, endOf);
          const { message } = entry.recordFromReply(reply, { model: "asked", nextCallId: counter() });
          expect(message).toEqual(expected);
          kept += expected.content.length;
        }),
        { numRuns: 400 * Number(process.env["THROUGHLINE_RUNS"] ?? 1) },
      );
      expect(kept).toBeGreaterThan(100);
    },
  );

  it("of a response that ended otherwise says so, where the SDK's model throws or asks again", () => {
    const output = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "I can" }] }];
    const ended = (fields: object): unknown => openai.recordFromReply({ output, ...fields }, { model: "m" }).message;
    expect(ended({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })).toMatchObject({
      stopReason: "length",
    });
    expect(ended({ status: "incomplete", incomplete_details: { reason: "content_filter" } })).toMatchObject({
      stopReason: "error",
    });
    expect(ended({ status: "failed", error: { message: "No." } })).toMatchObject({
      stopReason: "error",
      errorMessage: "No.",
    });
  });
});

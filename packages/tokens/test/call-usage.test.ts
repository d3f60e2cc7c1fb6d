import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readUsage } from "@throughline/core/internal";

const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, reasoning: 0 };

describe("readUsage", () => {
  it.each([
    [
      "a record",
      { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, totalTokens: 135, cost: { total: 1 } },
      { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, promptTokens: 130, occupancyTokens: 135 },
    ],
    [
      "Anthropic, whose input leaves the cache out",
      {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 20,
        cache_creation: { ephemeral_5m_input_tokens: 12, ephemeral_1h_input_tokens: 8 },
      },
      {
        input: 10,
        output: 5,
        cacheRead: 100,
        cacheWrite: 20,
        cacheWrite1h: 8,
        promptTokens: 130,
        occupancyTokens: 135,
      },
    ],
    [
      "chat completions, whose prompt includes the cache",
      {
        prompt_tokens: 130,
        completion_tokens: 5,
        total_tokens: 135,
        prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, reasoning: 3, promptTokens: 130, occupancyTokens: 135 },
    ],
    [
      "DeepSeek",
      { prompt_tokens: 130, completion_tokens: 5, prompt_cache_hit_tokens: 100, prompt_cache_miss_tokens: 30 },
      { input: 30, output: 5, cacheRead: 100, promptTokens: 130, occupancyTokens: 135 },
    ],
    [
      "OpenAI responses",
      {
        input_tokens: 130,
        output_tokens: 5,
        total_tokens: 135,
        input_tokens_details: { cached_tokens: 100 },
        output_tokens_details: { reasoning_tokens: 4 },
      },
      { input: 30, output: 5, cacheRead: 100, reasoning: 4, promptTokens: 130, occupancyTokens: 135 },
    ],
    [
      "Gemini, whose thoughts lie beside the answer",
      {
        promptTokenCount: 130,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 7,
        cachedContentTokenCount: 100,
        totalTokenCount: 142,
      },
      { input: 30, output: 12, cacheRead: 100, reasoning: 7, promptTokens: 130, occupancyTokens: 142 },
    ],
    [
      "Ollama",
      { prompt_eval_count: 130, eval_count: 5 },
      { input: 130, output: 5, promptTokens: 130, occupancyTokens: 135 },
    ],
    [
      "Bedrock",
      { inputTokens: 10, outputTokens: 5, totalTokens: 135, cacheReadInputTokens: 100, cacheWriteInputTokens: 20 },
      { input: 10, output: 5, cacheRead: 100, cacheWrite: 20, promptTokens: 130, occupancyTokens: 135 },
    ],
    [
      "the AI SDK",
      { inputTokens: 130, outputTokens: 5, totalTokens: 135, cachedInputTokens: 100, reasoningTokens: 2 },
      { input: 30, output: 5, cacheRead: 100, reasoning: 2, promptTokens: 130, occupancyTokens: 135 },
    ],
  ])("reads %s [C34]", (_, usage, expected) => {
    expect(readUsage(usage)).toEqual({ ...none, ...expected });
  });

  it("takes the window from the last pass and the spend from all when the provider compacted on its side", () => {
    const usage = {
      input_tokens: 3000,
      output_tokens: 200,
      iterations: [
        { type: "message", input_tokens: 1000, output_tokens: 100 },
        { type: "compaction", input_tokens: 150_000, output_tokens: 2000 },
        { type: "message", input_tokens: 2000, output_tokens: 100, cache_read_input_tokens: 500 },
      ],
    };
    const read = readUsage(usage);
    expect(read).toMatchObject({ input: 153_000, output: 2200, promptTokens: 2500, occupancyTokens: 2600 });
    // A record keeps what was read; it must mean the same when it is read again.
    expect(readUsage(JSON.parse(JSON.stringify(read)))).toEqual(read);
  });

  it.each([
    ["none", null],
    ["a text", "12"],
    ["an empty object", {}],
    ["zeros, as after an abort", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 }],
    ["an output without a prompt", { input: 0, output: 9, cacheRead: 0, cacheWrite: 0 }],
    ["an evaluation without a prompt", { eval_count: 9 }],
    ["a text where a number belongs", { input_tokens: "10", output_tokens: 5 }],
    ["less than nothing", { input_tokens: -10, output_tokens: 5 }],
    ["not a number", { prompt_tokens: Number.NaN, completion_tokens: 5 }],
  ])("reads nothing out of %s", (_, usage) => {
    expect(readUsage(usage)).toBeNull();
  });

  it("reads what it gives, and never gives less prompt than a part of it", () => {
    const tokens = fc.nat(1_000_000);
    fc.assert(
      fc.property(fc.record({ input: tokens, output: tokens, cacheRead: tokens, cacheWrite: tokens }), (usage) => {
        const read = readUsage(usage);
        expect(read === null).toBe(usage.input + usage.cacheRead + usage.cacheWrite === 0);
        if (read === null) return;
        expect(readUsage(read)).toEqual(read);
        expect(read.occupancyTokens).toBe(usage.input + usage.cacheRead + usage.cacheWrite + usage.output);
      }),
    );
  });
});

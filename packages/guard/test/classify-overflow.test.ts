import process from "node:process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { classifyOverflow } from "@throughline/guard";
import { fillSlots, lexicon } from "../src/lexicon.ts";
import { overflowRules } from "../src/overflow-rules.ts";
import { lookAlikes, unseenOverflows } from "./unseen-wordings.ts";

/** How many times as many cases the properties are tried on. */
const factor = Number(process.env["THROUGHLINE_RUNS"] ?? 1);
const tooLong = "prompt is too long: 210,000 tokens > 200,000 maximum";

describe("classifying wordings made up for these tests", () => {
  it.each(unseenOverflows.map((wording) => [wording.text, wording] as const))("recognizes %s", (_, wording) => {
    const found = classifyOverflow({ status: wording.status ?? 400, message: wording.text });
    expect({ overflow: found.overflow, kind: found.kind, rule: found.rule }).toEqual({
      overflow: true,
      kind: wording.kind ?? "input",
      rule: found.rule,
    });
    if (wording.sizes !== undefined) expect([found.inputTokens, found.limitTokens]).toEqual(wording.sizes);
  });

  it.each(lookAlikes.map((wording) => [wording.text, wording] as const))("lets go of %s", (_, { text, status }) => {
    expect(classifyOverflow({ status: status ?? 400, message: text })).toMatchObject({ overflow: false, kind: null });
    expect(classifyOverflow(text)).toMatchObject({ overflow: false, kind: null });
  });
});

describe("classifying what lies close together", () => {
  it.each([
    ["the conversation length was exceeded, start anew", "the retry count was exceeded"],
    [
      "your context is too long, temporarily switch to a larger model",
      "the model is temporarily unavailable, it took too much context",
    ],
    ["请求过大", "请求过多"],
    ["超出最大长度", "用户名超出最大长度"],
    ["上下文窗口已满", "消息队列已满"],
    [
      "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576.",
      "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1048576.",
    ],
    ["error: prompt is too long", "expected a number, got 'the prompt is too long'"],
  ])("takes %s and lets go of %s", (overflow, other) => {
    expect(classifyOverflow({ status: 400, message: overflow }).overflow).toBe(true);
    expect(classifyOverflow({ status: 400, message: other }).overflow).toBe(false);
  });
});

describe("classifying shapes of errors", () => {
  const found = (error: unknown): unknown => {
    const { overflow, kind, inputTokens, limitTokens } = classifyOverflow(error);
    return { overflow, kind, inputTokens, limitTokens };
  };
  const expected = { overflow: true, kind: "input", inputTokens: 210_000, limitTokens: 200_000 };
  const body = { type: "error", error: { type: "invalid_request_error", message: tooLong } };

  it("reads text, JSON, nested, streamed, printed and caused errors [GRD-11, C40]", () => {
    const shapes: unknown[] = [
      tooLong,
      JSON.stringify(body),
      `400 ${JSON.stringify(body)}`,
      { provider: "anthropic", status: 400, body },
      { provider: "anthropic", status: 400, body: JSON.stringify(body) },
      { error: { message: "Provider returned error", metadata: { raw: JSON.stringify(body) } } },
      { error_message: JSON.stringify({ error_message: JSON.stringify(body) }) },
      `event: error\ndata: ${JSON.stringify(body)}\n\n`,
      `{"message":{"content":"Hal"},"done":false}\n{"error":"${tooLong}","status":400}\n`,
      `Error code: 400 - {'error': {'message': "${tooLong}", 'code': None, 'ok': False}}`,
      new Error("the call failed", { cause: new Error("again", { cause: body }) }),
      Object.assign(new Error("Failed after 3 attempts."), {
        name: "AI_RetryError",
        errors: [new Error("Rate limit reached, too many requests"), new Error(tooLong)],
      }),
      new AggregateError([new Error("429 slow down"), new Error(tooLong)], "all failed"),
      { responseBody: JSON.stringify(body), requestBodyValues: { messages: ["rate limit"] }, statusCode: 400 },
      { status: 500, message: JSON.stringify({ error: { code: 400, message: tooLong } }) },
    ];
    for (const shape of shapes) expect([shape, found(shape)]).toEqual([shape, expected]);
  });

  it("takes stop reasons for what they are", () => {
    expect(classifyOverflow({ status: 200, stopReason: "model_context_window_exceeded" })).toMatchObject({
      kind: "input",
    });
    expect(classifyOverflow({ choices: [], finish_reason: "model_length" })).toMatchObject({ kind: "io" });
    expect(classifyOverflow({ stop_reason: "end_turn" })).toMatchObject({ overflow: false });
    expect(classifyOverflow({ finish_reason: "length" })).toMatchObject({ overflow: false });
    expect(classifyOverflow({ stop_reason: "max_tokens" })).toMatchObject({ overflow: false });
  });

  it("does not listen to a text that quotes the prompt", () => {
    const quoted = { detail: [{ loc: ["body", "messages"], msg: "Field required", input: tooLong }] };
    expect(found(quoted)).toMatchObject({ overflow: false });
    expect(found({ message: "Bad request", requestBodyValues: { messages: [{ content: tooLong }] } })).toMatchObject({
      overflow: false,
    });
    expect(found({ message: "Network error", config: { data: tooLong } })).toMatchObject({ overflow: false });
  });

  it("gives an empty answer its provider's meaning", () => {
    const bodyless = (provider: string, status: number): unknown =>
      found({ provider, status, message: `${status} status code (no body)` });
    expect(bodyless("cerebras", 400)).toMatchObject({ overflow: true, kind: "input" });
    expect(bodyless("kimi", 400)).toMatchObject({ overflow: false });
    expect(bodyless("kimi", 413)).toMatchObject({ overflow: true, kind: "bytes" });
  });

  it("believes a hosted server's 500 only by its figures, and a local server's by its words [C40]", () => {
    const message = "the context window was exceeded";
    expect(found({ provider: "openai", status: 500, message })).toMatchObject({ overflow: false });
    expect(found({ provider: "openai", status: 500, message: tooLong })).toEqual(expected);
    expect(found({ provider: "ollama", status: 500, message })).toMatchObject({ overflow: true });
  });

  it("reads the wait a rate limit asks for", () => {
    const limited = { status: 429, message: "Rate limit reached, try again in 3.5s" };
    expect(classifyOverflow(limited)).toMatchObject({ overflow: false, category: "rate_limit", retryAfterMs: 3500 });
    expect(classifyOverflow({ ...limited, headers: new Headers({ "retry-after": "7" }) }).retryAfterMs).toBe(7000);
    expect(classifyOverflow({ ...limited, headers: { "retry-after-ms": "40" } }).retryAfterMs).toBe(40);
    expect(classifyOverflow({ ...limited, headers: { "Retry-After": "5" } }).retryAfterMs).toBe(5000);
    const dates = { "retry-after": "Wed, 21 Oct 2026 07:29:30 GMT", date: "Wed, 21 Oct 2026 07:28:00 GMT" };
    expect(classifyOverflow({ ...limited, headers: new Headers(dates) }).retryAfterMs).toBe(90_000);
  });

  it("reads a wait in hours and minutes out of a text", () => {
    const waitOf = (text: string): number | null => classifyOverflow({ status: 429, message: text }).retryAfterMs;
    expect(waitOf("try again in 1h2m3s")).toBe(3_723_000);
    expect(waitOf("Please try again in 6m0s.")).toBe(360_000);
    expect(waitOf("try again in 2 minutes")).toBe(120_000);
    expect(waitOf("retry in 20ms")).toBe(20);
    expect(waitOf("try again in a while, after 5 others")).toBeNull();
  });

  it.each([
    "prompt_cache_key: string too long, max 64 characters",
    "Metadata value for 'conversation' exceeds 512 characters",
    "logit_bias: too many tokens: at most 300",
    "messages.0.content.0.tool_use.input: object nested too deeply, exceeds maximum depth of 100",
    "Model context protocol server error: response too large: exceeds 25000 tokens",
    "prefix cache TTL of context exceeds 3600",
  ])("is not what another limit says in the words of one: %s", (message) => {
    expect(classifyOverflow({ status: 400, message }).overflow).toBe(false);
  });

  it("states what the model may write at most", () => {
    const capped = {
      status: 400,
      message: "max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens",
    };
    expect(classifyOverflow(capped)).toMatchObject({ overflow: false, category: "output_cap", maxOutputTokens: 4096 });
  });

  it("is not the test of the first document, which took any token or context for an overflow [C40]", () => {
    for (const text of ["invalid token", "100 tokens per minute", "context deadline exceeded"]) {
      expect(/token|context/.test(text)).toBe(true);
      expect(classifyOverflow(new Error(text)).overflow).toBe(false);
    }
  });
});

describe("classifying anything", () => {
  it("never throws, whatever is thrown at it", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }),
        (value) => {
          expect(classifyOverflow(value).overflow).toBeTypeOf("boolean");
        },
      ),
      { numRuns: 200 * factor },
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.jsonValue({ maxDepth: 4 }), (text, json) => {
        expect(classifyOverflow({ message: `${text}${JSON.stringify(json)}`, cause: json }).kind).toBeDefined();
      }),
      { numRuns: 120 * factor },
    );
  });

  it("survives loops, getters that throw, proxies and deep chains", () => {
    const loop: Record<string, unknown> = { message: "loop" };
    loop["cause"] = loop;
    const throwing = Object.defineProperty({}, "message", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    });
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("no");
        },
        ownKeys: () => {
          throw new Error("no");
        },
      },
    );
    let deep: unknown = tooLong;
    for (let depth = 0; depth < 5000; depth++) deep = { cause: deep };
    for (const value of [loop, throwing, hostile, deep, [hostile], { cause: hostile }])
      expect(classifyOverflow(value).overflow).toBe(false);
  });

  it("reads long texts in time that grows no faster than they do", { tags: ["slow"] }, () => {
    const filler = ["{", "[{", "token ", "9,999 ", "context length ", '"', "exceeds the ", "x"].map((part) =>
      part.repeat(60_000),
    );
    const started = process.cpuUsage();
    for (const text of filler) classifyOverflow({ status: 400, message: `${text} nothing` });
    // Of the processor: a busy machine is not a slow expression.
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(3000);
  });
});

describe("the rules", () => {
  it("have ids of their own, and templates that can be read", () => {
    expect(new Set(overflowRules.map(({ id }) => id)).size).toBe(overflowRules.length);
    for (const { template } of overflowRules) expect(() => new RegExp(fillSlots(template, lexicon))).not.toThrow();
  });
});

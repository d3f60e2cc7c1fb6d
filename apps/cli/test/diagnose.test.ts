import { afterAll, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

async function diagnose(stdin: string | Uint8Array, ...args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout, code } = await runHere(directory.path, ["diagnose", "--json", ...args], { stdin });
  expect(code).toBe(0);
  return objects(stdout)[0] ?? {};
}

describe("diagnose", () => {
  it("reads plain text, JSON in the shapes of providers, and a stop reason", async () => {
    const overflow = { kind: "diagnosis", overflow: true, overflowKind: "input" };
    expect(await diagnose("prompt is too long: 210000 tokens > 200000 maximum\n")).toMatchObject({
      ...overflow,
      inputTokens: 210_000,
      limitTokens: 200_000,
    });
    const anthropic = {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
    };
    expect(await diagnose(JSON.stringify({ status: 400, body: anthropic }))).toMatchObject(overflow);
    const openai = { error: { message: "too long", code: "context_length_exceeded" } };
    expect(
      await diagnose(JSON.stringify({ provider: "openai", status: 400, body: JSON.stringify(openai) })),
    ).toMatchObject(overflow);
    expect(await diagnose('{"stopReason":"model_context_window_exceeded"}')).toMatchObject(overflow);
    expect(
      await diagnose('{"provider":"ollama","message":"the input length exceeds the context length"}'),
    ).toMatchObject(overflow);
  });

  it("takes a rate limit for what it is, with the time to wait", async () => {
    const error = { status: 429, headers: { "retry-after": "7" }, message: "Too many tokens per minute" };
    expect(await diagnose(JSON.stringify(error))).toMatchObject({
      overflow: false,
      overflowKind: null,
      category: "rate_limit",
      retryAfterMs: 7000,
      action: "pass the error on; the history is not touched",
    });
  });

  it("takes no message for an overflow because it says token or context [C40]", async () => {
    for (const error of [
      { provider: "anthropic", status: 401, message: "invalid x-api-key token" },
      { provider: "openai", status: 401, message: "Incorrect API key provided: your access token has expired" },
      {
        provider: "openai",
        status: 429,
        message: "Rate limit reached: Limit 30000 tokens per min, Used 29000, Requested 4000",
      },
      { provider: "openai", status: 400, message: "Unexpected token < in JSON at position 0" },
      { provider: "ollama", status: 500, message: "context deadline exceeded" },
      {
        provider: "anthropic",
        status: 400,
        message: "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens",
      },
    ])
      expect([error.message, (await diagnose(JSON.stringify(error)))["overflow"]]).toEqual([error.message, false]);
    // The provider's code counts before every word.
    const coded = {
      provider: "openai",
      status: 400,
      body: { error: { code: "context_length_exceeded", message: "no" } },
    };
    expect(await diagnose(JSON.stringify(coded))).toMatchObject({ overflow: true });
  });

  it("uses the provider's name where the error says none", async () => {
    const error = '{"status":400}';
    expect(await diagnose(error)).toMatchObject({ overflow: false });
    expect(await diagnose(error, "--provider", "cerebras")).toMatchObject({ overflow: true });
  });

  const strange: Readonly<Record<string, string | Uint8Array>> = {
    "broken JSON": '{"status":400,"message":"prompt is too',
    "a list": '[1,"two",null]',
    "a number": "429",
    "a word of JSON": "null",
    "a text of JSON": '"Too many requests"',
    "no text at all": new Uint8Array([0, 255, 254, 1, 10]),
    "a byte order mark": '\uFEFF{"status":529}',
    "deep nesting": `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
    "five megabytes": `prompt is too long ${"x".repeat(5 * 1024 * 1024)}`,
    "its own prototype": '{"__proto__":{"status":400},"constructor":1,"message":{"toString":1}}',
  };
  it.each(Object.keys(strange))("says something of %s", async (name) => {
    expect(await diagnose(strange[name] ?? "")).toMatchObject({ kind: "diagnosis", category: expect.any(String) });
  });

  it("wants something to look at", async () => {
    expect((await runHere(directory.path, ["diagnose"], { stdin: " \n" })).code).toBe(2);
  });

  it("says it for people too", async () => {
    const { stdout } = await runHere(directory.path, ["diagnose"], {
      stdin: "prompt is too long: 210000 tokens > 200000",
    });
    expect(stdout).toMatch(
      /^an overflow: input\n.*210,000 tokens\n.*200,000 tokens\n.*rule.*\n.*the guard.*tool results/,
    );
  });
});

import { describe, expect, it } from "vitest";
import { freshTokens, markStale, occupancyAfter } from "../src/occupancy.ts";
import { lastActual } from "@throughline/tokens";
import type { Occupancy, StaleReason } from "../src/occupancy.ts";

const opus = { provider: "anthropic", modelId: "claude-opus-4-5" };
const usage = (input: number, cacheRead: number, output: number): object => ({
  input,
  cacheRead,
  cacheWrite: 0,
  output,
});

function after(given: unknown, before: Occupancy | null = null, stopReason = "stop"): Occupancy | null {
  return occupancyAfter({ usage: given, model: opus, stopReason }, before);
}

describe("occupancy", () => {
  it("is what the last call alone says, cache and output included [TOK-04, C34]", () => {
    const first = after(usage(100, 50_000, 500));
    const second = after({ input: 20, cacheRead: 50_500, cacheWrite: 80, output: 300 }, first);
    expect(freshTokens(second, opus)).toBe(50_900);
  });

  it.each(["aborted", "error"])("ignores the usage of a reply that ended as %s", (stopReason) => {
    const before = after(usage(100, 0, 10));
    expect(after(usage(99_999, 0, 1), before, stopReason)).toBe(before);
  });

  it("ignores zeros", () => {
    const before = after(usage(100, 0, 10));
    expect(after(usage(0, 0, 0), before)).toBe(before);
    expect(after(usage(0, 0, 0))).toBeNull();
  });

  it.each<StaleReason>(["compaction", "edit", "redaction", "model-change"])("decides nothing after a %s", (reason) => {
    const stale = markStale({ tokens: 110, model: opus, staleBecause: null }, reason);
    expect(stale).toMatchObject({ tokens: 110, staleBecause: reason });
    expect(freshTokens(stale, opus)).toBeNull();
    expect(markStale(stale, "edit").staleBecause).toBe(reason);
    expect(freshTokens(after(usage(60, 0, 5), stale), opus)).toBe(65);
  });

  it("does not hold for another model, but for the same under another name", () => {
    const measured = after(usage(100, 0, 10));
    expect(freshTokens(measured, { provider: "openai", modelId: "gpt-5" })).toBeNull();
    expect(freshTokens(measured, { provider: "bedrock", modelId: "us.anthropic.claude-opus-4-5-20251101-v1:0" })).toBe(
      110,
    );
  });
});

describe("lastActual", () => {
  const user = { role: "user", content: [{ type: "text", text: "hello" }] };
  const reply = (fields: object): object => ({
    role: "assistant",
    model: "claude-opus-4-5",
    stopReason: "stop",
    content: [],
    ...fields,
  });

  it("takes the newest reply that states a size, and says what it covers", () => {
    const messages = [user, reply({ usage: usage(10, 0, 5) }), user, reply({ usage: usage(30, 0, 5) }), user];
    expect(lastActual(messages, opus)).toEqual({ tokens: 35, coversMessages: 4 });
  });

  it("passes over replies that failed or state nothing", () => {
    const failed = reply({ stopReason: "aborted", usage: usage(900, 0, 1) });
    const silent = reply({ usage: usage(0, 0, 0) });
    expect(lastActual([user, reply({ usage: usage(10, 0, 5) }), user, failed, silent, reply({}), user], opus)).toEqual({
      tokens: 15,
      coversMessages: 2,
    });
  });

  it("passes over a count that the messages cannot have", () => {
    const impossible = reply({ usage: usage(4_281_807, 0, 1) });
    const before = reply({ usage: usage(10, 0, 5) });
    expect(lastActual([user, before, user, impossible, user], opus)).toEqual({ tokens: 15, coversMessages: 2 });
    const short = Array.from({ length: 30 }, () => [user, impossible]).flat();
    expect(lastActual(short, opus)).toBeNull();
    // A large system prompt, long texts and files are possible.
    expect(lastActual([user, reply({ usage: usage(190_000, 0, 5) })], opus)).toMatchObject({ tokens: 190_005 });
    const long = { role: "user", content: "word ".repeat(40_000) };
    expect(lastActual([long, reply({ usage: usage(250_000, 0, 5) })], opus)).toMatchObject({ tokens: 250_005 });
    const image = { type: "image", data: "a".repeat(400_000), mimeType: "image/png" };
    const withImages = { role: "user", content: Array.from({ length: 40 }, () => image) };
    expect(lastActual([withImages, reply({ usage: usage(260_000, 0, 5) })], opus)).toMatchObject({ tokens: 260_005 });
  });

  it("is none when what stands before the reply has changed since, or the model has", () => {
    expect(lastActual([user, reply({ usage: usage(10, 0, 5), isPrefixChanged: true })], opus)).toBeNull();
    expect(lastActual([user, reply({ usage: usage(10, 0, 5), model: "claude-sonnet-4-5" })], opus)).toBeNull();
    expect(lastActual([user], opus)).toBeNull();
    expect(lastActual([], opus)).toBeNull();
  });
});

import { describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import { createAheadCounter } from "../src/ahead-counter.ts";

const said = (index: number): { readonly role: "user"; readonly content: string } => ({
  role: "user",
  content: `Message ${index} with some words.`,
});

describe("the tokens of many messages", () => {
  it("are counted ahead a message a step, each once, and are the same", async () => {
    const estimator = createTokenEstimator({ cacheEntries: 0 });
    const counter = await estimator.counterFor({ provider: "anthropic", modelId: "claude-opus-5" });
    const messages = Array.from({ length: 1050 }, (_, index) => said(index));
    const whole = counter.countMessages(messages);
    const ahead = createAheadCounter(counter);
    const before = estimator.work.slices;
    expect([...ahead.countAhead(messages, 50)]).toHaveLength(1000);
    expect([...ahead.countAhead(messages)]).toHaveLength(50);
    expect([...ahead.countAhead(messages)]).toEqual([]);
    expect(ahead.countMessages(messages)).toEqual(whole);
    expect(ahead.countMessages(messages.slice(10, 20))).toEqual(counter.countMessages(messages.slice(10, 20)));
    expect(estimator.work.slices - before).toBe(1050 + 10);
    expect(ahead.countMessages(["a text", said(0)])).toEqual(counter.countMessages(["a text", said(0)]));
  });
});

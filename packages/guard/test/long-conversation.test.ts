import { join } from "node:path";
import process from "node:process";
import { createTokenEstimator, lastActual } from "@throughline/tokens";
import type { Actual } from "@throughline/tokens/internal";
import { describe, expect, it } from "vitest";
import { compactInFlight } from "../src/compact-in-flight.ts";
import { guardCall } from "@throughline/guard";
import { anthropicModel, toolTurn } from "./models.ts";
import { recordedMessages } from "./recorded-messages.ts";
import { gaugeError, replayConversation } from "./replay-conversation.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];

/** Tool results of every size, some larger than the smallest window. */
function madeUpConversation(): readonly object[] {
  const sizes = [200, 1500, 40_000, 300, 6000, 800, 90_000, 100];
  return Array.from({ length: 40 }, (_, number) =>
    toolTurn("anthropic", number, `row ${number}, value\n`.repeat((sizes[number % sizes.length] ?? 0) / 12)),
  ).flat();
}

describe("a long conversation", () => {
  it.each([8000, 16_000, 32_000, 64_000])(
    "never exceeds a window of %d tokens, and never loops",
    { tags: ["slow"], timeout: 60_000 },
    async (windowTokens) => {
      const found = await replayConversation(madeUpConversation(), windowTokens, 1);
      expect(found).toMatchObject({ refused: 0, mostCalls: 1, raised: 0 });
      expect(found.mostCompactions).toBeLessThanOrEqual(1);
      expect(found.calls).toBeGreaterThan(70);
      expect(gaugeError(found.points).inBand).toBeGreaterThanOrEqual(90);
    },
  );

  it.skipIf(corpus === undefined).each([8000, 16_000, 32_000, 64_000, 200_000])(
    "that was recorded fits a window of %d tokens too",
    async (windowTokens) => {
      const messages = recordedMessages(join(corpus ?? "", "pi", "large-session.jsonl"));
      const found = await replayConversation(messages, windowTokens, 3);
      expect(found).toMatchObject({ refused: 0, raised: 0 });
      expect(found.mostCalls).toBeLessThanOrEqual(1);
      expect(found.calls).toBeGreaterThan(50);
      // The simulator counts bytes, the gauge tokens: what it is off by is learned, not known.
      expect(gaugeError(found.points).mean).toBeLessThan(12);
      expect(gaugeError(found.points.slice(-20)).mean).toBeLessThan(8);
      expect(gaugeError(found.points).inBand).toBeGreaterThanOrEqual(90);
    },
    120_000,
  );

  it("costs the same a turn after 10 messages and after 10,000", async () => {
    const work = async (count: number): Promise<object> => {
      const estimator = createTokenEstimator();
      const model = { provider: "anthropic", modelId: anthropicModel };
      const counter = await estimator.counterFor(model);
      const turns = Array.from({ length: count / 4 }, (_, number) => toolTurn("anthropic", number, "found it")).flat();
      const usage = { input_tokens: count * 20, output_tokens: 10 };
      const reply = { role: "assistant", content: "Done.", model: anthropicModel, stopReason: "stop", usage };
      const messages = [...turns.slice(0, -1), reply, { role: "user", content: "And now this one?" }];
      const actual: Actual | null = lastActual(messages, model);
      const before = { ...estimator.work };
      let calls = 0;
      await guardCall({
        model,
        counter,
        actual,
        windowTokens: 1_000_000,
        request: { messages },
        compact: compactInFlight({ summarize: async () => "none" }),
        call: async () => {
          calls += 1;
          return { content: [{ type: "text", text: "Yes." }], stop_reason: "end_turn" };
        },
      });
      const { slices, characters } = estimator.work;
      return { calls, slices: slices - before.slices, characters: characters - before.characters };
    };
    const small = await work(12);
    expect(small).toMatchObject({ calls: 1 });
    expect(await work(10_000)).toEqual(small);
  });
});

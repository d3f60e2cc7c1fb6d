import { describe, expect, it } from "vitest";
import { guardCall } from "@throughline/guard";
import { createTokenEstimator } from "@throughline/tokens";
import type { ModelName } from "@throughline/tokens/internal";
import { stages } from "./guard-fixture.ts";
import type { GuardedRequest, GuardEvent } from "../src/guard-options.ts";

/** The profiles of real models, with a vocabulary that is quick enough for a million tokens. */
const estimator = createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length / 4 });

const models: readonly ModelName[] = [
  { provider: "ollama", modelId: "qwen2.5:7b" },
  { provider: "anthropic", modelId: "claude-sonnet-4-5" },
  { provider: "openai", modelId: "gpt-4o" },
];
const windows = [2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 200_000, 1_000_000];
const leastOutput = 1024;
const wantedOutput = 8192;

/** Eight messages without tool results whose estimate is close to a share of the window. */
async function conversation(model: ModelName, tokens: number) {
  const counter = await estimator.counterFor(model);
  const perCharacter = counter.profile.factor / 4;
  const characters = Math.max(1, Math.round((tokens - 9 * 15) / 8 / perCharacter));
  const messages = Array.from({ length: 8 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: "a word, ".repeat(Math.ceil(characters / 8)).slice(0, characters),
  }));
  return { counter, messages: [...messages, { role: "user", content: "And now?" }] };
}

interface Walked {
  readonly taken: readonly string[];
  readonly sent: GuardedRequest;
  readonly tokens: number;
  readonly isWhole: boolean;
}

async function guarded(model: ModelName, windowTokens: number, tokens: number): Promise<Walked> {
  const { counter, messages } = await conversation(model, tokens);
  const events: GuardEvent[] = [];
  const { estimate } = await guardCall({ model, counter, request: { messages }, call: async () => ({}) });
  const outcome = await guardCall({
    model,
    counter,
    windowTokens,
    request: { messages },
    compact: async ({ messages: all }) => ({ messages: [{ role: "user", content: "Summary." }, ...all.slice(-2)] }),
    onEvent: (event) => void events.push(event),
    call: async () => ({ content: [{ type: "text", text: "Fine." }], stop_reason: "end_turn" }),
  });
  const isWhole = outcome.request.messages.length === messages.length;
  return { taken: stages(events), sent: outcome.request, tokens: estimate.tokens, isWhole };
}

describe.each(models)("the stages of $provider/$modelId", (model) => {
  it.each(windows)("of a window of %i come in their order, and none while the one before suffices", async (window) => {
    for (let percent = 5; percent <= 110; percent += 5) {
      const { taken, sent, tokens, isWhole } = await guarded(model, window, (window * percent) / 100);
      const at = `${percent} % of ${window}`;
      if (tokens + wantedOutput <= window) expect(taken, at).toEqual([]);
      else if (tokens + leastOutput <= window) expect(taken, at).toEqual(["output-budget"]);
      else expect(taken[0], at).toBe("compact");
      expect(isWhole, at).toBe(tokens + leastOutput <= window);
      const budget = sent.maxOutputTokens ?? 0;
      expect(budget, at).toBeGreaterThanOrEqual(Math.min(leastOutput, window / 2));
      if (isWhole) expect(tokens + budget, at).toBeLessThanOrEqual(window);
    }
  });
});

describe("the answer's budget", () => {
  it("is the one that was asked for once messages are left out", async () => {
    const [model] = models as [ModelName];
    const { counter, messages } = await conversation(model, 31_000);
    const sent: GuardedRequest[] = [];
    await guardCall({
      model,
      counter,
      windowTokens: 32_768,
      request: { messages },
      compact: async ({ messages: all }) => ({ messages: all.slice(-1) }),
      call: async (request) => {
        sent.push(request);
        if (sent.length === 1) throw new Error("prompt is too long: 40000 tokens > 32768 maximum");
        return { content: [{ type: "text", text: "Fine." }], stop_reason: "end_turn" };
      },
    });
    expect(sent.map(({ maxOutputTokens, messages: all }) => [maxOutputTokens, all.length])).toEqual([
      [expect.toSatisfy((budget: number) => budget >= leastOutput && budget < 1768), 9],
      [wantedOutput, 1],
    ]);
  });
});

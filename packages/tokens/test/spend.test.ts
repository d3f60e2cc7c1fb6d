import { describe, expect, it } from "vitest";
import { nothingSpent } from "@throughline/core/internal";
import { addSpend, costOf } from "../src/spend.ts";
import { catalogNames, pricesAsOf } from "../src/price-table.ts";
import { occupancyAfter } from "../src/occupancy.ts";
import { readUsage } from "@throughline/core/internal";
import type { CallUsage } from "@throughline/core/internal";
import type { ModelPrices } from "../src/price-table.ts";

const opus = { provider: "anthropic", modelId: "claude-opus-4-5-20251101" };

function usage(
  fields: Partial<Record<"input" | "output" | "cacheRead" | "cacheWrite" | "cacheWrite1h", number>>,
): CallUsage {
  const read = readUsage({ input: 1, output: 0, cacheRead: 0, cacheWrite: 0, ...fields });
  if (read === null) throw new Error("a call has a prompt");
  return read;
}

describe("costOf", () => {
  it("prices each class on its own, the one-hour cache too", () => {
    const cost = costOf(
      usage({ input: 1_000_000, output: 100_000, cacheRead: 2_000_000, cacheWrite: 300_000, cacheWrite1h: 100_000 }),
      opus,
    );
    expect(cost?.inputUsd).toBeCloseTo(5);
    expect(cost?.outputUsd).toBeCloseTo(2.5);
    expect(cost?.cacheReadUsd).toBeCloseTo(1);
    expect(cost?.cacheWriteUsd).toBeCloseTo(0.2 * 6.25 + 0.1 * 10);
    expect(cost?.totalUsd).toBeCloseTo(5 + 2.5 + 1 + 2.25);
  });

  it("takes the price of the prompt's length, cached or not", () => {
    const gemini = { provider: "google", modelId: "gemini-2.5-pro" };
    expect(costOf(usage({ input: 150_000, cacheRead: 50_000 }), gemini)?.inputUsd).toBeCloseTo(0.1875);
    expect(costOf(usage({ input: 150_000, cacheRead: 50_001 }), gemini)?.inputUsd).toBeCloseTo(0.375);
  });

  it("knows nothing of a model that is not listed, nor of a later version of one", () => {
    for (const modelId of ["no-such-model", "claude-opus-4-5-1", "gpt-5o", "claude-sonnet-5-9"])
      expect(costOf(usage({}), { provider: null, modelId }), modelId).toBeNull();
  });

  it("takes the price of the input for a class without one", () => {
    expect(costOf(usage({ cacheRead: 1_000_000 }), { provider: "openai", modelId: "gpt-5-pro" })?.cacheReadUsd).toBe(
      15,
    );
  });

  it("takes the caller's price before its own, under any spelling of the model", () => {
    const prices: ModelPrices = {
      "anthropic/claude-opus-4.5": { input: 1, output: 1 },
      "local*": { input: 0, output: 0 },
    };
    expect(costOf(usage({ input: 1_000_000 }), opus, prices)?.totalUsd).toBeCloseTo(1);
    expect(costOf(usage({ input: 1_000_000 }), { provider: null, modelId: "local-qwen" }, prices)?.totalUsd).toBe(0);
  });

  it.each([
    ["claude-3-opus-20240229", 15],
    ["claude-haiku-4.5", 1],
    ["us.anthropic.claude-opus-4-5-20251101-v1:0", 5],
    ["gpt-5.2-codex", 1.75],
    ["gpt-5.1-codex-max", 1.25],
    ["gpt-4o-2024-05-13", 5],
    ["gpt-4o-2024-08-06", 2.5],
    ["gemini-3-flash-preview", 0.5],
    ["gemini-2.5-flash-preview-09-2025", 0.3],
  ])("prices the input of %s", (modelId, inputUsd) => {
    expect(costOf(usage({ input: 100_000 }), { provider: null, modelId })?.inputUsd).toBeCloseTo(inputUsd / 10);
  });

  it("gives the prices that the catalog calculates for each name and length", async () => {
    const { calcPrice } = await import("@pydantic/genai-prices");
    const differing = catalogNames().flatMap((modelId) =>
      [1000, 128_001, 250_000, 300_000].flatMap((prompt) => {
        const counts = usage({ input: prompt - 700, output: 500, cacheRead: 400, cacheWrite: 300, cacheWrite1h: 100 });
        const ours = costOf(counts, { provider: null, modelId })?.totalUsd;
        const theirs = calcPrice(
          {
            input_tokens: prompt,
            output_tokens: 500,
            cache_read_tokens: 400,
            cache_write_tokens: 300,
            cache_write_1h_tokens: 100,
          },
          modelId,
          {
            // DeepSeek has other prices in certain hours. The catalog has two companies that sell GLM.
            timestamp: new Date(`${pricesAsOf}T20:00:00Z`),
            ...(modelId.startsWith("glm-5.") ? { providerId: "zai" } : {}),
          },
        )?.total_price;
        return theirs !== undefined && Math.abs(theirs - (ours ?? 0)) > 1e-9 ? [{ modelId, prompt, ours, theirs }] : [];
      }),
    );
    expect(differing).toEqual([]);
  });
});

describe("spend", () => {
  it("adds up call by call, apart from what the window holds [TOK-09, C34]", () => {
    const calls = [
      usage({ input: 100, output: 50, cacheWrite: 1000, cacheWrite1h: 400 }),
      usage({ input: 10, output: 60, cacheRead: 1100 }),
    ];
    const spend = calls.reduce((sum, call) => addSpend(sum, call, costOf(call, opus)), nothingSpent);
    expect(spend).toMatchObject({
      calls: 2,
      input: 110,
      output: 110,
      cacheRead: 1100,
      cacheWrite: 1000,
      cacheWrite1h: 400,
    });
    expect(spend.costUsd).toBeCloseTo((110 * 5 + 110 * 25 + 1100 * 0.5 + 600 * 6.25 + 400 * 10) / 1e6);
    const occupancy = calls.reduce(
      (held: ReturnType<typeof occupancyAfter>, call) =>
        occupancyAfter({ usage: call, model: opus, stopReason: null }, held),
      null,
    );
    expect(occupancy?.tokens).toBe(1170);
  });

  it("has no cost once one call had none", () => {
    const spend = addSpend(addSpend(nothingSpent, usage({}), null), usage({}), costOf(usage({}), opus));
    expect(spend).toMatchObject({ calls: 2, costUsd: null });
  });
});

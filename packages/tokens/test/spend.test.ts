import { describe, expect, it } from "vitest";
import { addSpend, costOf, nothingSpent } from "../src/spend.ts";
import { defaultPrices } from "../src/price-table.ts";
import { occupancyAfter } from "../src/occupancy.ts";
import { readUsage } from "@throughline/core/internal";
import type { CallUsage } from "@throughline/core/internal";
import type { PriceTable } from "../src/price-table.ts";

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
    const haiku = { provider: "anthropic", modelId: "claude-haiku-5-5" };
    expect(costOf(usage({ input: 50_000, cacheRead: 50_000 }), haiku)?.inputUsd).toBeCloseTo(0.005);
    expect(costOf(usage({ input: 50_000, cacheRead: 50_001 }), haiku)?.inputUsd).toBeCloseTo(0.025);
  });

  it("knows nothing of a model that is not listed, and of a class without a price", () => {
    expect(costOf(usage({}), { provider: null, modelId: "no-such-model" })).toBeNull();
    expect(costOf(usage({ cacheRead: 5 }), { provider: "openai", modelId: "gpt-5-pro" })).toBeNull();
    expect(costOf(usage({}), { provider: "openai", modelId: "gpt-5-pro" })).not.toBeNull();
  });

  it("takes the caller's price before its own, under any spelling of the model", () => {
    const price = { input: 1, output: 1, cacheRead: null, cacheWrite: null, cacheWrite1h: null };
    const prices: PriceTable = {
      ...defaultPrices,
      models: { ...defaultPrices.models, "anthropic/claude-opus-4.5": price },
    };
    expect(costOf(usage({ input: 1_000_000 }), opus, prices)?.totalUsd).toBeCloseTo(1);
  });

  it("is dated and names its source", () => {
    expect(defaultPrices.asOf).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    expect(defaultPrices.source).toContain("platform.claude.com");
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

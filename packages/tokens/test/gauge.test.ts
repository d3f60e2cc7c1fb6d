import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contextLine, gaugeOf } from "@throughline/tokens";
import { contextReport } from "../src/gauge-text.ts";
import type { Gauge } from "@throughline/tokens";

function gauge(tokens: number, windowTokens: number | null, compactionTokens?: number | null): Gauge {
  const estimate = { tokens, lowTokens: tokens, highTokens: tokens, source: "actual" } as const;
  return gaugeOf(estimate, { windowTokens, ...(compactionTokens === undefined ? {} : { compactionTokens }) });
}

const bar = (filled: number): string => `[${"#".repeat(filled)}${"-".repeat(30 - filled)}]`;

describe("gaugeOf", () => {
  it("gives percent unclamped for decisions and clamped for display [C34]", () => {
    expect(gauge(456_000, 200_000)).toMatchObject({ percent: 228, displayPercent: 100 });
    expect(gauge(50_000, 200_000)).toMatchObject({ percent: 25, displayPercent: 25 });
  });

  it("keeps source and band of the estimate", () => {
    const estimate = { tokens: 100, lowTokens: 90, highTokens: 120, source: "actual+delta" } as const;
    expect(gaugeOf(estimate, { windowTokens: 1000 })).toMatchObject(estimate);
  });

  it.each([0, null, -1])("has no percentages for the unknown window %j [TOK-07, C55]", (windowTokens) => {
    expect(gauge(5000, windowTokens, 4000)).toMatchObject({
      windowTokens: null,
      percent: null,
      displayPercent: null,
      tokensToCompaction: null,
    });
  });

  it("tells the tokens left until compaction", () => {
    expect(gauge(150_000, 200_000, 170_000).tokensToCompaction).toBe(20_000);
    expect(gauge(180_000, 200_000, 170_000).tokensToCompaction).toBe(0);
    expect(gauge(180_000, 200_000).tokensToCompaction).toBeNull();
  });
});

describe("contextLine", () => {
  it.each([
    [156_000, 200_000, "[Context: 156k/200k tokens (78%)]"],
    [156_999, 200_000, "[Context: 156k/200k tokens (78%)]"],
    [157_999, 200_000, "[Context: 157k/200k tokens (78%)]"],
    [0, 200_000, "[Context: 0k/200k tokens (0%)]"],
    [114_000, 200_000, "[Context: 114k/200k tokens (57%)]"],
    [456_000, 200_000, "[Context: 456k/200k tokens (100%)]"],
  ])("of %i in %i is %s", (tokens, windowTokens, line) => {
    expect(contextLine(gauge(tokens, windowTokens))).toBe(line);
  });

  it("says nothing in percent of an unknown window [C55]", () => {
    expect(contextLine(gauge(156_000, 0))).toBe("[Context: 156k tokens]");
  });

  it("is left out when it is switched off, and there by default", () => {
    expect(contextLine(gauge(1, 2), { showInSystemPrompt: false })).toBeNull();
    expect(contextLine(gauge(1, 2), {})).not.toBeNull();
  });
});

describe("contextReport", () => {
  it("prints sizes, bar and percent [TOK-06, C52]", () => {
    expect(contextReport(gauge(1234, 180_000))).toEqual(["Context usage: ~1,234 / 180,000 tokens", `${bar(0)} 0.7%`]);
    expect(contextReport(gauge(90_000, 180_000))).toEqual([
      "Context usage: ~90,000 / 180,000 tokens",
      `${bar(15)} 50.0%`,
    ]);
    expect(contextReport(gauge(1_234_567, 180_000))).toEqual([
      "Context usage: ~1,234,567 / 180,000 tokens",
      `${bar(30)} 100.0%`,
    ]);
  });

  it("says that the window is unknown [C55]", () => {
    expect(contextReport(gauge(1234, 0))).toEqual(["Context usage: ~1,234 tokens (window unknown)"]);
  });

  it("has always 30 cells, filled by the percent rounded down [C52]", () => {
    fc.assert(
      fc.property(fc.nat(3_000_000), fc.integer({ min: 1, max: 2_000_000 }), (tokens, windowTokens) => {
        const [, line = ""] = contextReport(gauge(tokens, windowTokens));
        const cells = line.slice(1, line.indexOf("]"));
        expect(cells).toHaveLength(30);
        expect(cells.replaceAll("-", "").length).toBe(
          Math.min(30, Math.floor((30 * Math.min(100, (tokens * 100) / windowTokens)) / 100)),
        );
      }),
    );
  });
});

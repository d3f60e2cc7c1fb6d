import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkFlushSettings, type FlushThreshold } from "../../src/memory-flush/flush-settings.ts";
import { reachableThresholds } from "../../src/memory-flush/reachable-thresholds.ts";

const percents = (windowTokens: number, compactAtTokens: number, thresholds?: readonly FlushThreshold[]): number[] =>
  reachableThresholds(thresholds === undefined ? {} : { thresholds }, { windowTokens, compactAtTokens }).thresholds.map(
    ({ percent }) => percent,
  );

describe("the thresholds of a flush", () => {
  it("are 50, 75 and 90 %, moved below the compaction point with a word [FLU-01, C24]", () => {
    expect(percents(200_000, 196_000)).toEqual([50, 75, 90]);
    const { thresholds, repairs } = reachableThresholds({}, { windowTokens: 200_000, compactAtTokens: 170_000 });
    expect(thresholds.map(({ percent }) => percent)).toEqual([50, 75, 83]);
    expect(repairs).toEqual([{ askedPercent: 90, usedPercent: 83, reason: "not below the compaction point" }]);
  });

  it("fit small windows, where they keep their order and their distance, or are dropped [C24, C27]", () => {
    expect(percents(8192, 6144)).toEqual([50, 68, 70]);
    expect(percents(32_000, 24_000)).toEqual([50, 68, 70]);
    const { thresholds, repairs } = reachableThresholds({}, { windowTokens: 8000, compactAtTokens: 720 });
    expect(thresholds.map(({ percent }) => percent)).toEqual([2, 4]);
    expect(repairs.at(-1)).toEqual({ askedPercent: 50, usedPercent: null, reason: "no room below the ones above it" });
  });

  it("are none without a window, or when they are off", () => {
    for (const windowTokens of [null, 0]) {
      expect(reachableThresholds({}, { windowTokens, compactAtTokens: null })).toEqual({ thresholds: [], repairs: [] });
    }
    const off = reachableThresholds({ enabled: false }, { windowTokens: 200_000, compactAtTokens: 170_000 });
    expect(off.thresholds).toEqual([]);
  });

  it("can always fire before a compaction: by construction, for any settings [FLU-19, C24]", () => {
    const settings = fc.uniqueArray(fc.integer({ min: 1, max: 99 }), { minLength: 1, maxLength: 8 });
    const sizes = fc.tuple(fc.integer({ min: 1000, max: 2_000_000 }), fc.double({ min: 0.1, max: 1, noNaN: true }));
    fc.assert(
      fc.property(settings, sizes, (asked, [windowTokens, share]) => {
        const compactAtTokens = Math.floor(windowTokens * share);
        const thresholds = asked.map((percent) => ({ percent, prompt: "store" }));
        const made = reachableThresholds({ thresholds }, { windowTokens, compactAtTokens });
        const dropped = made.repairs.filter(({ usedPercent }) => usedPercent === null).length;
        expect(made.thresholds.length + dropped).toBe(asked.length);
        const margin = Math.min(4000, windowTokens * 0.05);
        for (const [index, { percent, askedPercent }] of made.thresholds.entries()) {
          expect((percent * windowTokens) / 100).toBeLessThanOrEqual(compactAtTokens - margin + 1e-6);
          expect(percent).toBeLessThanOrEqual(askedPercent);
          const next = made.thresholds[index + 1];
          if (next === undefined) continue;
          expect(next.askedPercent).toBeGreaterThan(askedPercent);
          if (percent < askedPercent) expect(next.percent - percent).toBeGreaterThanOrEqual(2 - 1e-9);
        }
        const moved = made.thresholds.filter(({ percent, askedPercent }) => percent !== askedPercent);
        expect(made.repairs.filter(({ usedPercent }) => usedPercent !== null)).toHaveLength(moved.length);
      }),
    );
  });

  it("are refused by name when they make no sense", () => {
    const thresholds = [
      { percent: 120, prompt: "x" },
      { percent: 50, prompt: " " },
      { percent: 50, prompt: "x", injectAs: "loud" as "user" },
    ];
    expect(checkFlushSettings({ thresholds, timeZone: "Mars/Olympus" }).map(({ key }) => key)).toEqual([
      "memoryFlush.thresholds.0.percent",
      "memoryFlush.thresholds.1.prompt",
      "memoryFlush.thresholds.2.percent",
      "memoryFlush.thresholds.2.injectAs",
      "memoryFlush.timeZone",
    ]);
    expect(checkFlushSettings({ timeZone: "Europe/Berlin" })).toEqual([]);
  });
});

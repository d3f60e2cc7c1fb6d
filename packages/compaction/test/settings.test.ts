import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compactionNeed, settingsForWindow } from "../src/compaction-settings.ts";

describe("when compaction is due", () => {
  it("is at window less reserve, to the token", () => {
    const at = (tokens: number): boolean => compactionNeed({ tokens, windowTokens: 200_000, messages: 9 }).due;
    expect([at(169_999), at(170_000)]).toEqual([false, true]);
    expect(compactionNeed({ tokens: 170_000, windowTokens: 200_000, messages: 9 }).triggerTokens).toBe(170_000);
  });

  it("cannot be switched off: a reserve of nothing is raised, one too large is lowered, and both are said", () => {
    expect(settingsForWindow({ reserveTokens: 0 }, 200_000)).toMatchObject({
      triggerTokens: 180_000,
      repairs: [{ key: "reserveTokens", given: 0, used: 20_000 }],
    });
    expect(settingsForWindow({ reserveTokens: 30_000 }, 32_000)).toMatchObject({
      triggerTokens: 24_000,
      repairs: [{ key: "reserveTokens", given: 30_000, used: 8000 }],
    });
    expect(settingsForWindow({ reserveTokens: 4000, reserveFloorTokens: 0 }, 200_000).triggerTokens).toBe(196_000);
    expect(settingsForWindow({}, 200_000).repairs).toEqual([]);
  });

  it("is at a number of messages where the window is not known, and never by a stale size", () => {
    const unknown = (messages: number): boolean => compactionNeed({ tokens: 1e9, windowTokens: 0, messages }).due;
    expect([unknown(499), unknown(500)]).toEqual([false, true]);
    expect(compactionNeed({ tokens: null, windowTokens: 8000, messages: 5000 })).toMatchObject({ due: false });
  });

  it("leaves room in every window for what stays, a summary and its details", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1000, max: 2_000_000 }),
        fc.integer({ min: 0, max: 300_000 }),
        (window, reserveTokens) => {
          const settings = settingsForWindow({ reserveTokens }, window);
          const after = settings.mostKeptTokens + settings.maxSummaryTokens + settings.maxDetailTokens;
          expect(after).toBeLessThanOrEqual((settings.triggerTokens ?? 0) * 0.55);
          expect(settings.keepTokens).toBeLessThanOrEqual(settings.mostKeptTokens);
        },
      ),
    );
  });
});

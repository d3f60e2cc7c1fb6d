import { join } from "node:path";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, describe, expect, it } from "vitest";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import type { PassageScorer } from "../../packages/tools/src/search/passage-scorer.ts";
import { fillStore, measureSet, pairedDifference } from "../search-marks.ts";
import { readSet } from "../search-marks/question-set.ts";

const folder = mkdtempSync(join(tmpdir(), "search-marks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("search marks", () => {
  it(
    "finds the places of nine of ten questions among the first five, and a bad scorer costs at most a point",
    {
      tags: ["slow"],
      timeout: 120_000,
    },
    async () => {
      const set = readSet("own", folder);
      await using store = createSqliteStore({ path: join(folder, "store.db"), searchFill: "on-demand" });
      const places = await fillStore(store, set, false);
      const atFive = async (scorer?: PassageScorer): Promise<number> => {
        const outcomes = await Array.fromAsync(measureSet(store, set, places, false, scorer));
        return (100 * outcomes.filter(({ place }) => place > 0 && place <= 5).length) / outcomes.length;
      };
      expect(set.questions.length).toBeGreaterThanOrEqual(100);
      const byWords = await atFive();
      expect(byWords).toBeGreaterThanOrEqual(90);
      const bad: PassageScorer = {
        // The checksum of a text says nothing about its meaning.
        score: async (_, texts) =>
          texts.map((text) => [...text].reduce((sum, each) => (sum * 31 + (each.codePointAt(0) ?? 0)) % 997, 7)),
      };
      expect(await atFive(bad)).toBeGreaterThanOrEqual(byWords - 1);
    },
  );

  it("gives the interval of a paired difference", () => {
    const [average, low, high] = pairedDifference([0, 0, 1, 1], [1, 0, 1, 1]);
    expect(average).toBe(25);
    expect(low).toBeCloseTo(25 - 49, 5);
    expect(high).toBeCloseTo(25 + 49, 5);
  });
});

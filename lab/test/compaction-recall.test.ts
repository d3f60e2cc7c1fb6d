import process from "node:process";
import { describe, expect, it } from "vitest";
import { measureRecall, othersOf, type Tally } from "../compaction-recall.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];
const share = ({ needed, covered }: Tally): number => covered / needed;

describe.skipIf(corpus === undefined)("what is needed later", () => {
  it.each([7, 11])(
    "is in front of the assistant after a compaction: nine of ten paths, seven of ten of the rest (seed %i)",
    async (seed) => {
      const { rows, points, mostDetailTokens } = await measureRecall(corpus ?? "", seed);
      expect(points).toHaveLength(22);
      expect(mostDetailTokens).toBeLessThanOrEqual(350);
      expect(share(rows.details.paths)).toBeGreaterThanOrEqual(0.9);
      expect(share(othersOf(rows.details))).toBeGreaterThanOrEqual(0.7);
      expect(share(rows.named.paths)).toBeGreaterThanOrEqual(0.9);
      // Without the details it would not be.
      expect(share(rows.summary.paths)).toBeLessThan(0.8);
      expect(share(rows.stub.paths)).toBeLessThan(share(rows.summary.paths) + 0.01);
    },
    180_000,
  );
});

import { join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import { bandCoverage, bareCountWith, conversations, estimateWith, measureAccuracy, readSteps } from "./accuracy.ts";

const folder = process.env["THROUGHLINE_CORPUS"];
const estimator = createTokenEstimator();

describe.skipIf(folder === undefined)("estimates of a corpus of real usage", () => {
  it.each([
    ["Opus", 135, 3],
    ["Sonnet", 61, 6],
  ])(
    "%s: %i steps of 300 tokens and more, each predicted before it is seen, off by at most %d %% [C33]",
    async (wanted, count, most) => {
      const { file, model } = conversations.find(({ name }) => name === wanted) ?? {};
      if (file === undefined || model === undefined) throw new Error(`no conversation ${wanted}`);
      const steps = readSteps(join(folder ?? "", file), model);
      const counter = await estimator.counterFor(model);
      const { comparable, comparableSteps } = measureAccuracy(steps, estimateWith(counter, true));
      expect(comparableSteps).toBe(count);
      expect(comparable).toBeLessThanOrEqual(most);
      // What there is to be better than: a vocabulary without its factor, and four characters a token.
      expect(measureAccuracy(steps, bareCountWith(counter)).comparable).toBeGreaterThan(comparable);
      const byLength = await estimator.counterFor(model, { method: "chars4" });
      expect(measureAccuracy(steps, bareCountWith(byLength)).comparable).toBeGreaterThan(25);
    },
  );

  it("publishes bands that hold nine of ten steps of the corpus", async () => {
    for (const { file, model } of conversations) {
      const counter = await estimator.counterFor(model);
      const steps = readSteps(join(folder ?? "", file), model);
      expect(bandCoverage(steps, counter)).toBeGreaterThan(90);
      expect(bandCoverage(steps, counter, 1)).toBeGreaterThan(90);
    }
  });

  it.each(["claude", "o200k_base", "cl100k_base", "heuristic"] as const)(
    "calibration of %s never worsens by more than half a point",
    async (method) => {
      for (const { file, model } of conversations) {
        const steps = readSteps(join(folder ?? "", file), model);
        const counter = await estimator.counterFor(model, { method });
        const calibrated = measureAccuracy(steps, estimateWith(counter, true));
        const uncalibrated = measureAccuracy(steps, estimateWith(counter, false));
        expect(calibrated.comparable).toBeLessThanOrEqual(uncalibrated.comparable + 0.5);
        expect(calibrated.all).toBeLessThanOrEqual(uncalibrated.all + 0.5);
      }
    },
  );
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  beginCycle,
  crossThresholds,
  freshThresholds,
  readThresholds,
  rearmThreshold,
  thresholdSteps,
} from "../src/threshold-crossings.ts";
import type { ThresholdState } from "../src/threshold-crossings.ts";

/** The rows of the step table of SPEC.md: phase, then event by event. */
function specifiedSteps(): Record<string, Record<string, { to: string; fires: boolean }>> {
  const text = readFileSync(join(import.meta.dirname, "..", "SPEC.md"), "utf8");
  const rows = (text.split("## Steps")[1] ?? "")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll("`", "")),
    );
  const [[, ...events] = [], , ...steps] = rows;
  return Object.fromEntries(
    steps.map(([phase = "", ...cells]) => [
      phase,
      Object.fromEntries(
        cells.map((cell, index) => [events[index], { to: cell.replace("!", ""), fires: cell.endsWith("!") }]),
      ),
    ]),
  );
}

function run(percents: readonly (number | null)[], thresholds: readonly number[] = [25, 50, 75]): (number | null)[] {
  let state: ThresholdState = freshThresholds;
  return percents.map((percent) => {
    const crossing = crossThresholds(state, percent, thresholds);
    // What survives a restart is what JSON keeps.
    state = readThresholds(JSON.parse(JSON.stringify(crossing.state))) ?? freshThresholds;
    return crossing.firedPercent;
  });
}

describe("threshold crossings", () => {
  it("steps as SPEC.md says, in every phase under every event", () => {
    expect(specifiedSteps()).toEqual(thresholdSteps);
  });

  it("fires each threshold once, also when the size falls and rises and the process restarts between", () => {
    expect(run([10, 25, 30, 24, 26, 50, 80, 20, 90])).toEqual([null, 25, null, null, null, 50, 75, null, null]);
  });

  it("gives the highest of several crossed at once, and marks the lower ones", () => {
    const crossing = crossThresholds(freshThresholds, 60, [75, 25, 50]);
    expect(crossing).toMatchObject({ firedPercent: 50, passedPercents: [25] });
    expect(crossing.state.phases).toEqual({ 25: "passed", 50: "fired", 75: "armed" });
    expect(crossThresholds(crossing.state, 60, [25, 50, 75])).toMatchObject({ firedPercent: null, passedPercents: [] });
  });

  it("begins anew after a compaction", () => {
    const { state } = crossThresholds(freshThresholds, 80, [25, 50, 75]);
    expect(crossThresholds(beginCycle(state), 30, [25, 50, 75]).firedPercent).toBe(25);
  });

  it("fires again what could not be done", () => {
    const { state } = crossThresholds(freshThresholds, 80, [75]);
    expect(crossThresholds(rearmThreshold(state, 75), 80, [75]).firedPercent).toBe(75);
  });

  it("decides nothing without a measurement [TOK-10, C55]", () => {
    const { state } = crossThresholds(freshThresholds, 30, [25, 50]);
    expect(crossThresholds(state, null, [25, 50])).toEqual({ state, firedPercent: null, passedPercents: [] });
  });

  it("crosses at exactly the threshold and over 100 percent", () => {
    expect(run([50, 228], [50, 100])).toEqual([50, 100]);
  });

  it("arms thresholds that are new and forgets those that are gone", () => {
    const { state } = crossThresholds(freshThresholds, 60, [50]);
    const next = crossThresholds(state, 60, [55, 90]);
    expect(next.firedPercent).toBe(55);
    expect(Object.keys(next.state.phases)).toEqual(["55", "90"]);
  });

  it("refuses a state it did not write", () => {
    for (const value of [null, {}, { v: 2, phases: {} }, { v: 1, phases: { 50: "toString" } }, { v: 1, phases: [1] }]) {
      expect(readThresholds(value)).toBeNull();
    }
  });

  it("never fires a threshold twice in a cycle, whatever is measured", () => {
    const percent = fc.option(fc.double({ min: 0, max: 300, noNaN: true }), { nil: null });
    fc.assert(
      fc.property(
        fc.array(percent, { maxLength: 40 }),
        fc.uniqueArray(fc.integer({ min: 1, max: 99 }), { maxLength: 6 }),
        (percents, thresholds) => {
          const fired = run(percents, thresholds).filter((value) => value !== null);
          expect(new Set(fired).size).toBe(fired.length);
          expect(fired).toEqual(fired.toSorted((a, b) => a - b));
          const highest = Math.max(0, ...percents.map((value) => value ?? 0));
          expect(fired.at(-1)).toBe(
            thresholds.filter((threshold) => threshold <= highest).toSorted((a, b) => b - a)[0],
          );
        },
      ),
    );
  });
});

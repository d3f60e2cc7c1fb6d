import { describe, expect, it } from "vitest";
import { computeScale, simulateScale, type ScalePlan } from "../scale-simulation.ts";

const plan: ScalePlan = {
  turnsPerMinute: 1_000_000,
  sessions: 100_000_000,
  shards: 64,
  turnsPerSecond: 1300,
  appendsPerTurn: 3,
};

describe("the arithmetic of scale", () => {
  it.each([
    ["64 primaries", plan],
    ["48 primaries", { ...plan, shards: 48 }],
    ["one primary", { ...plan, turnsPerMinute: 10_000, shards: 1, sessions: 1_000_000 }],
  ])("is what comes out when the load is played: %s", (_name, each) => {
    const [computed, played] = [computeScale(each), simulateScale(each, 400_000, 1)];
    expect(Math.abs(played.utilisation / computed.utilisation - 1)).toBeLessThan(0.12);
    expect(Math.abs(played.meanMs / computed.meanMs - 1)).toBeLessThan(0.12);
  });

  it("says that a load beyond what there is has no end", () => {
    const beyond = { ...plan, shards: 32 };
    expect(computeScale(beyond).meanMs).toBe(Infinity);
    expect(simulateScale(beyond, 400_000, 1).meanMs).toBeGreaterThan(50);
  });
});

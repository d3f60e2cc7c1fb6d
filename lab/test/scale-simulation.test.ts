import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../../tools/find-files.ts";
import {
  capacityRows,
  computeScale,
  measuredCost,
  simulateScale,
  tableLoads,
  type ScalePlan,
} from "../scale-simulation.ts";

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

  it("is what the page says: its table, and the costs it is made of", () => {
    const page = readFileSync(join(repositoryRoot, "docs/scale.md"), "utf8");
    for (const row of capacityRows(tableLoads, measuredCost)) expect(page.split("\n")).toContain(row);
    const { serverMs, logBytes, tableBytes } = measuredCost;
    for (const text of [
      `${serverMs} ms;`,
      `${logBytes.toLocaleString("en")} bytes an append`,
      `${tableBytes.toLocaleString("en")} bytes an append`,
    ])
      expect(page).toContain(text);
  });
});

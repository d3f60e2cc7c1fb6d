import { describe, expect, it } from "vitest";
import { findSlow } from "../check-slow.ts";
import type { TimedTest } from "../closing-line.ts";

function timed(file: string, ms: number, isSlow: boolean = false): TimedTest {
  return { name: `takes ${ms}`, file, ms, isSlow };
}

describe("the check of slow tests", () => {
  const budgets = { controlMs: 100, seconds: { "packages/core": 4, tools: 1 } };

  it("names tests without the tag that take over 2 s, and no others", () => {
    const late = timed("packages/core/test/a.test.ts", 2001);
    const times = [late, timed("packages/core/test/a.test.ts", 1999), timed("tools/test/b.slow.test.ts", 900, true)];
    expect(findSlow(times, budgets, 1).tests).toEqual([late]);
  });

  it("names folders over their budget, of which a slower machine has more, and folders that have none", () => {
    const times = [
      timed("packages/core/test/a.test.ts", 3000, true),
      timed("packages/core/test/b.test.ts", 2000, true),
      timed("tools/test/c.test.ts", 1000),
      timed("packages/new/test/d.test.ts", 1),
    ];
    expect(findSlow(times, budgets, 1).folders).toEqual([
      { folder: "packages/core", seconds: 5, budget: 4 },
      { folder: "packages/new", seconds: 0.001, budget: 0 },
    ]);
    expect(findSlow(times, budgets, 1.5).folders.map(({ folder }) => folder)).toEqual(["packages/new"]);
  });
});

import process from "node:process";
import { describe, expect, it } from "vitest";
import { measureSearch } from "../search-recall.ts";
import type { SearchTally } from "../search-recall/occasions.ts";

const folder = process.env["THROUGHLINE_CORPUS"];

describe.skipIf(folder === undefined)("what memory_search finds in recorded conversations", () => {
  it("finds the place of what is needed, asked with what came next, in four of five cases", async () => {
    const { next, user, command, once, things, newest } = await measureSearch(folder ?? "", 7, false);
    const percent = (...tallies: readonly SearchTally[]): number => {
      const asked = tallies.reduce((sum, tally) => sum + tally.asked, 0);
      return (100 * tallies.reduce((sum, tally) => sum + tally.found, 0)) / asked;
    };
    expect(next.asked).toBeGreaterThan(10);
    expect(user.asked).toBeGreaterThan(100);
    expect(percent(next)).toBeGreaterThanOrEqual(80);
    expect(percent(once)).toBeGreaterThanOrEqual(80);
    expect(percent(user, command)).toBeGreaterThanOrEqual(80);
    expect(percent(things)).toBeGreaterThanOrEqual(75);
    // What came last is not as good.
    expect(percent(user, command) - percent(newest)).toBeGreaterThan(20);
  }, 600_000);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { countTests } from "../closing-line-reporter.ts";
import type { CountedModule } from "../closing-line-reporter.ts";
import { clearCounts, closingLine, closingText, readCounts, skippedLine, writeCounts } from "../closing-line.ts";

function moduleOf(tests: readonly [string, string, string?][], errors: number = 0): CountedModule {
  return {
    moduleId: "/x/a.test.ts",
    errors: () => Array.from({ length: errors }),
    children: {
      allTests: () =>
        tests.map(([fullName, state, note]) => ({
          fullName,
          result: () => ({ state, note }),
          meta: () => (fullName.startsWith("kills") ? { faults: { states: 20, kills: 3 } } : {}),
        })),
    },
  };
}

describe("the closing line", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "throughline-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("counts states, load failures and errors outside tests", () => {
    const counts = countTests(
      [
        moduleOf([
          ["a", "passed"],
          ["b", "failed"],
          ["real corpus > c", "skipped"],
          ["d", "skipped", "no postgres"],
          ["e", "pending"],
        ]),
        moduleOf([], 1),
      ],
      1,
    );
    expect(closingLine(counts)).toBe("tests: 1 passed, 3 failed, 3 skipped");
    expect(skippedLine(counts)).toBe("skipped: 1 need THROUGHLINE_CORPUS, 1 no postgres, 1 other");
  });

  it("adds up the faults of the tests that passed", () => {
    const counts = countTests(
      [
        moduleOf([
          ["kills one", "passed"],
          ["kills two", "passed"],
          ["kills three", "failed"],
        ]),
      ],
      0,
    );
    expect(closingText(counts)).toBe("faults: 40 states, 6 kills\ntests: 2 passed, 1 failed, 0 skipped");
    expect(closingText(countTests([moduleOf([["a", "passed"]])], 0))).toBe("tests: 1 passed, 0 failed, 0 skipped");
  });

  it("keeps the counts between steps and forgets those of an earlier run", () => {
    const path = join(folder, "deep/tests.json");
    expect(readCounts(path)).toBeNull();
    const counts = { passed: 1, failed: 2, skipped: 0, skippedBecause: {}, faults: null };
    writeCounts(counts, path);
    expect(readCounts(path)).toEqual(counts);
    clearCounts(path);
    expect(readCounts(path)).toBeNull();
    expect(skippedLine(counts)).toBeNull();
  });
});

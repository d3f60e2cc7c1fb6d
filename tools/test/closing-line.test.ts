import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { countTests, timeTests } from "../closing-line-reporter.ts";
import type { CountedModule, CountedTest } from "../closing-line-reporter.ts";
import { repositoryRoot } from "../find-files.ts";
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

  it("counts slow tests that the default tier leaves out apart from those that cannot run", () => {
    const tests = [
      { fullName: "a", result: () => ({ state: "skipped" }), meta: () => ({}), tags: ["slow"] },
      { fullName: "b", result: () => ({ state: "skipped" }), meta: () => ({}), tags: [] },
    ];
    const module = { moduleId: "/x/a.test.ts", errors: () => [], children: { allTests: () => tests } };
    expect(closingText(countTests([module], 0, true))).toBe(
      [
        "skipped: 1 other",
        "left: 1 slow tests and the files of slow tests, which npm test -- --all runs",
        "tests: 0 passed, 0 failed, 1 skipped",
      ].join("\n"),
    );
    expect(closingLine(countTests([module], 0))).toBe("tests: 0 passed, 0 failed, 2 skipped");
  });

  it("times what ran, and knows slow tests by their tag or their file", () => {
    const test = (ms: number | null, tags: readonly string[]): CountedTest => ({
      fullName: `takes ${ms}`,
      result: () => ({ state: ms === null ? "skipped" : "passed" }),
      meta: () => ({}),
      tags,
      diagnostic: () => (ms === null ? undefined : { duration: ms }),
    });
    const of = (file: string, tests: readonly CountedTest[]): CountedModule => ({
      moduleId: join(repositoryRoot, file),
      errors: () => [],
      children: { allTests: () => tests },
    });
    const times = timeTests([
      of("packages/a/test/a.test.ts", [test(600, []), test(700, ["slow"]), test(null, ["slow"])]),
      of("packages/a/test/b.slow.test.ts", [test(800, [])]),
    ]);
    expect(times).toEqual([
      { name: "takes 600", file: "packages/a/test/a.test.ts", ms: 600, isSlow: false },
      { name: "takes 700", file: "packages/a/test/a.test.ts", ms: 700, isSlow: true },
      { name: "takes 800", file: "packages/a/test/b.slow.test.ts", ms: 800, isSlow: true },
    ]);
    const counts = { ...countTests([moduleOf([["a", "passed"]])], 0), slowest: times.slice(0, 1) };
    expect(closingText(counts)).toContain("slowest:\n   0.6 s  packages/a/test/a.test.ts takes 600\n");
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

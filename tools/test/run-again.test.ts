import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closingText, type FailedTest, noCounts, type TestCounts } from "../closing-line.ts";
import { repositoryRoot } from "../find-files.ts";
import { argumentsAgain, countsWithAgain, filesAgain } from "../run-again.ts";

function failure(file: string, name: string, project = "packages/a"): FailedTest {
  return { file, name, project, error: `${name} is wrong` };
}

function countsOf(
  passed: number,
  failures: readonly FailedTest[],
  passes: TestCounts["passes"] & object = [],
): TestCounts {
  return { ...noCounts, passed, failed: failures.length, failures, passes };
}

describe("what runs again", () => {
  it("is up to three failed files, in the projects in which they failed", () => {
    const three = countsOf(9, [
      failure("a.ts", "one"),
      failure("a.ts", "two"),
      failure("b.ts", ""),
      failure("c.ts", ""),
    ]);
    expect(filesAgain(three)).toEqual(["a.ts", "b.ts", "c.ts"].map((file) => join(repositoryRoot, file)));
    expect(argumentsAgain(three)).toContain("--project=packages/a");
    expect(filesAgain(countsOf(9, [...(three.failures ?? []), failure("d.ts", "one")]))).toEqual([]);
  });

  it("is nothing where an error belongs to no file, or where the run died", () => {
    expect(filesAgain({ ...countsOf(9, [failure("a.ts", "one")]), unhandled: 1 })).toEqual([]);
    expect(filesAgain(noCounts)).toEqual([]);
  });

  it("is unstable where it passes then, and failed where it fails then, alone or with its file", () => {
    const first = countsOf(9, [failure("a.ts", "one"), failure("a.ts", "two"), failure("b.ts", "one")]);
    const again = countsOf(
      4,
      [failure("a.ts", "two"), failure("a.ts", "three"), failure("b.ts", "")],
      [failure("a.ts", "one")],
    );
    const both = countsWithAgain(first, again);
    expect(both).toMatchObject({ passed: 8, failed: 3, unstable: [failure("a.ts", "one")] });
    const all = [...(first.failures ?? []), failure("a.ts", "three")];
    expect(countsWithAgain(first, countsOf(7, [], all))).toMatchObject({ passed: 9, failed: 0, failures: [] });
  });

  it("brings the faults of the tests that pass only then", () => {
    const first = { ...countsOf(9, [failure("a.ts", "one")]), faults: { states: 5, kills: 1 } };
    const faults = { states: 2, kills: 10 };
    const again = countsOf(
      2,
      [],
      [
        { ...failure("a.ts", "one"), faults },
        { ...failure("a.ts", "two"), faults },
      ],
    );
    expect(countsWithAgain(first, again).faults).toEqual({ states: 7, kills: 11 });
  });

  it("is failed where it does not run then", () => {
    const first = countsOf(9, [failure("a.ts", "one"), failure("a.ts", "two"), failure("b.ts", "")]);
    const again = countsOf(2, [], [failure("a.ts", "one"), failure("a.ts", "three")]);
    const left = [failure("a.ts", "two"), failure("b.ts", "")];
    expect(countsWithAgain(first, again)).toMatchObject({
      failed: 2,
      failures: left,
      unstable: [failure("a.ts", "one")],
    });
    const whole = countsOf(3, [], [...(again.passes ?? []), failure("a.ts", "two"), failure("b.ts", "any")]);
    expect(countsWithAgain(first, whole)).toMatchObject({ failed: 0, unstable: first.failures });
  });

  it("fails in another project than in the first run, and counts as a new failure", () => {
    const [one, other] = [failure("a.ts", "one"), failure("a.ts", "one", "packages/b")];
    const again = countsOf(1, [other], [one]);
    expect(countsWithAgain(countsOf(9, [one]), again)).toMatchObject({ failed: 1, unstable: [one] });
  });

  it("is named at the end with its first error, before the closing line", () => {
    const unstable = [{ ...failure("a.ts", "one"), error: "wrong\nby two" }, failure("b.ts", "")];
    expect(closingText({ ...countsOf(9, []), unstable })).toBe(
      [
        "unstable: a.ts > one",
        "  wrong",
        "  by two",
        "unstable: b.ts",
        "   is wrong",
        "tests: 9 passed, 0 failed, 0 skipped",
      ].join("\n"),
    );
  });
});

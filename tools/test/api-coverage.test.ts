import { describe, expect, it } from "vitest";
import { coverageProblems, lowerLimits } from "../api-docs/coverage.ts";

const coverage = new Map([
  ["core", { exports: 2, members: 3, missing: ["core:Usage.input", "core:Usage.output"] }],
  ["session", { exports: 1, members: 1, missing: [] }],
]);

describe("the coverage of docstrings", () => {
  it("refuses more members without a docstring than before, and names them", () => {
    expect(coverageProblems(coverage, { core: 1 })).toEqual([
      "core: 2 without a docstring, at most 1 as before",
      "  core:Usage.input has no docstring",
      "  core:Usage.output has no docstring",
    ]);
    expect(coverageProblems(coverage, { core: 2 })).toEqual([]);
  });

  it("refuses any in a package that has no limit", () => {
    expect(coverageProblems(coverage, {})).toHaveLength(3);
  });

  it("lowers a limit and never raises one", () => {
    expect(lowerLimits(coverage, { core: 5, session: 4 })).toEqual({ core: 2 });
    expect(lowerLimits(coverage, { core: 1 })).toEqual({ core: 1 });
  });
});

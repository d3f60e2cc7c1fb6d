import { describe, expect, it } from "vitest";
import { checkRequirements, readProvingTitles, reportLines } from "../check-requirements.ts";
import type { ProvingTitle } from "../check-requirements.ts";

const table = [
  "| id | requirement | issue | note |",
  "| --- | --- | --- | --- |",
  "| KEY-01 | A \\| b is left out of c. | one | |",
  "| KEY-02 | B. | one | C01 |",
  "| REC-01 | C. | two | left out: 2026-11-21 the format has no such field |",
  "| C01 | D. | one | |",
].join("\n");

const titlesOf = (source: string): ProvingTitle[] => readProvingTitles("a.test.ts", source);

describe("which titles prove something", () => {
  it.each([
    [`it("a [KEY-01]", f)`, ["KEY-01"]],
    [`test("a [KEY-01 KEY-02] and [C01]", f)`, ["KEY-01", "KEY-02", "C01"]],
    [`it("a [KEY-01, KEY-02]", f)`, ["KEY-01", "KEY-02"]],
    ["it.each([1])(`a ${b} [KEY-01]`, f)", ["KEY-01"]],
    [`it.skipIf(!corpus)("a [KEY-01]", f)`, ["KEY-01"]],
    [`describe("x", () => { it("a [KEY-01]", f) })`, ["KEY-01"]],
    [`const cases = [{ id: "append/order", title: "a [KEY-01]" }]`, ["KEY-01"]],
  ])("%s does", (source, ids) => {
    expect(titlesOf(source)).toEqual([{ path: "a.test.ts", line: 1, ids }]);
  });

  it.each([
    [`it.skip("a [KEY-01]", f)`],
    [`it.todo("a [KEY-01]")`],
    [`describe.skip("x", () => { it("a [KEY-01]", f) })`],
    [`describe("x [KEY-01]", f)`],
    [`it("a [0, 1] and [UTF-X]", f)`],
    [`// it("a [KEY-01]", f)`],
  ])("%s does not", (source) => {
    expect(titlesOf(source)).toEqual([]);
  });
});

describe("what the report says", () => {
  it("counts by area without the rows left out", () => {
    const report = checkRequirements(table, titlesOf(`it("a [KEY-01 C01]", f); it("b [KEY-01]", f)`));
    expect(reportLines(report)).toEqual([
      "KEY 1 of 2",
      "REC 0 of 0, 1 left out",
      "C 1 of 1",
      "requirements: 2 of 3 proven, 1 left out",
    ]);
    expect(report.unproven).toEqual(["KEY-02"]);
  });

  it.each([
    [`it("a [KEY-09]", f)`, "a.test.ts:1 KEY-09 is not a requirement"],
    [`it("a [REC-01]", f)`, "a.test.ts:1 REC-01 is proven here but left out in docs/requirements.md:5"],
    [`\nit("a [C01 C01 C01 C01 C01 C01]", f)`, "a.test.ts:2 6 ids in one title; at most 5"],
  ])("refuses %s", (source, violation) => {
    expect(checkRequirements(table, titlesOf(source)).violations).toEqual([violation]);
  });

  it.each([
    ["| KEY-01 | again | one | |", "docs/requirements.md:7 KEY-01 stands twice"],
    ["| KEY-03 | a | b | one | |", "docs/requirements.md:7 KEY-03 has 5 columns instead of 4"],
    [
      "| KEY-03 | a | one | left out for now |",
      'docs/requirements.md:7 KEY-03 is left out without "left out: YYYY-MM-DD reason"',
    ],
  ])("refuses the row %s", (row, violation) => {
    expect(checkRequirements(`${table}\n${row}`, []).violations).toEqual([violation]);
  });
});

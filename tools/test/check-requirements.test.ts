import { describe, expect, it } from "vitest";
import { checkRequirements, readProvingTitles, reportLines } from "../check-requirements.ts";
import type { ProvingTitle, RequirementReport } from "../check-requirements.ts";

const table = [
  "| id | requirement | issue | note |",
  "| --- | --- | --- | --- |",
  "| KEY-01 | A \\| b is left out of c. | one | |",
  "| KEY-02 | B. | one | C01 |",
  "| REC-01 | C. | two | left out: 2026-11-21 the format has no such field |",
  "| C01 | D. | one | |",
  "| C02 | E. | one | internal: only the order of ids in memory shows it |",
].join("\n");

const titlesOf = (source: string): ProvingTitle[] => readProvingTitles("a.test.ts", source);

describe("which titles prove something", () => {
  it.each([
    [`it("a [KEY-01]", f)`, ["KEY-01"]],
    [`test("a [KEY-01 KEY-02] and [C01]", f)`, ["KEY-01", "KEY-02", "C01"]],
    [`it("a [KEY-01, KEY-02]", f)`, ["KEY-01", "KEY-02"]],
    [`it("a part of a row [KEY-01b, C01c]", f)`, ["KEY-01b", "C01c"]],
    ["it.each([1])(`a ${b} [KEY-01]`, f)", ["KEY-01"]],
    [`it.skipIf(process.platform !== "linux")("a [KEY-01]", f)`, ["KEY-01"]],
    [`describe("x", () => { it("a [KEY-01]", f) })`, ["KEY-01"]],
    [`const cases = [{ id: "append/order", title: "a [KEY-01]" }]`, ["KEY-01"]],
    [`const cases = [{ id: "append/order", demand: "a [KEY-01]" }]`, ["KEY-01"]],
  ])("%s does", (source, ids) => {
    expect(titlesOf(source)).toEqual([{ path: "a.test.ts", line: 1, ids, needsCorpus: false }]);
  });

  it.each([
    [`it.skipIf(corpus === undefined)("a [KEY-01]", f)`],
    [`describe.skipIf(!corpusFolder)("x", () => { it("a [KEY-01]", f) })`],
    [`describe.skipIf(!corpus).each([1])("x", () => { describe("y", () => { it("a [KEY-01]", f) }) })`],
    [`const folder = env["THROUGHLINE_CORPUS"]; it.runIf(folder)("a [KEY-01]", f)`],
  ])("%s names a row and needs the corpus", (source) => {
    expect(titlesOf(source)).toEqual([{ path: "a.test.ts", line: 1, ids: ["KEY-01"], needsCorpus: true }]);
  });

  it("needs no corpus beside a test that does", () => {
    const source = `describe.skipIf(!corpus)("x", () => { it("a [KEY-01]", f) }); it("b [KEY-02]", f)`;
    expect(titlesOf(source).map(({ ids, needsCorpus }) => [ids[0], needsCorpus])).toEqual([
      ["KEY-01", true],
      ["KEY-02", false],
    ]);
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

/** Tests in files whose name begins with `product` run the product. */
const check = (source: string, path = "product.test.ts"): RequirementReport =>
  checkRequirements(table, readProvingTitles(path, source), (file) => file.startsWith("product"));

describe("what the report says", () => {
  it("counts the two kinds of tests apart, by area, without the rows left out", () => {
    const titles = [
      ...readProvingTitles("product.test.ts", `it("a [KEY-01 C02]", f); it("b [KEY-01]", f)`),
      ...readProvingTitles("other.test.ts", `\nit("a [KEY-01]", f); it("b [C01]", f)`),
    ];
    const report = checkRequirements(table, titles, (path) => path.startsWith("product"));
    expect(reportLines(report, true)).toEqual([
      "C01 by other tests only: other.test.ts:2",
      "KEY-02 unproven",
      "KEY 1 of 2",
      "REC 0 of 0, 1 left out",
      "C 0 of 1, 1 by other tests only, 1 internal",
      "requirements: 1 of 3 proven through the product, 1 by other tests only, 1 internal, 1 left out",
    ]);
    expect(reportLines(report)).not.toContain("C01 by other tests only: other.test.ts:2");
    expect(report.unproven).toEqual(["KEY-02"]);
  });

  it("takes a test that needs the corpus for no proof", () => {
    expect(check(`it.skipIf(!corpus)("a [KEY-01]", f)`).unproven).toContain("KEY-01");
    expect(check(`it.skipIf(!corpus)("a [KEY-01]", f)`)).toMatchObject({ throughProduct: 0, byOtherTests: 0 });
  });

  it("wants an internal row proven too", () => {
    expect(check("").unproven).toContain("C02");
    expect(check(`it("a [C02]", f)`, "other.test.ts")).toMatchObject({ internal: 1, byOtherTests: 0, total: 3 });
  });

  it.each([
    [`it("a [KEY-09]", f)`, "product.test.ts:1 KEY-09 is not a requirement"],
    [`it("a [REC-01]", f)`, "product.test.ts:1 REC-01 is proven here but left out in docs/internal/requirements.md:5"],
    [`\nit("a [C01 C01 C01 C01 C01 C01]", f)`, "product.test.ts:2 6 ids in one title; at most 5"],
  ])("refuses %s", (source, violation) => {
    expect(check(source).violations).toEqual([violation]);
  });

  it.each([
    ["| KEY-01 | again | one | |", "docs/internal/requirements.md:8 KEY-01 stands twice"],
    ["| KEY-03 | a | b | one | |", "docs/internal/requirements.md:8 KEY-03 has 5 columns instead of 4"],
    [
      "| KEY-03 | a | one | left out for now |",
      'docs/internal/requirements.md:8 KEY-03 is left out without "left out: YYYY-MM-DD reason"',
    ],
    [
      "| KEY-03 | a | one | internal |",
      'docs/internal/requirements.md:8 KEY-03 is internal without "internal: reason"',
    ],
  ])("refuses the row %s", (row, violation) => {
    expect(checkRequirements(`${table}\n${row}`, [], () => true).violations).toEqual([violation]);
  });
});

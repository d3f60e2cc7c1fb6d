import { describe, expect, it } from "vitest";
import { measurePackages, median, sizeTable } from "../size-report.ts";
import { temporaryTree } from "./temporary-tree.ts";

describe("the size report", () => {
  it.each([
    [[], 0],
    [[3], 3],
    [[1, 4], 2.5],
    [[1, 2, 9], 2],
  ])("the median of %j is %d", (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it("counts sources and tests, and nothing that was built", () => {
    const root = temporaryTree({
      "packages/a/package.json": "{}",
      "packages/a/src/one.ts": "1;\n",
      "packages/a/src/deep/two.ts": "1;\n2;\n3;\n",
      "packages/a/dist/one.d.ts": "1;\n",
      "packages/a/test/one.test.ts": "1;\n2;\n",
      "apps/b/package.json": "{}",
    });
    const table = sizeTable(measurePackages(root)).split("\n");
    expect(table.slice(2)).toEqual(["| apps/b | 0 | 0 | 0 | 0 | 0 |", "| packages/a | 2 | 4 | 2 | 3 | 2 |"]);
  });
});

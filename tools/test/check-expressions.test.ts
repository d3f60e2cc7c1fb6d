import { describe, expect, it } from "vitest";
import { boundedVerdict } from "../bounded-expression.ts";
import {
  checkBuilt,
  formatVerdicts,
  judge,
  parseVerdicts,
  readExpressions,
  type Verdict,
} from "../check-expressions.ts";

describe("the check of regular expressions", () => {
  it("finds literals and calls of RegExp, and nothing in strings and comments", () => {
    const text = 'const a = /x+$/g; // /y+$/\nconst b = new RegExp(`${a}`);\nconst c = "/z+$/"; RegExp("q");';
    expect(readExpressions("a.ts", text)).toEqual([
      { path: "a.ts", line: 1, source: "x+$", flags: "g" },
      { path: "a.ts", line: 2, source: null, flags: "" },
      { path: "a.ts", line: 3, source: null, flags: "" },
    ]);
  });

  it("wants every file that builds expressions in the table, with their number", () => {
    const found = readExpressions("a.ts", "new RegExp(one); new RegExp(two);");
    expect(checkBuilt(found, [])).toEqual(["a.ts:1 builds 2 expressions; tools/built-expressions.ts has 0"]);
    expect(checkBuilt(found, [{ path: "a.ts", count: 2, parts: "constants", samples: [] }])).toEqual([]);
    expect(checkBuilt([], [{ path: "b.ts", count: 1, parts: "constants", samples: [] }])).toHaveLength(1);
  });

  it("knows what is bounded by itself", () => {
    expect(boundedVerdict("/^(?:ab|cd?){0,3}\\p{L}(?<name>x)$/u")?.summary).toBe(
      "bounded, at most 40 ways from each position",
    );
    for (const open of ["/a+$/", "/(?:a|a){0,20}b/", "/(a)\\1/"]) expect(boundedVerdict(open), open).toBeNull();
  });

  it("keeps in its table what this version of recheck accepted, and nothing else", () => {
    const verdicts = new Map([
      ["/b+/", { status: "safe", summary: "linear" }],
      ["/a+/", { status: "safe", summary: "linear" }],
      ["/\\s+$/", { status: "vulnerable", summary: "2nd degree" }],
      ["/x/", { status: "safe", summary: "bounded" }],
    ]);
    const table = formatVerdicts(verdicts, "1.0.0");
    expect([...parseVerdicts(table, "1.0.0")]).toEqual([
      ["/a+/", { status: "safe", summary: "linear" }],
      ["/b+/", { status: "safe", summary: "linear" }],
    ]);
    expect([...parseVerdicts(table, "1.0.1")]).toEqual([]);
  });

  it("finds the expression that froze a process, and white space before the end", { tags: ["slow"] }, async () => {
    const cache = new Map<string, Verdict>();
    await judge(new Set(["/\\b\\S+@\\S+\\.\\w+/g", "/\\s+$/", "/\\S+/g"]), cache);
    expect([...cache].map(([expression, { status }]) => [expression, status]).toSorted()).toEqual([
      ["/\\S+/g", "safe"],
      ["/\\b\\S+@\\S+\\.\\w+/g", "vulnerable"],
      ["/\\s+$/", "vulnerable"],
    ]);
  });
});

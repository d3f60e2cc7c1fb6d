import { describe, expect, it } from "vitest";
import { checkErrors, errorsDocument } from "../check-errors.ts";
import { temporaryTree } from "./temporary-tree.ts";

const tables = {
  errors: {
    STORE_CLOSED: { summary: "The store is closed.", retryable: false, remedy: "Open a|b." },
    ABORTED: { summary: "Aborted.", retryable: true, remedy: "Again." },
  },
  findings: { TAIL_TORN: { severity: "warning", remedy: "Nothing." } },
};

const good = [
  `throw new ThroughlineError("STORE_CLOSED", "x");`,
  `throw new ThroughlineError(early ? "ABORTED" : "STORE_CLOSED", "x");`,
  `createFinding("TAIL_TORN", "x");`,
  `const cause = { code: "ENOENT" };`,
].join("\n");

function check(source: string, document: string | null = errorsDocument(tables)): string[] {
  const root = temporaryTree({ "packages/a/package.json": "{}", "packages/a/src/index.ts": source });
  return checkErrors(root, tables, document);
}

describe("the error tables, their document and the sources", () => {
  it("agree when every code is documented and used", () => {
    expect(check(good)).toEqual([]);
  });

  it("escapes what would end a cell, and sorts", () => {
    const text = errorsDocument(tables);
    expect(text).toContain("| `STORE_CLOSED` | The store is closed. | no | Open a\\|b. |");
    expect(text.indexOf("ABORTED")).toBeLessThan(text.indexOf("STORE_CLOSED"));
  });

  it.each([
    ["is missing", null, "docs/errors.md:1 ABORTED is not documented; run --write"],
    [
      "lacks a code",
      errorsDocument({ ...tables, findings: {} }),
      "docs/errors.md:1 TAIL_TORN is not documented; run --write",
    ],
    [
      "knows too much",
      `${errorsDocument(tables)}| \`OLD_CODE\` | x |\n`,
      "docs/errors.md:1 OLD_CODE is in no table; run --write",
    ],
    [
      "has old words",
      errorsDocument(tables).replace("Again.", "Never."),
      "docs/errors.md:1 differs from the tables; run node tools/check-errors.ts --write",
    ],
  ])("differ when the document %s", (_, document, expected) => {
    expect(check(good, document)).toContain(expected);
  });

  it.each([
    [`throw new ThroughlineError("NO_SUCH", "x");`],
    [`const error = { kind: "error", code: "NO_SUCH" };`],
    [`const finding = core.createFinding("NO_SUCH", "x");`],
  ])("differ when a source makes an unknown code: %s", (line) => {
    expect(check(`${good}\n${line}`)).toEqual(["packages/a/src/index.ts:5 NO_SUCH is in no table"]);
  });

  it("differ when a code is only spoken of in a comment", () => {
    expect(check(`// STORE_CLOSED ABORTED\ncreateFinding("TAIL_TORN", "x");`)).toEqual([
      "packages/core/src/error-codes.ts:1 ABORTED is never used",
      "packages/core/src/error-codes.ts:1 STORE_CLOSED is never used",
    ]);
  });
});

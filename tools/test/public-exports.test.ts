import { describe, expect, it } from "vitest";
import { exportProblems, exportsDocument, firstSentence, readPublicExports } from "../public-exports.ts";
import { temporaryTree } from "./temporary-tree.ts";

function manifest(name: string, entries: readonly string[], isPrivate = false): string {
  const exports = Object.fromEntries(
    entries.map((entry) => [
      entry === "index" ? "." : `./${entry}`,
      { "@throughline/source": `./src/${entry}.ts`, default: `./dist/${entry}.js` },
    ]),
  );
  return JSON.stringify({ name: `@throughline/${name}`, private: isPrivate, exports });
}

/** The exports of one package with these sources, as `name kind summary`. */
function exportsOf(files: Readonly<Record<string, string>>): readonly string[] {
  const root = temporaryTree({
    "packages/history/package.json": manifest("history", ["index"]),
    ...Object.fromEntries(Object.entries(files).map(([path, text]) => [`packages/history/src/${path}`, text])),
  });
  return readPublicExports(root).map(({ name, kind, summary }) => `${name} ${kind} ${summary ?? "-"}`);
}

describe("the public exports of the packages", () => {
  it("are found behind re-exports, other names, imports and folders", () => {
    const found = exportsOf({
      "index.ts": [
        `export { a, b as c } from "./folder/a.ts";`,
        `export type { D } from "./folder/a.ts";`,
        `import { inner as outer } from "./folder/b.ts";`,
        `export { outer as named };`,
        `/** Says e. */\nexport const e: number = 1;`,
      ].join("\n"),
      "folder/a.ts": [
        `/** Says a. And more. */\nexport function a(): void {}`,
        `/**\n * Says b:\n * the rest.\n * @throws never\n */\nexport class b {}`,
        `/** Says d. */\nexport type D = string;`,
        `export { inner } from "./b.ts";`,
      ].join("\n\n"),
      "folder/b.ts": `/** Says inner. */\nconst inner: number = 1;\nexport { inner };\n`,
    });
    expect(found).toEqual([
      "a function Says a.",
      "c class Says b.",
      "D type Says d.",
      "e constant Says e.",
      "named constant Says inner.",
    ]);
  });

  it("are found in the package that declares them, and not in those that are private or internal", () => {
    const root = temporaryTree({
      "packages/core/package.json": manifest("core", ["index", "internal"]),
      "packages/core/src/index.ts": `export { shared } from "./shared.ts";\n`,
      "packages/core/src/internal.ts": `export const hidden: number = 1;\n`,
      "packages/core/src/shared.ts": `/** Shared. */\nexport const shared: number = 1;\n`,
      "packages/history/package.json": manifest("history", ["index"]),
      "packages/history/src/index.ts": `export { shared as passedOn } from "@throughline/core";\n`,
      "packages/simulator/package.json": manifest("simulator", ["index"], true),
      "packages/simulator/src/index.ts": `export const silent: number = 1;\n`,
    });
    expect(readPublicExports(root).map(({ package: name, name: exported, at }) => [name, exported, at])).toEqual([
      ["@throughline/core", "shared", "packages/core/src/shared.ts:2"],
      ["@throughline/history", "passedOn", "packages/core/src/shared.ts:2"],
    ]);
  });

  it("take no docstring from a line comment, from a comment further up or from another declaration", () => {
    const found = exportsOf({
      "index.ts": [
        `// Says a.\nexport const a: number = 1;`,
        `/** Says more. */\nconst other: number = 1;\nexport const b: number = other;`,
        `/* Says c. */\nexport const c: number = 1;`,
        `/** @internal */\nexport const d: number = 1;`,
        `export function e(one: string): void;\n/** Says e. */\nexport function e(one: number): void;\nexport function e(): void {}`,
      ].join("\n\n"),
    });
    expect(found).toEqual(["a constant -", "b constant -", "c constant -", "d constant -", "e function Says e."]);
  });

  it("fail the check without a docstring, and when the document differs", () => {
    const root = temporaryTree({
      "packages/history/package.json": manifest("history", ["index"]),
      "packages/history/src/index.ts": `/** Either | or. */\nexport const a: number = 1;\nexport const b: number = 2;\n`,
    });
    const exports = readPublicExports(root);
    const document = exportsDocument(exports);
    expect(document).toContain("| @throughline/history | `a` | constant | Either \\| or. |");
    expect(document).toContain("| all | 2 |");
    expect(exportProblems(exports, document)).toEqual([
      "packages/history/src/index.ts:3 b is public and has no docstring",
    ]);
    expect(exportProblems(exports.slice(0, 1), document)).toEqual([
      "docs/internal/public-exports.md:1 differs from the sources; run node tools/public-exports.ts --write",
    ]);
  });

  it("refuse an entry whose declaration cannot be found", () => {
    expect(() =>
      exportsOf({ "index.ts": `export { gone } from "./a.ts";`, "a.ts": `export const a: number = 1;` }),
    ).toThrow("packages/history/src/a.ts does not export gone");
    expect(() => exportsOf({ "index.ts": `export { far } from "elsewhere";` })).toThrow("its declaration is not found");
  });

  it.each([
    ["One sentence.", "One sentence."],
    ["\n * Two lines\n * long. Next.\n ", "Two lines long."],
    [" Uses `a.b` and 1.5. Then.", "Uses `a.b` and 1.5."],
    ["No end", "No end"],
    ["Loads it. @throws {Error} X", "Loads it."],
    ["Loads it @throws {Error} X", "Loads it"],
    [" @internal", null],
    ["", null],
  ])("have the first sentence of %j", (comment, sentence) => {
    expect(firstSentence(comment)).toBe(sentence);
  });
});

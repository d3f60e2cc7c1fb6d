import { describe, expect, it } from "vitest";
import { exportProblems, firstSentence, mostPublicNames, readPublicExports } from "../public-exports.ts";
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

  it("are the members of a namespace, one by one, however it is exported", () => {
    const found = exportsOf({
      "index.ts": `export * as forks from "./forks.ts";\nimport * as all from "./forks.ts";\nexport { all };\n`,
      "forks.ts": `/** Says make. */\nexport function make(): void {}\n/** Says Fork. */\nexport type Fork = string;\n`,
    });
    expect(found).toEqual([
      "all.Fork type Says Fork.",
      "all.make function Says make.",
      "forks.Fork type Says Fork.",
      "forks.make function Says make.",
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

describe("the check of the public names", () => {
  const declared = (name: string, text = `/** Says ${name}. */\n`): string =>
    `${text}export const ${name}: number = 1;\n`;
  const problemsOf = (sources: Readonly<Record<string, string>>, rows: readonly string[]): readonly string[] => {
    const names = [...new Set(Object.keys(sources).map((path) => path.split("/")[0] ?? ""))];
    const root = temporaryTree({
      ...Object.fromEntries(
        names.map((name) => {
          const entries = Object.keys(sources).filter((path) => path.startsWith(`${name}/`));
          const found = entries.map((path) => path.slice(name.length + 1).replace(".ts", ""));
          return [`packages/${name}/package.json`, manifest(name, found)];
        }),
      ),
      ...Object.fromEntries(
        Object.entries(sources).map(([path, text]) => [`packages/${path.replace("/", "/src/")}`, text]),
      ),
    });
    const page = ["# Stability", "", "| a | b | `c` |", "", "## Public names", "", "| package | reason | names |"];
    const text = [...page, "| --- | --- | --- |", ...rows, "", "## Next", "", "| a | b | `c` |", ""].join("\n");
    return exportProblems(readPublicExports(root), text);
  };

  it("passes names that have a docstring and a row with a reason", () => {
    const rows = ["| guard | To call a model inside its window. | `a`, `b` |"];
    expect(problemsOf({ "guard/index.ts": declared("a") + declared("b") }, rows)).toEqual([]);
  });

  it.each([
    ["without a docstring", declared("a", ""), ["| guard | Why. | `a` |"], "is public and has no docstring"],
    ["without a row", declared("a") + declared("b"), ["| guard | Why. | `a` |"], "guard b is public and has no row in"],
    ["in the row of another package", declared("a"), ["| core | Why. | `a` |"], "core a is not exported"],
    ["that is not exported", declared("a"), ["| guard | Why. | `a`, `b` |"], "guard b is not exported"],
    ["in two rows", declared("a"), ["| guard | Why. | `a` |", "| guard | Else. | `a` |"], "guard a stands twice"],
    ["without a reason", declared("a"), ["| guard | | `a` |"], "a has no reason"],
  ])("refuses a name %s", (_case, source, rows, problem) => {
    expect(problemsOf({ "guard/index.ts": source }, rows)).toContainEqual(expect.stringContaining(problem));
  });

  it("refuses a name of two packages, and of two entry points of one, and takes what each provider has", () => {
    const both = ["| guard | Why. | `a` |", "| policy | Why. | `a` |"];
    const found = problemsOf({ "guard/index.ts": declared("a"), "policy/index.ts": declared("a") }, both);
    expect(found).toEqual(["packages/guard/src/index.ts:2 a is exported by guard and policy"]);
    const foreign = { "openclaw-compat/index.ts": declared("a"), "policy/index.ts": declared("a") };
    expect(problemsOf(foreign, ["| openclaw-compat | Why. | `a` |", "| policy | Why. | `a` |"])).toEqual([]);
    const entries = { "history/one.ts": declared("recordFromReply"), "history/two.ts": declared("recordFromReply") };
    const rows = ["| history/one | Why. | `recordFromReply` |", "| history/two | Why. | `recordFromReply` |"];
    expect(problemsOf(entries, rows)).toEqual([]);
    expect(
      problemsOf({ "guard/one.ts": declared("a"), "guard/two.ts": declared("a") }, [
        "| guard/one | Why. | `a` |",
        "| guard/two | Why. | `a` |",
      ]),
    ).toEqual(["packages/guard/src/one.ts:2 a is exported by guard/one and guard/two"]);
  });

  it("refuses more names than a user can choose from, and counts one of several entry points once", () => {
    const names = Array.from({ length: mostPublicNames }, (_, index) => `name${index}`);
    const source = (all: readonly string[]): string => all.map((name) => declared(name)).join("");
    const row = (all: readonly string[], entry = "guard"): string =>
      `| ${entry} | Why. | ${all.map((name) => `\`${name}\``).join(", ")} |`;
    expect(problemsOf({ "guard/index.ts": source(names) }, [row(names)])).toEqual([]);
    const more = [...names, "more"];
    expect(problemsOf({ "guard/index.ts": source(more) }, [row(more)])).toEqual([
      `packages:1 ${mostPublicNames + 1} names are public, at most ${mostPublicNames}`,
    ]);
    const some = [...names.slice(1), "packedVocabulary"];
    const twice = { "tokens/index.ts": source(some), "tokens/other.ts": source(["packedVocabulary"]) };
    expect(problemsOf(twice, [row(some, "tokens"), row(["packedVocabulary"], "tokens/other")])).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { checkLayers, forbiddenImport } from "../check-layers.ts";
import { temporaryTree } from "./temporary-tree.ts";

function manifest(name: string, dependencies: readonly string[] = []): string {
  return JSON.stringify({
    name: `@throughline/${name}`,
    dependencies: Object.fromEntries(dependencies.map((dependency) => [dependency, "*"])),
  });
}

/** What is said about one package that holds `source` as its index. */
function complaints(name: string, source: string, dependencies: readonly string[] = []): string[] {
  return checkLayers(
    temporaryTree({
      [`packages/${name}/package.json`]: manifest(name, dependencies),
      [`packages/${name}/src/index.ts`]: source,
    }),
  ).map((line) => line.replace(`packages/${name}/src/index.ts`, "index.ts"));
}

describe("which package may import which", () => {
  it.each([
    ["history", "core"],
    ["store-jsonl", "openclaw-format"],
    ["transfer", "store-jsonl"],
    ["apps/cli", "config"],
    ["core", "core"],
  ])("%s may import %s", (importer, name) => {
    expect(forbiddenImport(importer, name)).toBeNull();
  });

  it.each([
    ["core", "history", "higher"],
    ["store-sqlite", "store-memory", "same layer"],
    ["store-jsonl", "history", "never"],
    ["session", "config", "same layer"],
    ["session", "store-memory", "never"],
    ["checkpoint", "compaction", "same layer"],
    ["history", "openclaw-format", "same layer"],
    ["transfer", "apps/cli", "higher"],
    ["novelty", "core", "not in the layer table"],
    ["core", "novelty", "not in the layer table"],
  ])("%s may not import %s: %s", (importer, name, reason) => {
    expect(forbiddenImport(importer, name)).toContain(reason);
  });
});

describe("what a source file may do", () => {
  it("sees type imports, re-exports, dynamic imports and import types", () => {
    const source = [
      `import type { A } from "@throughline/history";`,
      `export { b } from "@throughline/history";`,
      `export type { C } from "@throughline/history";`,
      `await import("@throughline/history");`,
      `export type D = import("@throughline/history").D;`,
    ].join("\n");
    const found = complaints("store-memory", source, ["@throughline/history"]);
    expect(found.filter((line) => line.startsWith("index.ts"))).toHaveLength(5);
    expect(found).toContain("packages/store-memory/package.json:1 store-memory must never import history");
  });

  it("does not take a comment or a string for an import or for a use of the world", () => {
    const source = `// import "@throughline/history"; Date.now()\nexport const a: string = "process.env Math.random()";\n`;
    expect(complaints("store-memory", source)).toEqual([]);
  });

  it.each([
    ["Date.now()", "Date.now"],
    ["globalThis.Date.now()", "Date.now"],
    ["new Date()", "new Date()"],
    ["Math['random']()", "Math.random"],
    ["process.env.HOME", "process.env"],
    [`await import("node:fs")`, "node:fs"],
    [`await import("fs/promises")`, "node:fs"],
  ])("%s is for ports only", (expression, name) => {
    const found = complaints("history", `export const a: unknown = ${expression};`);
    expect(found).toContain(`index.ts:1 ${name} outside the ports; take it from core's ports`);
  });

  it("lets a date be read from a number, and the ports touch the world", () => {
    expect(complaints("history", "export const a: Date = new Date(0);")).toEqual([]);
    const root = temporaryTree({
      "packages/core/package.json": manifest("core"),
      "packages/core/src/node/clock.ts": "export const now = (): number => Date.now();",
    });
    expect(checkLayers(root)).toEqual([]);
  });

  it("counts the files that an allowance is for", () => {
    const source = `import { readFileSync } from "node:fs";\nexport const read: unknown = readFileSync;\n`;
    const root = temporaryTree({
      "packages/store-jsonl/package.json": manifest("store-jsonl"),
      "packages/store-jsonl/src/a.ts": source,
      "packages/store-jsonl/src/b.ts": source,
      "packages/store-jsonl/src/c.ts": source,
    });
    expect(checkLayers(root)).toEqual([
      "packages/store-jsonl/src/c.ts:1 node:fs in more than 2 files of packages/store-jsonl/src/**",
    ]);
  });

  it("wants every import declared, and zod at the doors only", () => {
    expect(complaints("history", `import "zod";`)).toEqual([
      "index.ts:1 zod is imported but not a dependency",
      "index.ts:1 zod may not be imported here: zod guards doors; replay uses hand-written structural checks",
    ]);
    expect(complaints("config", `import "zod/mini";`, ["zod"])).toEqual([]);
  });

  it("keeps relative imports inside the package's sources", () => {
    expect(complaints("history", `import "../../core/src/record.ts";`)).toEqual([
      "index.ts:1 ../../core/src/record.ts leaves the package; import it by its name",
    ]);
  });

  it("refuses files that import each other, by types and by lazy imports too", () => {
    const found = checkLayers(
      temporaryTree({
        "packages/history/package.json": manifest("history"),
        "packages/history/src/a.ts": `import type { B } from "./folder/b.ts";\nexport type A = B;\n`,
        "packages/history/src/folder/b.ts": `export type B = import("../c.ts").C;\n`,
        "packages/history/src/c.ts": `export type C = string;\nexport const load = () => import("./a.ts");\n`,
        "packages/history/src/d.ts": `import type { A } from "./a.ts";\nexport type D = A;\n`,
        "packages/history/src/self.ts": `export { self as other } from "./self.ts";\nexport const self = 1;\n`,
      }),
    );
    expect(found).toEqual([
      "packages/history/src/a.ts:1 imports itself by way of packages/history/src/c.ts, packages/history/src/folder/b.ts",
      "packages/history/src/self.ts:1 imports itself",
    ]);
  });

  it.each([
    "export const a: string = 1 as unknown as string;",
    "export const a: string = (1 as unknown) as string;",
    "export const a: string = <string>(<unknown>1);",
    "// Two lines before.\n\nexport const a: string = 1 as unknown as string;",
    `export const a: string = 1 as unknown as string;\n// After it.`,
  ])("wants the reason of a double assertion in a comment: %j", (source) => {
    expect(complaints("history", source)).toEqual([
      expect.stringMatching(/^index\.ts:[13] "as unknown as" without its reason/),
    ]);
  });

  it.each([
    "// The table has no numbers.\nexport const a: string = 1 as unknown as string;",
    "export const a: string = 1 as unknown as string; // The table has no numbers.",
    "export const a: string = call({\n  b: 1,\n  // The table has no numbers.\n}) as unknown as string;",
    `export const a: string = "1 as unknown as string";`,
    "export const a: string = (1 as unknown) === 2 ? (3 as never) : (4 as string);",
  ])("accepts a double assertion with its reason, and a single one: %j", (source) => {
    expect(complaints("history", source)).toEqual([]);
  });

  it("refuses star exports, default exports, syntax errors, long files and wide indexes", () => {
    expect(complaints("history", `export * from "./a.ts";`)[0]).toContain("export * hides");
    expect(complaints("history", `export * as a from "./a.ts";`)[0]).toContain("export * hides");
    expect(complaints("history", "export default 1;")[0]).toContain("default export");
    expect(complaints("history", "const = 1;")[0]).toContain("syntax error");
    expect(complaints("history", "\n".repeat(401))).toEqual(["index.ts:401 401 lines; at most 400"]);
    expect(complaints("history", "\n".repeat(400))).toEqual([]);
    const values = Array.from({ length: 26 }, (_, i) => `export const a${i}: number = 0;`).join("\n");
    expect(complaints("history", values)).toEqual(["index.ts:1 26 exports; at most 25"]);
    const types = Array.from({ length: 26 }, (_, i) => `export type A${i} = number;`).join("\n");
    expect(complaints("history", types)).toEqual([]);
  });

  it("counts the levels of files, types included, where a package was a tower", () => {
    const found = (levels: number): string[] => {
      const files = Array.from({ length: levels }, (_, at) => [
        `packages/store-jsonl/src/a${at}.ts`,
        at === 0
          ? "export type A0 = string;"
          : `import type { A${at - 1} } from "./a${at - 1}.ts";\nexport type A${at} = A${at - 1};`,
      ]);
      const manifests = { "packages/store-jsonl/package.json": manifest("store-jsonl") };
      return checkLayers(temporaryTree({ ...manifests, ...Object.fromEntries(files) }));
    };
    expect(found(13)).toEqual([]);
    expect(found(14)).toEqual(["packages/store-jsonl:1 14 levels of files that import the next; at most 13"]);
  });

  it("lets a file be longer for a reason that is written down, and no longer than it needs", () => {
    const path = "packages/history/src/long.ts";
    const found = (lines: number): string[] => {
      const root = temporaryTree({
        "packages/history/package.json": manifest("history"),
        [path]: "\n".repeat(lines),
      });
      return checkLayers(root, [{ path, reason: "it is one class" }]);
    };
    expect(found(500)).toEqual([]);
    expect(found(501)).toEqual([`${path}:501 501 lines; at most 500`]);
    expect(found(400)).toEqual([`${path}:1 needs no reason to be long; remove its row from longFiles`]);
  });
});

describe("what a package may be made of", () => {
  it("refuses stray files, unknown packages and more than two dependencies", () => {
    const root = temporaryTree({
      "packages/history/package.json": manifest("history", ["a", "b", "c", "@throughline/core"]),
      "packages/history/vitest.config.ts": "",
      "packages/history/dist/index.js": "",
      "packages/novelty/package.json": manifest("novelty"),
    });
    expect(checkLayers(root)).toEqual([
      "packages/history/package.json:1 3 dependencies besides ours; at most 2",
      "packages/history/vitest.config.ts:1 does not belong into a package folder",
      "packages/novelty/package.json:1 novelty is not in the layer table",
    ]);
  });
});

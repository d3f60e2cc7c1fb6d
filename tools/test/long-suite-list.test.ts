import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findFiles, repositoryRoot } from "../find-files.ts";
import { fullTests } from "../long-suite.ts";
import { longSuites } from "../long-suite-list.ts";

/** Modules of tests whose size differs between the tiers, as `packages/x` and `test/y.ts`. */
function sizedModules(): readonly (readonly [project: string, file: string])[] {
  const variables = Object.keys(fullTests);
  return ["packages", "apps", "examples", "lab/test", "tools/test"]
    .flatMap((folder) => findFiles(repositoryRoot, folder, [".ts"]))
    .filter((path) => /(?:^|\/)test\//.test(path))
    .filter((path) => {
      const text = readFileSync(join(repositoryRoot, path), "utf8");
      return (
        /from "[^"]*\/test-size\.ts"/.test(text) || variables.some((name) => text.includes(`process.env["${name}"]`))
      );
    })
    .map((path) => {
      const at = path.indexOf("/test/");
      return [path.slice(0, at), path.slice(at + 1)] as const;
    });
}

/** Whether a suite of the long tier runs a module at full size: its file, or all of its project. */
function isRunInFull([project, file]: readonly [string, string]): boolean {
  return longSuites.some((suite) => {
    const { program, args, env } = suite.command("full");
    const [, , ofProject, ...chosen] = args;
    const isFull = Object.entries(fullTests).every(([name, value]) => env[name] === value);
    return program === "vitest" && ofProject === project && isFull && (chosen.length === 0 || chosen.includes(file));
  });
}

describe("the long tier", () => {
  it("runs every test whose size differs between the tiers at its full size", { tags: ["slow"] }, () => {
    const modules = sizedModules();
    expect(modules.length).toBeGreaterThan(40);
    expect(modules.filter((module) => !isRunInFull(module)).map((module) => module.join(" "))).toEqual([]);
  });

  it("names test files that are there", () => {
    const missing = longSuites.flatMap((suite) =>
      (["full", "quick"] as const).flatMap((size) => {
        const { program, args } = suite.command(size);
        const [, , project = "", ...chosen] = args;
        if (program !== "vitest") return [];
        const there = findFiles(repositoryRoot, project, [".ts"]);
        return chosen.filter((file) => !there.includes(`${project}/${file}`));
      }),
    );
    expect(missing).toEqual([]);
  });
});

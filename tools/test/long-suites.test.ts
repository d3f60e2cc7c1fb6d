import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../find-files.ts";
import type { LongSuite } from "../long-suite.ts";
import { longSuites } from "../long-suite-list.ts";
import { chooseSuites, exitCodeOf, resultTable, runSuites } from "../long-suites.ts";
import { temporaryTree } from "./temporary-tree.ts";

const never = new AbortController().signal;
const quiet = { size: "quick", report: () => undefined, signal: never } as const;

function suite(name: string, code: string, missing: string | null = null): LongSuite {
  const command = { program: "node", args: ["-e", code], env: { SUITE: name } } as const;
  return { name, about: name, missing: () => missing, command: () => command };
}

describe("the runner of long suites", () => {
  it("runs the rest after a failure, and ends with 1", { tags: ["slow"] }, async () => {
    const results = await runSuites(
      [
        suite("bad", 'console.log("3 lost"); process.exitCode = 1'),
        suite("good", 'console.log("first"); console.log("0 lost in " + process.env.SUITE)'),
        suite("killed", "process.kill(process.pid, 'SIGKILL')"),
      ],
      quiet,
    );
    expect(results.map(({ suite: name, result }) => [name, result])).toEqual([
      ["bad", "failed"],
      ["good", "passed"],
      ["killed", "failed"],
    ]);
    expect(results.map(({ figure }) => figure)).toEqual([
      expect.stringMatching(/^exit 1; 3 lost; output: .*bad\.log$/),
      "0 lost in good",
      expect.stringMatching(/^exit SIGKILL; no output/),
    ]);
    expect(exitCodeOf(results)).toBe(1);
    expect(exitCodeOf(results.slice(1, 2))).toBe(0);
  });

  it("states why a suite was skipped, before it began or by its own word, and does not call it passed", async () => {
    const results = await runSuites(
      [
        suite("absent", "process.exit(1)", "mkfs.xfs is not installed"),
        suite("refused", 'console.log("skipped: xfs: mount: permission denied")'),
      ],
      quiet,
    );
    expect(results.map(({ result, figure }) => [result, figure])).toEqual([
      ["skipped", "mkfs.xfs is not installed"],
      ["skipped", "xfs: mount: permission denied"],
    ]);
    expect(exitCodeOf(results)).toBe(0);
  });

  it("stops what a suite has started, removes its folder, and begins no other", { tags: ["slow"] }, async () => {
    const place = join(temporaryTree({ "x.txt": "" }), "said");
    const grandchild = "setInterval(() => {}, 1000)";
    const code = `const { spawn } = require("node:child_process");
      const child = spawn(process.execPath, ["-e", ${JSON.stringify(grandchild)}], { stdio: "inherit" });
      require("node:fs").writeFileSync(${JSON.stringify(place)}, process.env.TMPDIR + "\\n" + child.pid + "\\n");
      setInterval(() => {}, 1000);`;
    const abort = new AbortController();
    const running = runSuites([suite("endless", code), suite("next", "")], { ...quiet, signal: abort.signal });
    await expect.poll(() => existsSync(place) && readFileSync(place, "utf8").split("\n").length).toBe(3);
    const [folder = "", pid = ""] = readFileSync(place, "utf8").split("\n");
    expect(existsSync(folder)).toBe(true);
    abort.abort();
    const results = await running;
    expect(results.map(({ result, figure }) => [result, figure])).toEqual([
      ["aborted", "stopped"],
      ["aborted", "not begun"],
    ]);
    expect(exitCodeOf(results)).toBe(130);
    expect(existsSync(folder)).toBe(false);
    await expect.poll(() => isRunning(Number(pid))).toBe(false);
  });

  it("prints a table whose columns line up", () => {
    const base = { result: "passed", figure: "0 lost", seconds: 1.25, command: "node x" } as const;
    expect(
      resultTable([
        { ...base, suite: "a" },
        { ...base, suite: "longer", figure: "none" },
      ]).split("\n"),
    ).toEqual([
      "suite   result  seconds  figure  command",
      "a       passed  1.3      0 lost  node x",
      "longer  passed  1.3      none    node x",
    ]);
  });

  it("takes suites by their names only", () => {
    expect(chooseSuites(longSuites, "kill-import, crash-locks").map(({ name }) => name)).toEqual([
      "crash-locks",
      "kill-import",
    ]);
    expect(() => chooseSuites(longSuites, "crash-lock")).toThrow('--only: there is no suite "crash-lock"');
  });
});

describe("the list of long suites", () => {
  it("names each once, and programs and tests that are there", () => {
    expect(new Set(longSuites.map(({ name }) => name)).size).toBe(longSuites.length);
    for (const each of longSuites)
      for (const size of ["full", "quick"] as const) {
        const { program, args } = each.command(size);
        const folder = program === "vitest" ? join(repositoryRoot, args[2] ?? "") : repositoryRoot;
        for (const path of args.filter((arg) => arg.endsWith(".ts")))
          expect([each.name, path, existsSync(join(folder, path))]).toEqual([each.name, path, true]);
      }
  });

  it("is printed by --list, and an interrupt ends a run with 130 and a table", { tags: ["slow"] }, async () => {
    const run = (...args: readonly string[]) => {
      const child = spawn(
        process.execPath,
        ["--conditions=@throughline/source", join(repositoryRoot, "tools/long-suites.ts"), ...args],
        { stdio: ["ignore", "pipe", "pipe"] },
      );
      let [output, errors] = ["", ""];
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      return { child, ended, texts: () => ({ output, errors }) };
    };
    const listing = run("--list", "--json", "--only", "crash-locks,kill-matrix");
    expect(await listing.ended).toBe(0);
    const listed = JSON.parse(listing.texts().output) as readonly { readonly suite: string }[];
    expect(listed.map(({ suite: name }) => name)).toEqual(["crash-locks", "kill-matrix"]);
    const unknown = run("--only", "nothing");
    expect(await unknown.ended).toBe(2);
    expect(unknown.texts().errors).toContain('there is no suite "nothing"');
    const long = run("--only", "crash-locks,kill-matrix", "--json");
    await expect.poll(() => long.texts().errors).toContain("crash-locks: node");
    await sleep(300);
    long.child.kill("SIGINT");
    expect(await long.ended).toBe(130);
    expect(JSON.parse(long.texts().output)).toMatchObject([
      { suite: "crash-locks", result: "aborted", figure: "stopped" },
      { suite: "kill-matrix", result: "aborted", figure: "not begun" },
    ]);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

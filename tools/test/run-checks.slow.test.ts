import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { runSteps } from "../run-checks.ts";
import type { Step } from "../run-checks.ts";
import { writeCounts } from "../closing-line.ts";
import { repositoryRoot } from "../find-files.ts";
import { temporaryTree } from "./temporary-tree.ts";

function step(name: string, code: string): Step {
  return { name, command: process.execPath, args: ["-e", code] };
}

async function run(
  steps: readonly Step[],
  passed: number | null,
  faults: { readonly states: number; readonly kills: number } | null = null,
  least: { readonly states: number; readonly kills: number } | null = null,
): Promise<{ code: number; lines: string[] }> {
  const countsPath = `${temporaryTree({ "x.txt": "" })}/tests.json`;
  writeCounts({ passed: 99, failed: 0, skipped: 0, skippedBecause: {}, faults: null }, countsPath);
  const counts = { passed, failed: 0, skipped: 1, skippedBecause: { other: 1 }, faults };
  const writes = `require("node:fs").writeFileSync(${JSON.stringify(countsPath)}, ${JSON.stringify(JSON.stringify(counts))})`;
  const all = passed === null ? steps : [...steps, step("tests", writes)];
  let text = "";
  const code = await runSteps(all, (part) => (text += part), countsPath, least);
  return { code, lines: text.trimEnd().split("\n") };
}

describe("running the checks", () => {
  it("ends with the closing line and 0", async () => {
    const { code, lines } = await run([step("good", "")], 7);
    expect(code).toBe(0);
    expect(lines.slice(-3)).toEqual(["steps: all passed", "skipped: 1 other", "tests: 7 passed, 0 failed, 1 skipped"]);
  });

  it("goes on after a failed step, names it, and ends with 1", async () => {
    const { code, lines } = await run([step("bad", "process.exit(3)"), step("gone", "process.kill(process.pid)")], 7);
    expect(code).toBe(1);
    expect(lines.slice(-3)).toEqual([
      "steps: failed: bad, gone",
      "skipped: 1 other",
      "tests: 7 passed, 0 failed, 1 skipped",
    ]);
  });

  it("prints what a step printed behind its name, whole, whatever runs beside it", async () => {
    const slow = "console.log('one'); setTimeout(() => console.error('two'), 300)";
    const { lines } = await run([step("slow", slow), step("quick", "console.log('three')")], 7);
    const shown = lines.map((line) => line.replace(/, [\d.]+ s$/, ""));
    expect(shown.slice(shown.indexOf("== slow"), shown.indexOf("-- slow: ok") + 1)).toEqual([
      "== slow",
      "one",
      "two",
      "-- slow: ok",
    ]);
    expect(shown.slice(shown.indexOf("== quick"), shown.indexOf("-- quick: ok") + 1)).toEqual([
      "== quick",
      "three",
      "-- quick: ok",
    ]);
  });

  it("runs a step that is to be alone when those before it have ended, and before those behind it begin", async () => {
    const path = `${temporaryTree({ "x.txt": "" })}/order`;
    const note = (name: string, afterMs: number): Step =>
      step(
        name,
        `setTimeout(() => require("node:fs").appendFileSync(${JSON.stringify(path)}, "${name} "), ${afterMs})`,
      );
    await run([note("before", 300), { ...note("alone", 150), isAlone: true }, note("behind", 0)], 7);
    expect(readFileSync(path, "utf8")).toBe("before alone behind ");
  });

  it("counts a program that is missing as a failed step", async () => {
    const { code, lines } = await run([{ name: "absent", command: "no-such-program-here", args: [] }], 7);
    expect(code).toBe(1);
    expect(lines).toContain("steps: failed: absent");
  });

  it("takes a test run that left no counts for a failure, whatever an earlier run left", async () => {
    const { code, lines } = await run([step("tests", "")], null);
    expect(code).toBe(1);
    expect(lines.at(-1)).toBe("tests: 0 passed, 1 failed, 0 skipped");
  });

  it("fails a run whose fault suites met fewer states or kills than it needs, and says how many they met", async () => {
    const least = { states: 2000, kills: 30 };
    const { code, lines } = await run([], 7, { states: 2000, kills: 30 }, least);
    expect(code).toBe(0);
    expect(lines.slice(-2)).toEqual(["faults: 2000 states, 30 kills", "tests: 7 passed, 0 failed, 1 skipped"]);
    for (const faults of [
      { states: 1999, kills: 30 },
      { states: 2000, kills: 29 },
      { states: 0, kills: 0 },
    ]) {
      const fewer = await run([], 7, faults, least);
      expect(fewer.code).toBe(1);
      expect(fewer.lines).toContain("steps: failed: faults");
      expect(fewer.lines).toContain(`faults: ${faults.states} states, ${faults.kills} kills; at least 2000 and 30`);
      expect((await run([], 7, faults)).code).toBe(0);
    }
    expect((await run([], 7, null, least)).code).toBe(1);
    expect((await run([], 7, null)).code).toBe(0);
  });
});

/** A test that fails until this many runs of it have been. */
function failsUntil(run: number): string {
  return `import { appendFileSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
const path = import.meta.filename + ".runs";
it("holds", () => {
  appendFileSync(path, "x");
  expect(readFileSync(path, "utf8").length, "the runs so far").toBeGreaterThanOrEqual(${run});
});
it("holds always", () => undefined);
`;
}

/** Runs a step of vitest over some files, of a project of its own. */
async function runProject(
  files: Readonly<Record<string, string>>,
  runsAgain = true,
): Promise<{ readonly code: number; readonly lines: readonly string[]; readonly text: string }> {
  const reporter = JSON.stringify(join(repositoryRoot, "tools/closing-line-reporter.ts"));
  const config = `export default { test: { reporters: ["default", ${reporter}] } };`;
  const root = temporaryTree({ "vitest.config.ts": config, "package.json": '{ "type": "module" }', ...files });
  symlinkSync(join(repositoryRoot, "node_modules"), join(root, "node_modules"));
  const countsPath = join(root, "counts.json");
  const env = ["env", [`THROUGHLINE_COUNTS_FILE=${countsPath}`, "vitest", "run", "--root", root]] as const;
  let text = "";
  const steps = [{ name: "tests", command: env[0], args: env[1], runsAgain }, step("behind", "console.log('behind')")];
  const code = await runSteps(steps, (part) => (text += part), countsPath);
  return { code, text, lines: text.trimEnd().split("\n") };
}

describe("a failed file of the whole tier", () => {
  it("runs once more behind all other steps, and is named as unstable with its first error", async () => {
    const { code, lines, text } = await runProject({ "a.test.ts": failsUntil(2), "b.test.ts": failsUntil(1) });
    expect([code, text]).toEqual([0, expect.stringContaining("steps: all passed")]);
    expect(text.indexOf("== tests again")).toBeGreaterThan(text.indexOf("== behind"));
    const at = lines.findIndex((line) => line.startsWith("unstable: "));
    expect(lines[at]).toMatch(/^unstable: .*a\.test\.ts > holds$/);
    expect(lines[at + 1]).toBe("  the runs so far: expected 1 to be greater than or equal to 2");
    expect(lines.at(-1)).toBe("tests: 3 passed, 0 failed, 0 skipped");
  });

  it("fails the run when it fails again", async () => {
    const { code, lines } = await runProject({ "a.test.ts": failsUntil(3) });
    expect([code, lines.at(-1)]).toEqual([1, "tests: 1 passed, 1 failed, 0 skipped"]);
    expect(lines).toContain("steps: failed: tests");
  });

  it("is judged as a whole when it does not load, and then does", async () => {
    const once = `import { existsSync, writeFileSync } from "node:fs";
import { it } from "vitest";
const path = import.meta.filename + ".loaded";
const isFirst = !existsSync(path);
writeFileSync(path, "");
if (isFirst) throw new Error("not yet");
it("holds", () => undefined);
`;
    const { code, lines } = await runProject({ "a.test.ts": once });
    expect([code, lines.at(-1)]).toEqual([0, "tests: 0 passed, 0 failed, 0 skipped"]);
    expect(lines.filter((line) => line.startsWith("unstable: "))).toEqual([
      expect.stringMatching(/^unstable: .*a\.test\.ts$/),
    ]);
  });

  it("does not run again where four files failed, or where the run is strict", async () => {
    const four = Object.fromEntries([1, 2, 3, 4].map((at) => [`${at}.test.ts`, failsUntil(2)]));
    const many = await runProject(four);
    expect([many.code, many.lines.at(-1)]).toEqual([1, "tests: 4 passed, 4 failed, 0 skipped"]);
    const strict = await runProject({ "a.test.ts": failsUntil(2) }, false);
    expect([strict.code, strict.lines.at(-1)]).toEqual([1, "tests: 1 passed, 1 failed, 0 skipped"]);
    expect(many.text + strict.text).not.toContain("tests again");
  });
});

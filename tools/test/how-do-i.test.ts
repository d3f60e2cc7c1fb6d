import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../find-files.ts";
import { readMarkdown, type Fence } from "../markdown.ts";

const page = readFileSync(join(repositoryRoot, "docs/how-do-i.md"), "utf8");
const { fences } = readMarkdown(page);
const questions = page
  .split(/^## /m)
  .flatMap((section) => section.split(/^### /m).slice(1))
  .map((text) => ({ name: text.slice(0, text.indexOf("\n")), ...readMarkdown(text) }));

function linesOf({ text }: Fence): readonly string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** What a program states that it prints. */
function printed(fence: Fence): readonly string[] {
  return linesOf(fence).flatMap((line) => /console\.log\(.*\); \/\/ (.*)$/.exec(line)?.[1] ?? []);
}

// `tools/check-docs.ts` runs the programs and the commands, and follows the links.
describe("docs/how-do-i.md", () => {
  it("answers at least 30 questions, each in at most ten lines that run, with one link", () => {
    expect(questions.length).toBeGreaterThanOrEqual(30);
    for (const { name, fences: answer, links } of questions) {
      const run = answer.filter(({ language }) => ["ts", "sh"].includes(language));
      expect.soft([name, run.length > 0, links.length]).toEqual([name, true, 1]);
      for (const fence of run) {
        expect.soft([name, linesOf(fence).length <= 10]).toEqual([name, true]);
        expect.soft([name, fence.info]).toEqual([name, expect.not.stringContaining("no-run")]);
      }
    }
  });

  it("shows what its programs print, all of which the last example runs", () => {
    const programs = questions.flatMap(({ fences: answer }) => answer.filter(({ language }) => language === "ts"));
    const together = programs.filter(({ info }) => info !== "file=crash.ts");
    const [command, output] = fences.slice(-2);
    expect(command?.text.match(/[\w-]+/g)?.slice(-together.length)).toEqual(
      together.map(({ info }) => info.replace(/^file=(.*)\.ts$/, "$1")),
    );
    for (const program of together)
      expect.soft([program.info, printed(program).length > 0]).toEqual([program.info, true]);
    expect(together.flatMap(printed)).toEqual(output?.text.split("\n"));
  });

  it("lists every question at its top", () => {
    const top = page.slice(0, page.indexOf("\n## "));
    for (const { name } of questions) expect.soft(top.toLowerCase()).toContain(`[${name.toLowerCase()}]`);
  });
});

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "./find-files.ts";
import { countCoverage, coverageProblems, lowerLimits } from "./api-docs/coverage.ts";
import type { Coverage, CoverageLimits } from "./api-docs/coverage.ts";
import { createReference } from "./api-docs/reference.ts";

const pagesFolder = "docs/api";
const limitsPath = join(repositoryRoot, "tools/api-docs/coverage-limits.json");

/** The page that lists the others. */
function indexPage(pages: Iterable<string>): string {
  const links = [...pages].toSorted().map((path) => {
    const name = path.replace(/\.md$/, "");
    return `- [\`@throughline/${name}\`](${path})`;
  });
  return [
    "# API reference",
    "",
    "One page for each entry point of a published package, from its declarations and their docstrings.",
    "Written by `npm run docs`.",
    "",
    ...links,
    "",
  ].join("\n");
}

function writePages(pages: ReadonlyMap<string, string>): void {
  const folder = join(repositoryRoot, pagesFolder);
  rmSync(folder, { recursive: true, force: true });
  for (const [path, text] of pages) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

function coverageLine(name: string, { exports, members, missing }: Coverage): string {
  return `${name}: ${exports} exports, ${members} members, ${missing.length} without a docstring\n`;
}

if (import.meta.main) {
  const { project, pages: written, warnings } = await createReference(repositoryRoot);
  const pages = new Map([...written, ["README.md", indexPage(written.keys())]]);
  const coverage = countCoverage(project);
  const limits = JSON.parse(readFileSync(limitsPath, "utf8")) as CoverageLimits;
  if (process.argv.includes("--write")) {
    writePages(pages);
    writeFileSync(limitsPath, `${JSON.stringify(lowerLimits(coverage, limits), null, 2)}\n`);
  }
  // Names as arguments print what these packages lack.
  for (const [name, each] of coverage) {
    process.stdout.write(coverageLine(name, each));
    if (process.argv.includes(name)) for (const at of each.missing) process.stdout.write(`  ${at}\n`);
  }
  const problems = [...warnings, ...coverageProblems(coverage, limits)];
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  const all = [...coverage.values()];
  const sum = (of: (each: Coverage) => number): number => all.reduce((total, each) => total + of(each), 0);
  const counts = `${pages.size} pages, ${sum((each) => each.exports)} exports, ${sum((each) => each.members)} members`;
  process.stdout.write(
    `api: ${counts}, ${sum((each) => each.missing.length)} without a docstring, ${problems.length === 0 ? "no problems" : `${problems.length} problems`}\n`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
}

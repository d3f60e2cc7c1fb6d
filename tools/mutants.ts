// Breaks one thing at a time in a clone of the checkout, and prints which tier of the tests reports it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { findFiles, findPackages, repositoryRoot } from "./find-files.ts";
import { apply, type Mutation, mutationsOf } from "./mutants/mutation-sites.ts";
import { createRandom } from "./seeded-random.ts";
import { withoutSlowTests } from "./test-tiers.ts";

/** A mutation and where it lies. */
interface Mutant extends Mutation {
  /** `packages/core` */
  readonly project: string;
  readonly path: string;
  readonly line: number;
}

/** The first tier that reports a mutant: its types, a quick test, a slow one; none where all pass. */
type Tier = "types" | "default" | "whole" | "none";

/** One mutant of a package, in one of its files by the number of their mutations. */
function drawMutant(root: string, project: string, random: () => number): Mutant {
  const files = findFiles(root, `${project}/src`, [".ts"]).filter((path) => !path.endsWith("option-table.ts"));
  const sites = files.flatMap((path) => {
    const source = readFileSync(join(root, path), "utf8");
    return mutationsOf(path, source).map((mutation) => ({ ...mutation, path, source }));
  });
  const { source, ...site } = sites[Math.floor(random() * sites.length)] as (typeof sites)[number];
  return { ...site, project, line: source.slice(0, site.start).split("\n").length };
}

/** Draws `count` mutants in turn over some packages, all by the seed. */
function drawMutants(root: string, seed: number, count: number, packageCount: number): readonly Mutant[] {
  const random = createRandom(seed);
  const tested = findPackages(root).filter((folder) => findFiles(root, `${folder}/test`, [".test.ts"]).length > 0);
  const chosen = tested
    .map((folder) => ({ folder, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .slice(0, packageCount);
  return Array.from({ length: count }, (_, index) =>
    drawMutant(root, (chosen[index % chosen.length] as { folder: string }).folder, random),
  );
}

/** The projects with tests that use a project, itself first. */
function dependentsOf(root: string, project: string): readonly string[] {
  const folders = findPackages(root, ["packages", "apps", "examples"]);
  const manifests = folders.map((folder) => {
    const text = readFileSync(join(root, folder, "package.json"), "utf8");
    return { folder, ...(JSON.parse(text) as { name: string; dependencies?: object; devDependencies?: object }) };
  });
  const found = new Set([project]);
  for (const folder of found) {
    const name = manifests.find((manifest) => manifest.folder === folder)?.name ?? "";
    for (const { dependencies, devDependencies, folder: user } of manifests)
      if (name in { ...dependencies, ...devDependencies }) found.add(user);
  }
  return [...found].filter((folder) => findFiles(root, `${folder}/test`, [".test.ts"]).length > 0);
}

/** Whether a command in the clone fails; one that hangs fails, too. */
function fails(clone: string, command: string, args: readonly string[]): boolean {
  const path = `${join(clone, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`;
  const env = { ...process.env, PATH: path, CI: "true" };
  const { status } = spawnSync(command, args, { cwd: clone, env, stdio: "ignore", timeout: 1_800_000 });
  return status !== 0;
}

function vitest(projects: readonly string[], args: readonly string[]): readonly string[] {
  return ["run", "--bail=1", ...projects.flatMap((project) => ["--project", project]), ...args];
}

/** Finds the first tier that reports the mutant, the quickest tests first. */
function judge(clone: string, mutant: Mutant): Tier {
  const path = join(clone, mutant.path);
  const source = readFileSync(path, "utf8");
  const own = [mutant.project];
  const others = dependentsOf(clone, mutant.project).filter((project) => project !== mutant.project);
  writeFileSync(path, apply(source, mutant));
  try {
    if (fails(clone, "vitest", vitest(own, withoutSlowTests))) return "default";
    if (fails(clone, "tsc", ["-b", mutant.project])) return "types";
    if (others.length > 0 && fails(clone, "vitest", vitest(others, withoutSlowTests))) return "default";
    // What is left is slow: the tests with the tag, then the files.
    for (const projects of [own, others]) {
      if (projects.length === 0) continue;
      if (fails(clone, "vitest", vitest(projects, ["--tags-filter=slow", "--passWithNoTests"]))) return "whole";
      if (fails(clone, "vitest", vitest(projects, ["--passWithNoTests", ".slow.test.ts"]))) return "whole";
    }
    return "none";
  } finally {
    writeFileSync(path, source);
  }
}

/** A clone of what is committed, with the packages installed. */
function makeClone(): string {
  const clone = join(mkdtempSync(join(tmpdir(), "throughline-mutants-")), "clone");
  const made = spawnSync("git", ["clone", "--quiet", repositoryRoot, clone], { stdio: "inherit" });
  const installed = spawnSync(process.execPath, ["tools/bootstrap.mjs", "setup"], { cwd: clone, stdio: "inherit" });
  if (made.status !== 0 || installed.status !== 0) throw new Error(`${clone} could not be made.`);
  return clone;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "1" },
      count: { type: "string", default: "200" },
      packages: { type: "string", default: "20" },
      from: { type: "string", default: "0" },
    },
  });
  const clone = makeClone();
  try {
    const mutants = drawMutants(clone, Number(values.seed), Number(values.count), Number(values.packages));
    const counts: Record<Tier, number> = { types: 0, default: 0, whole: 0, none: 0 };
    for (const [index, mutant] of mutants.entries()) {
      if (index < Number(values.from)) continue;
      const tier = judge(clone, mutant);
      counts[tier] += 1;
      process.stdout.write(`${index}\t${tier}\t${mutant.path}:${mutant.line}\t${mutant.kind}\n`);
    }
    const quick = counts.types + counts.default;
    const share = ((100 * quick) / Math.max(1, quick + counts.whole)).toFixed(1);
    process.stdout.write(
      `mutants: ${counts.types} by types, ${counts.default} by quick tests, ${counts.whole} by slow tests only, ${counts.none} by none; the default tier reports ${share} % of what the whole tier reports\n`,
    );
  } finally {
    rmSync(join(clone, ".."), { recursive: true, force: true });
  }
}

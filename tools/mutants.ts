// Breaks one thing at a time in a clone of the checkout, and prints which tier of the tests reports it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { findFiles, findPackages, repositoryRoot } from "./find-files.ts";
import { apply, type Mutation, mutationsOf, parses } from "./mutants/mutation-sites.ts";
import { createRandom } from "./seeded-random.ts";
import { withoutSlowTests } from "./test-tiers.ts";

/** A mutation and where it lies. */
interface Mutant extends Mutation {
  /** `packages/core` */
  readonly project: string;
  readonly path: string;
  readonly line: number;
}

/**
 * The first tier that reports a mutant: its types, a quick test, a slow one; none where all pass. Unknown where nothing
 * reports it, and a run that told nothing might have.
 */
type Tier = "types" | "default" | "whole" | "none" | "unknown";

/** What a run tells: its first failure, or why it tells nothing; null when it passed. */
export type Outcome = { readonly kind: "failed" | "unknown"; readonly text: string } | null;

/** How a program ended, as `spawnSync` states it. */
export interface Ending {
  readonly status: number | null;
  readonly signal?: NodeJS.Signals | null;
  readonly error?: Error;
  readonly stdout: string;
  readonly stderr: string;
}

/** A place in a package that can be mutated, with the source that it lies in. */
interface Site extends Mutation {
  readonly path: string;
  readonly source: string;
}

function sitesOf(root: string, project: string): readonly Site[] {
  const files = findFiles(root, `${project}/src`, [".ts"]).filter((path) => !path.endsWith("option-table.ts"));
  return files.flatMap((path) => {
    const source = readFileSync(join(root, path), "utf8");
    return mutationsOf(path, source).map((mutation) => ({ ...mutation, path, source }));
  });
}

/** One mutant of a package, in one of its files by the number of their mutations. */
function drawMutant(project: string, sites: readonly Site[], random: () => number): Mutant {
  for (;;) {
    const { source, ...site } = sites[Math.floor(random() * sites.length)] as Site;
    if (parses(site.path, apply(source, site)))
      return { ...site, project, line: source.slice(0, site.start).split("\n").length };
  }
}

/** Draws `count` mutants in turn over some packages, all by the seed. */
function drawMutants(root: string, seed: number, count: number, packageCount: number): readonly Mutant[] {
  const random = createRandom(seed);
  const tested = findPackages(root).filter((folder) => findFiles(root, `${folder}/test`, [".test.ts"]).length > 0);
  const chosen = tested
    .map((folder) => ({ folder, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .slice(0, packageCount)
    .map(({ folder }) => ({ folder, sites: sitesOf(root, folder) }));
  return Array.from({ length: count }, (_, index) => {
    const { folder, sites } = chosen[index % chosen.length] as { folder: string; sites: readonly Site[] };
    return drawMutant(folder, sites, random);
  });
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

/**
 * Reads how a run of tests or of the compiler ended. Only one that ends by itself and names a failure is one that failed:
 * a run that was stopped, or that did not get as far as its tests, says nothing about the mutant.
 */
export function outcomeOf({ status, signal, error, stdout, stderr }: Ending): Outcome {
  if (error !== undefined) return { kind: "unknown", text: error.message };
  if (status === null) return { kind: "unknown", text: `ended by ${signal}` };
  if (status === 0) return null;
  const output = `${stdout}\n${stderr}`;
  const failure = /^ ?FAIL .+/m.exec(output) ?? /^.*\berror TS\d+.*/m.exec(output) ?? /^.*Unhandled .+/m.exec(output);
  if (failure === null) return { kind: "unknown", text: `ended with ${status} and names no failure` };
  return { kind: "failed", text: failure[0].trim() };
}

const patience = { leastMs: 180_000, times: 6, baselineMs: 3_600_000 } as const;

/** Runs a command in the clone. */
function run(clone: string, command: string, args: readonly string[], timeout: number): Outcome {
  const path = `${join(clone, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`;
  const env = { ...process.env, PATH: path, CI: "true", NO_COLOR: "1" };
  return outcomeOf(spawnSync(command, args, { cwd: clone, env, encoding: "utf8", timeout, maxBuffer: 2 ** 28 }));
}

/** Runs each command once on sources that are not mutated, and keeps what it told and how long it took. */
class Baselines {
  readonly #clone: string;
  readonly #known = new Map<string, { readonly outcome: Outcome; readonly ms: number }>();

  constructor(clone: string) {
    this.#clone = clone;
  }

  of(command: string, args: readonly string[]): { readonly outcome: Outcome; readonly ms: number } {
    const name = [command, ...args].join(" ");
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const start = performance.now();
    const outcome = run(this.#clone, command, args, patience.baselineMs);
    const made = { outcome, ms: performance.now() - start };
    this.#known.set(name, made);
    return made;
  }
}

function vitest(projects: readonly string[], args: readonly string[]): readonly string[] {
  return ["run", "--bail=1", "--passWithNoTests", ...projects.flatMap((project) => ["--project", project]), ...args];
}

/** The runs that may report a mutant of a project, the quickest first; `others` are the projects that use it. */
function stepsOf(project: string, others: readonly string[]): readonly (readonly [Tier, string, readonly string[]])[] {
  const own = [project];
  // What comes last is slow: the tests with the tag, then the files.
  const slow = [["--tags-filter=slow"], [".slow.test.ts"]];
  return [
    ["default", "vitest", vitest(own, withoutSlowTests)],
    ["types", "tsc", ["-b", project]],
    ...(others.length === 0 ? [] : [["default", "vitest", vitest(others, withoutSlowTests)] as const]),
    ...[own, others]
      .filter((projects) => projects.length > 0)
      .flatMap((projects) => slow.map((args) => ["whole", "vitest", vitest(projects, args)] as const)),
  ];
}

/** Finds the first tier that reports the mutant, and the first failure there. */
function judge(
  clone: string,
  mutant: Mutant,
  { baselines, isOwn }: { readonly baselines: Baselines; readonly isOwn: boolean },
): { readonly tier: Tier; readonly failure: string } {
  const path = join(clone, mutant.path);
  const source = readFileSync(path, "utf8");
  const others = dependentsOf(clone, mutant.project).filter((folder) => folder !== mutant.project);
  let unknown = isOwn && others.length > 0 ? `the tests of ${others.length} projects that use it did not run` : "";
  for (const [tier, command, args] of stepsOf(mutant.project, isOwn ? [] : others)) {
    const baseline = baselines.of(command, args);
    if (baseline.outcome !== null) {
      unknown ||= `without the mutant: ${baseline.outcome.text}`;
      continue;
    }
    writeFileSync(path, apply(source, mutant));
    const outcome = run(clone, command, args, Math.ceil(Math.max(patience.leastMs, patience.times * baseline.ms)));
    writeFileSync(path, source);
    if (outcome?.kind === "failed") return { tier, failure: outcome.text };
    unknown ||= outcome?.text ?? "";
  }
  return { tier: unknown === "" ? "none" : "unknown", failure: unknown };
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
      // Leaves out the tests of other projects: what only they may report is unknown then.
      own: { type: "boolean", default: false },
      from: { type: "string", default: "0" },
    },
  });
  const clone = makeClone();
  try {
    const mutants = drawMutants(clone, Number(values.seed), Number(values.count), Number(values.packages));
    const counts: Record<Tier, number> = { types: 0, default: 0, whole: 0, none: 0, unknown: 0 };
    const runs = { baselines: new Baselines(clone), isOwn: values.own };
    for (const [index, mutant] of mutants.entries()) {
      if (index < Number(values.from)) continue;
      const { tier, failure } = judge(clone, mutant, runs);
      counts[tier] += 1;
      process.stdout.write(`${index}\t${tier}\t${mutant.path}:${mutant.line}\t${mutant.kind}\t${failure}\n`);
    }
    const quick = counts.types + counts.default;
    const share = ((100 * quick) / Math.max(1, quick + counts.whole)).toFixed(1);
    process.stdout.write(
      `mutants: ${counts.types} by types, ${counts.default} by quick tests, ${counts.whole} by slow tests only, ${counts.none} by none, ${counts.unknown} unknown; the default tier reports ${share} % of what the whole tier reports\n`,
    );
  } finally {
    rmSync(join(clone, ".."), { recursive: true, force: true });
  }
}

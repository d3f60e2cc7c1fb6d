import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { findFiles, repositoryRoot } from "./find-files.ts";

/** What the check found. */
export interface ChangesetsReport {
  readonly changesets: number;
  readonly violations: readonly string[];
}

interface Manifest {
  readonly name?: string;
  readonly private?: boolean;
}

/** The packages that the front matter of a changeset names. */
function namedPackages(text: string): readonly string[] {
  const [, head = ""] = /^---\n([^]*?)\n---\n/.exec(text) ?? [];
  return Array.from(head.matchAll(/^"([^"]+)":/gm), ([, name = ""]) => name);
}

/** Lists the changesets under `root`. */
export function changesetPaths(root: string): readonly string[] {
  return findFiles(root, ".changeset", [".md"]).filter((path) => !path.endsWith("/README.md"));
}

/**
 * Checks that every changeset under `root` names packages that are published, and that `changeset status` and
 * `changeset version` accept them. Both commands run in a copy that is a repository of one commit: the result does not
 * depend on the branches of this clone, and nothing is changed here.
 */
export function checkChangesets(root: string): ChangesetsReport {
  const manifests = findFiles(root, ".", ["package.json"]).filter((path) => !path.includes("/fixtures/"));
  const published = new Set(
    manifests
      .map((path) => JSON.parse(readFileSync(join(root, path), "utf8")) as Manifest)
      .flatMap(({ name, private: isPrivate }) => (name === undefined || isPrivate === true ? [] : [name])),
  );
  const changesets = changesetPaths(root);
  const unpublished = changesets.flatMap((path) =>
    namedPackages(readFileSync(join(root, path), "utf8"))
      .filter((name) => !published.has(name))
      .map((name) => `${path}: ${name} is not published. Name the package that contains it, such as @throughline/cli.`),
  );
  // After a release there is none, and the commands end with 1.
  const refused = changesets.length === 0 ? [] : refusals(root, manifests);
  return { changesets: changesets.length, violations: [...unpublished, ...refused] };
}

/** What the commands print when they do not accept the changesets. */
function refusals(root: string, manifests: readonly string[]): readonly string[] {
  const copy = mkdtempSync(join(tmpdir(), "throughline-changesets-"));
  try {
    for (const path of [...manifests, "pnpm-workspace.yaml", "pnpm-lock.yaml", ".changeset"]) {
      mkdirSync(dirname(join(copy, path)), { recursive: true });
      cpSync(join(root, path), join(copy, path), { recursive: true });
    }
    const author = ["-c", "user.name=check", "-c", "user.email=check@localhost", "-c", "commit.gpgsign=false"];
    for (const args of [
      ["init", "--quiet", "--initial-branch=main"],
      ["add", "."],
      [...author, "commit", "--quiet", "--message=copy"],
    ]) {
      const failure = failureOf(copy, "git", args);
      if (failure !== null) throw new Error(failure);
    }
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    const program = join(root, "node_modules/@changesets/cli/bin.js");
    const failures = ["status", "version"].flatMap((name) => failureOf(copy, process.execPath, [program, name]) ?? []);
    const left = readdirSync(join(copy, ".changeset")).filter((name) => name.endsWith(".md") && name !== "README.md");
    return failures.length > 0 || left.length === 0 ? failures : [`changeset version left ${left.join(", ")}`];
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Null when the program ends with 0. */
function failureOf(folder: string, program: string, args: readonly string[]): string | null {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
  if (error !== undefined) throw error;
  return status === 0 ? null : `${[program, ...args].join(" ")} ended with ${status}:\n${stdout}${stderr}`.trim();
}

if (import.meta.main) {
  const report = checkChangesets(repositoryRoot);
  for (const violation of report.violations) process.stdout.write(`${violation}\n`);
  process.stdout.write(`changesets: ${report.changesets} files, ${report.violations.length} violations\n`);
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}

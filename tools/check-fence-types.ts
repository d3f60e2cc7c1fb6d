import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "./find-files.ts";
import { linkPackages } from "./link-packages.ts";
import type { Fence } from "./markdown.ts";
import { fenceFile } from "./run-fences.ts";

/** A page with examples, and the package whose dependencies they may import. */
export interface TypedPage {
  readonly path: string;
  readonly packageFolder: string;
  readonly fences: readonly Fence[];
}

/** What the compiler found. */
export interface FenceTypesReport {
  readonly fences: number;
  readonly violations: readonly string[];
}

/** Installed packages, and how a user's compiler reads them. */
export interface InstalledTypes {
  readonly folder: string;
  /** The `tsc` of the version. */
  readonly compiler: string;
  readonly compilerOptions: Readonly<Record<string, unknown>>;
}

/**
 * Checks the types of every TypeScript fence in one program: the packages are read once, whatever the number of fences.
 *
 * @param installed checks against what is installed there, instead of the workspace
 */
export async function checkFenceTypes(
  root: string,
  pages: readonly TypedPage[],
  installed?: InstalledTypes,
): Promise<FenceTypesReport> {
  const folder = realpathSync(mkdtempSync(join(installed?.folder ?? tmpdir(), "throughline-fence-types-")));
  try {
    const places = writeFences(root, folder, pages, installed);
    if (places.size === 0) return { fences: 0, violations: [] };
    const output = await runCompiler(
      folder,
      installed?.compiler ?? join(repositoryRoot, "node_modules/typescript/bin/tsc"),
    );
    return { fences: places.size, violations: violationsIn(output, places) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface FencePlace {
  readonly page: string;
  readonly line: number;
}

/** Writes the fences; returns the place in its page for each file. */
function writeFences(
  root: string,
  folder: string,
  pages: readonly TypedPage[],
  installed: InstalledTypes | undefined,
): ReadonlyMap<string, FencePlace> {
  const places = new Map<string, FencePlace>();
  for (const [index, { path, packageFolder, fences }] of pages.entries()) {
    const typed = fences.filter(({ language }) => language === "ts");
    if (typed.length === 0) continue;
    mkdirSync(join(folder, String(index)));
    if (installed === undefined) linkPackages(root, packageFolder, join(folder, String(index)));
    for (const fence of typed) {
      const named = `${index}/${fenceFile(fence) ?? `fence-${fence.line}.ts`}`;
      const file = places.has(named) ? `${index}/fence-${fence.line}.ts` : named;
      writeFileSync(join(folder, file), fence.text);
      places.set(file, { page: path, line: fence.line });
    }
  }
  const config = {
    ...(installed === undefined ? { extends: join(repositoryRoot, "tsconfig.base.json") } : {}),
    compilerOptions: {
      ...installed?.compilerOptions,
      // A page shows what matters, and not what only a library needs.
      noUnusedLocals: false,
      noUnusedParameters: false,
      isolatedDeclarations: false,
      declaration: false,
      ...(installed === undefined ? { incremental: false, tsBuildInfoFile: null } : { noEmit: true }),
      moduleDetection: "force",
      typeRoots: [join(repositoryRoot, "node_modules/@types")],
    },
    include: ["*/*.ts"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  return places;
}

function runCompiler(folder: string, compiler: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, "-p", folder, "--pretty", "false"],
      { cwd: folder, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => resolve(error === null ? stdout : `${stdout}${stderr}` || error.message),
    );
  });
}

function violationsIn(output: string, places: ReadonlyMap<string, FencePlace>): readonly string[] {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const violations: string[] = [];
  const others: string[] = [];
  for (const line of lines) {
    const match = /^(?<file>\d+\/[^(]+)\((?<line>\d+),\d+\): (?<message>.*)$/.exec(line);
    const place = places.get(match?.groups?.["file"] ?? "");
    if (place === undefined) others.push(line);
    else violations.push(`${place.page}:${place.line + Number(match?.groups?.["line"])} ${match?.groups?.["message"]}`);
  }
  // In a workspace what is wrong elsewhere is the business of `tsc -b`, unless the compiler did not run at all. Installed
  // declarations of ours must have no errors either, under whatever options a user has.
  violations.push(...others.filter((line) => line.includes("node_modules/@throughline/")));
  return violations.length > 0 || others.every((line) => /\(\d+,\d+\): error|^ /.test(line))
    ? violations
    : [`the compiler did not run: ${others.slice(0, 3).join(" ")}`];
}

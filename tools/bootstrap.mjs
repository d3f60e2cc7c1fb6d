// The entry point of a fresh clone: plain JavaScript for any Node from 20 on, without dependencies.
// Each command installs the packages first, unless they are installed already:
// `npm start` opens a conversation; `npm run -s throughline -- …` runs any command of the command line;
// `npm test` runs all checks; `npm run test:long` runs the suites that are too long for `npm test`;
// `npm run build` builds what would be published; `npm run docs` writes the API reference to docs/api;
// `npm run setup` installs and does nothing else;
// `npm run reinstall` replaces installed packages that are damaged.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const pnpmVersion = "12.21.0";
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const modules = join(root, "node_modules");
const markerPath = join(modules, ".cache/throughline/install.json");
/** The package manager as arguments of npx: a machine with Node and npm need not have it. */
const pnpm = ["-y", `pnpm@${pnpmVersion}`];

/** Runs a program to its end; gives its exit code, 128 + n for a signal, and what it printed when captured. */
function run(file, args, { capture = false, env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: root,
      env,
      stdio: capture ? ["ignore", "pipe", "pipe"] : "inherit",
      shell: process.platform === "win32",
    });
    let output = "";
    child.stdout?.on("data", (chunk) => (output += chunk));
    child.stderr?.on("data", (chunk) => (output += chunk));
    // The terminal sends an interrupt to both processes; the child decides what it means and this one waits.
    const ignore = () => {};
    const forward = (signal) => child.kill(signal);
    process.on("SIGINT", ignore);
    process.on("SIGTERM", forward);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      process.off("SIGINT", ignore);
      process.off("SIGTERM", forward);
      resolve({ code: code ?? (signal === "SIGINT" ? 130 : 143), output });
    });
  });
}

/** What the installed packages were made from: they are stale when this changes. */
function installHash() {
  const hash = createHash("sha256").update(pnpmVersion);
  for (const name of ["pnpm-lock.yaml", "pnpm-workspace.yaml"]) hash.update(readFileSync(join(root, name)));
  return hash.digest("hex");
}

/** The folders of the workspace, the root among them. */
function workspaceFolders() {
  const listed = readFileSync(join(root, "pnpm-workspace.yaml"), "utf8").matchAll(/^ {2}- (\S+)$/gm);
  const folders = [...listed].flatMap(([, pattern]) => {
    if (!pattern.endsWith("/*")) return [pattern];
    const parent = pattern.slice(0, -2);
    return readdirSync(join(root, parent)).map((name) => join(parent, name));
  });
  return [".", ...folders].filter((folder) => existsSync(join(root, folder, "package.json")));
}

/** The packages that a manifest of the workspace names and that cannot be found from its folder. */
function unresolvedPackages() {
  return workspaceFolders().flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    return Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })
      .filter((name) => !existsSync(join(root, folder, "node_modules", name, "package.json")))
      .map((name) => `${name} of ${folder}`);
  });
}

/** The folders of all packages, also of those that only other packages need. */
function installedFolders() {
  const store = join(modules, ".pnpm");
  return existsSync(store) ? readdirSync(store) : [];
}

/** Whether the last install came to its end, was made from the same lockfile, and is all there still. */
function isInstalled(hash) {
  if (!existsSync(markerPath)) return false;
  const marker = parsed(readFileSync(markerPath, "utf8"));
  if (marker?.hash !== hash || !Array.isArray(marker.folders)) return false;
  const folders = new Set(installedFolders());
  return marker.folders.every((name) => folders.has(name)) && unresolvedPackages().length === 0;
}

/** Null for a text that is not JSON: a marker that was cut off counts as no marker. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Installs all packages unless they are there already; throws with pnpm's own words when that fails. */
async function install() {
  const hash = installHash();
  if (isInstalled(hash)) return;
  process.stderr.write("installing packages ... ");
  const startMs = performance.now();
  // An install that is killed half way must leave no marker.
  rmSync(markerPath, { force: true });
  await runInstall();
  if (unresolvedPackages().length > 0) {
    // pnpm trusts its own notes in node_modules, which can name more than is there.
    rmSync(modules, { recursive: true, force: true });
    await runInstall();
  }
  const unresolved = unresolvedPackages();
  if (unresolved.length > 0)
    throw new Error(`failed\nPackages are missing after the install: ${unresolved.join(", ")}.`);
  mkdirSync(dirname(markerPath), { recursive: true });
  writeFileSync(markerPath, `${JSON.stringify({ hash, folders: installedFolders() })}\n`);
  process.stderr.write(`${((performance.now() - startMs) / 1000).toFixed(1)} s\n`);
}

async function runInstall() {
  // All packages: a --prod install lacks what the bundle of the command line has built in, and a --filter is no faster.
  const args = [...pnpm, "install", "--frozen-lockfile"];
  // CI=true: pnpm must not stop to ask whether it may replace an older node_modules.
  const options = { capture: true, env: { ...process.env, CI: "true" } };
  let { code, output } = await run("npx", args, options);
  const damaged = code === 0 ? null : npxFolder(output);
  if (damaged !== null) {
    // npx never repairs its copy of pnpm when a killed run has left half of one.
    rmSync(damaged, { recursive: true, force: true });
    ({ code, output } = await run("npx", args, options));
  }
  if (code === 0) return;
  throw new Error(
    `failed\n${output}\nnpx ${args.join(" ")} ended with ${code}. Check the connection to the package registry and run the command again.`,
  );
}

/** The folder of the cache of npx that an error message names; null when it names none. */
function npxFolder(output) {
  return /^npm error path (.*[\\/]_npx[\\/][0-9a-f]+)[\\/]/m.exec(output)?.[1] ?? null;
}

async function setup() {
  await install();
  return 0;
}

/** Removes all installed packages and installs them again: pnpm does not notice a single file that is missing or changed. */
async function reinstall() {
  rmSync(modules, { recursive: true, force: true });
  await install();
  return 0;
}

/** The Node that the lockfile pins; on a platform without one, this process's own when it is new enough. */
function pinnedNode() {
  const pinned = join(root, "node_modules/.bin/node");
  if (existsSync(pinned)) return pinned;
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath;
  throw new Error(
    `no Node is pinned for ${process.platform}-${process.arch} and this one is ${process.versions.node}. Install Node 24.`,
  );
}

/** Runs a command of the command line from source. */
async function throughline(args) {
  await install();
  const entry = ["--conditions=@throughline/source", join("apps", "cli", "bin", "throughline.js")];
  const { code } = await run(pinnedNode(), [...entry, ...args]);
  return code;
}

/** One turn with the model that needs no key, in a session of its own: nobody is there to answer, and nothing costs money. */
const greeting = ["chat", "--once", "Hello", "--model", "offline", "--key", "agent:main:cli:direct:first-start"];

/** `npm start` opens a conversation, without a terminal one turn of it; a command after `--` goes to the command line. */
async function start(args) {
  if (args.length > 0) return throughline(args);
  const hasTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const code = await throughline(hasTerminal ? ["chat"] : greeting);
  if (code === 0) process.stderr.write(nextSteps);
  return code;
}

const nextSteps = `
What to do next:
  List what is stored:               npm run -s throughline -- sessions
  See what a session withstands:     npm run -s throughline -- demo
  Keep and search your transcripts:  npm run -s throughline -- sync
  Talk to a model:                   ANTHROPIC_API_KEY=… npm run -s throughline -- chat --model anthropic/claude-sonnet-5
  Write a program:                   docs/getting-started.md
`;

async function test(args) {
  try {
    await install();
    const { code } = await run(pinnedNode(), [join("tools", "run-checks.ts"), ...args]);
    return code;
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    // Whoever reads only the last line must not take a run that never began for a good one.
    process.stdout.write("tests: 0 passed, 1 failed, 0 skipped\n");
    return 1;
  }
}

async function testLong(args) {
  await install();
  const { code } = await run(pinnedNode(), [
    "--conditions=@throughline/source",
    join("tools", "long-suites.ts"),
    ...args,
  ]);
  return code;
}

/** Turbo runs the scripts of the packages with pnpm, which npx puts on its path. */
async function build(args) {
  await install();
  const { code } = await run("npx", [...pnpm, "exec", "turbo", "run", "build", ...args], {
    env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1" },
  });
  return code;
}

/** Writes one page for each entry point of a published package, which is not kept in git. */
async function docs() {
  await install();
  const tool = ["--conditions=@throughline/source", join("tools", "check-api.ts"), "--write"];
  return (await run(pinnedNode(), tool)).code;
}

async function main([command, ...args]) {
  if (Number(process.versions.node.split(".")[0]) < 20) {
    throw new Error(`Node 20 or newer is needed; this is ${process.versions.node}.`);
  }
  if (command === "start") return start(args);
  if (command === "throughline") return throughline(args);
  if (command === "setup") return setup();
  if (command === "reinstall") return reinstall();
  if (command === "test") return test(args);
  if (command === "test:long") return testLong(args);
  if (command === "build") return build(args);
  if (command === "docs") return docs();
  throw new Error(
    "usage: node tools/bootstrap.mjs start|throughline|test|test:long|build|docs|setup|reinstall [arguments]",
  );
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}

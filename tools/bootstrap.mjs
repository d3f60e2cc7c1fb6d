// The way in from a fresh clone: plain JavaScript for any Node from 20 on, no dependencies.
// `npm start` installs what the command line needs and opens it; `npm test` installs everything and runs all checks;
// `npm run test:long` installs everything and runs the suites that are too long for `npm test`;
// `npm run build` installs everything and builds what would be published.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const pnpmVersion = "12.21.0";
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const markerPath = join(root, "node_modules/.cache/throughline/install.json");
/** The package manager as arguments of npx: a machine with Node and npm need not have it. */
const pnpm = ["-y", `pnpm@${pnpmVersion}`];
// No --filter for the command line alone: pnpm 12.21 takes 85 s with one where it takes 13 s without (empty store).
const cliOnly = ["--prod"];

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

function installedScope(hash) {
  if (!existsSync(markerPath)) return null;
  const marker = JSON.parse(readFileSync(markerPath, "utf8"));
  return marker.hash === hash ? marker.scope : null;
}

/** Installs `scope` ("cli" or "all") unless it is there already; throws with pnpm's own words when that fails. */
async function install(scope) {
  const hash = installHash();
  const present = installedScope(hash);
  if (present === "all" || present === scope) return;
  process.stderr.write(`installing ${scope === "cli" ? "what the command line needs" : "packages"} ... `);
  const startMs = performance.now();
  const args = [...pnpm, "install", "--frozen-lockfile", ...(scope === "cli" ? cliOnly : [])];
  // CI=true: pnpm must not stop to ask whether it may replace an older node_modules.
  const { code, output } = await run("npx", args, { capture: true, env: { ...process.env, CI: "true" } });
  if (code !== 0) {
    process.stderr.write(`failed\n${output}\n`);
    throw new Error(`npx ${args.join(" ")} ended with ${code}. Check the connection to the package registry.`);
  }
  mkdirSync(dirname(markerPath), { recursive: true });
  writeFileSync(markerPath, `${JSON.stringify({ hash, scope })}\n`);
  process.stderr.write(`${((performance.now() - startMs) / 1000).toFixed(1)} s\n`);
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

/** `npm start` opens a conversation, without a terminal the demonstration; a command after `--` goes to the command line. */
async function start(args) {
  await install("cli");
  const usual = process.stdin.isTTY === true && process.stdout.isTTY === true ? "chat" : "demo";
  const entry = ["--conditions=@throughline/source", join("apps", "cli", "bin", "throughline.js")];
  const { code } = await run(pinnedNode(), [...entry, ...(args.length > 0 ? args : [usual])]);
  if (code === 0 && args.length === 0) process.stderr.write(nextSteps);
  return code;
}

const nextSteps = `
What to do next:
  npm start -- chat --model anthropic/claude-sonnet-4-5   with ANTHROPIC_API_KEY set: talk to a model
  npm start -- import ~/.claude ~/.codex ~/.gemini        keep and search your own transcripts
  docs/getting-started.md                                 write a program of your own
`;

async function test(args) {
  try {
    await install("all");
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
  await install("all");
  const { code } = await run(pinnedNode(), [
    "--conditions=@throughline/source",
    join("tools", "long-suites.ts"),
    ...args,
  ]);
  return code;
}

/** Turbo runs the scripts of the packages with pnpm, which npx puts on its path. */
async function build(args) {
  await install("all");
  const { code } = await run("npx", [...pnpm, "exec", "turbo", "run", "build", ...args], {
    env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1" },
  });
  return code;
}

async function main([command, ...args]) {
  if (Number(process.versions.node.split(".")[0]) < 20) {
    throw new Error(`Node 20 or newer is needed; this is ${process.versions.node}.`);
  }
  if (command === "start") return start(args);
  if (command === "test") return test(args);
  if (command === "test:long") return testLong(args);
  if (command === "build") return build(args);
  throw new Error("usage: node tools/bootstrap.mjs start|test|test:long|build [arguments]");
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}

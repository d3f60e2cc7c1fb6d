// Turns of the stores against those of other session layers of equal durability, in one run, one after the other in every
// round, each in a process of its own. The packages of the others are installed into a folder of their own, from the npm
// registry, without their install scripts; about 1.2 GB, removed again where no folder is given. A peer that fails makes
// the exit code 1, with --check one that is faster does too. Compared are the medians of the last hundred turns.
// node --conditions=@throughline/source benchmarks/peers.ts [turns] [rounds] [folder of the packages] [--check] [--json FILE]
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { Measured } from "./peers/measure.ts";
import { median } from "./measure.ts";

interface Entrant {
  readonly title: string;
  /** The module, and what it is opened with. */
  readonly name: string;
  readonly ours: boolean;
  /** It keeps fewer turns than others can be waited for. @default all */
  readonly mostTurns?: number;
}

/** What is promised when a turn is done: it is on the disk; it outlives the process; it is in memory. */
const classes: readonly { readonly durability: string; readonly entrants: readonly Entrant[] }[] = [
  {
    durability: "disk",
    entrants: [
      { title: "control: ready lines, one write, fdatasync", name: "raw:disk", ours: false },
      { title: "Throughline JSONL", name: "throughline:jsonl:disk", ours: true },
      { title: "Throughline SQLite", name: "throughline:sqlite:disk", ours: true },
      { title: "DeepSeek Harness JSONL 0.1.0-rc.8", name: "deepseek-harness", ours: false },
      { title: "LangGraph 1.7.3 SqliteSaver 1.0.4", name: "langgraph", ours: false, mostTurns: 150 },
      { title: "ADK 2.0.0 DatabaseSessionService, SQLite", name: "adk:database", ours: false, mostTurns: 150 },
    ],
  },
  {
    durability: "process",
    entrants: [
      { title: "control: ready lines, one write", name: "raw:process", ours: false },
      { title: "Throughline JSONL", name: "throughline:jsonl:process", ours: true },
      { title: "Throughline SQLite", name: "throughline:sqlite:process", ours: true },
      { title: "pi 1.6.0 SessionManager (no lock)", name: "pi", ours: false },
      { title: "Mastra libSQL 1.23.1", name: "mastra", ours: false },
      { title: "OpenClaw 2026.9.6 SQLite", name: "openclaw", ours: false, mostTurns: 300 },
      { title: "AI SDK 7.0.173, a file a chat", name: "ai-sdk", ours: false, mostTurns: 300 },
    ],
  },
  {
    durability: "memory",
    entrants: [
      { title: "Throughline memory", name: "throughline:memory:process", ours: true },
      { title: "OpenAI Agents 0.20.0 MemorySession, get and add", name: "openai-agents", ours: false },
      { title: "ADK 2.0.0 InMemorySessionService", name: "adk:memory", ours: false },
    ],
  },
];

const packages: Readonly<Record<string, string>> = {
  "@earendil-works/pi-coding-agent": "1.6.0",
  "@deepseek-ai/dsh-session-persistence": "0.1.0-rc.8",
  "@deepseek-ai/dsh-session-persistence-jsonl": "0.1.0-rc.8",
  // Apache-2.0, as its SQLite driver's MIT, which is the one of its drivers that brings its binaries along.
  "@google/adk": "2.0.0",
  "@mikro-orm/better-sqlite": "6.6.16",
  "@mastra/core": "1.71.0",
  "@mastra/libsql": "1.23.1",
  "@langchain/core": "^1",
  "@langchain/langgraph": "1.7.3",
  "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
  "@openai/agents-core": "0.20.0",
  ai: "7.0.173",
  openclaw: "2026.9.6",
  zod: "^4",
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false }, json: { type: "string" } },
});
const [turns = 500, rounds = 3] = positionals.slice(0, 2).map(Number);
const ownFolder = positionals[2] === undefined ? mkdtempSync(join(tmpdir(), "throughline-peers-")) : null;
const peersFolder = join(import.meta.dirname, "peers");

/** The modules beside the packages they import. */
function installed(folder: string): string {
  mkdirSync(folder, { recursive: true });
  // The one that brings its binaries along: nothing is compiled.
  const overrides = { "better-sqlite3": "13.2.0" };
  const manifest = { name: "peers", private: true, type: "module", dependencies: packages, overrides };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  if (!Object.keys(packages).every((name) => existsSync(join(folder, "node_modules", name)))) {
    process.stderr.write(`installing the packages of the peers into ${folder} ...\n`);
    const { status } = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (status !== 0) throw new Error("The packages of the peers could not be installed.");
  }
  for (const name of readdirSync(peersFolder)) copyFileSync(join(peersFolder, name), join(folder, name));
  return folder;
}

function measure(entrant: Entrant, folder: string): Measured | string {
  const work = mkdtempSync(join(folder, "work-"));
  const place = entrant.ours || entrant.name.startsWith("raw") ? peersFolder : folder;
  const count = String(Math.min(turns, entrant.mostTurns ?? turns));
  const run = spawnSync(process.execPath, [join(place, "measure.ts"), entrant.name, work, count], {
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "--conditions=@throughline/source --disable-warning=ExperimentalWarning" },
  });
  rmSync(work, { recursive: true, force: true });
  const line = run.stdout.trimEnd().split("\n").at(-1) ?? "";
  return run.status === 0 ? (JSON.parse(line) as Measured) : run.stderr.trim().split("\n").slice(0, 3).join(" | ");
}

/** The medians of one entrant over all rounds, or why it failed. */
interface EntrantResult {
  readonly title: string;
  readonly kind: "ours" | "control" | "peer";
  readonly turns: number;
  readonly failure: string | null;
  readonly firstUs: number;
  readonly lastUs: number;
  readonly reopenMs: number;
  readonly messages: number;
  readonly bytesPerTurn: number;
}

/** The entrants of one class, in the order of the rounds. */
export interface PeerClass {
  readonly durability: string;
  readonly entrants: readonly EntrantResult[];
}

function resultOf({ title, name, ours, mostTurns }: Entrant, seen: readonly (Measured | string)[]): EntrantResult {
  const failure = seen.find((each) => typeof each === "string") ?? null;
  const measured = seen.filter((each) => typeof each !== "string");
  const of = (pick: (each: Measured) => number): number => median(measured.map(pick));
  const count = Math.min(turns, mostTurns ?? turns);
  return {
    title,
    kind: ours ? "ours" : name.startsWith("raw") ? "control" : "peer",
    turns: count,
    failure,
    firstUs: of(({ firstUs }) => firstUs),
    lastUs: of(({ lastUs }) => lastUs),
    reopenMs: of(({ reopenMs }) => reopenMs),
    messages: of(({ messages }) => messages),
    bytesPerTurn: of(({ sizeBytes }) => sizeBytes) / count,
  };
}

/** Every entrant of one class, one after the other in every round. */
function race(folder: string, { durability, entrants }: (typeof classes)[number]): PeerClass {
  const seen = entrants.map((): (Measured | string)[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [place, entrant] of entrants.entries()) seen[place]?.push(measure(entrant, folder));
  return { durability, entrants: entrants.map((entrant, place) => resultOf(entrant, seen[place] ?? [])) };
}

/** Prints one class, a line each entrant, then the comparisons; gives how often a peer was faster, and how many failed. */
function compare({ durability, entrants }: PeerClass): { slower: number; failed: number } {
  process.stdout.write(`\n${durability}: us a turn, first 100 | last 100 | ms to reopen | messages | bytes a turn\n`);
  for (const { title, failure, firstUs, lastUs, reopenMs, messages, bytesPerTurn } of entrants) {
    const figures = [firstUs.toFixed(0), lastUs.toFixed(0), reopenMs.toFixed(1), messages.toFixed(0)];
    const line = [...figures, bytesPerTurn.toFixed(0)].join(" | ");
    process.stdout.write(failure === null ? `${title.padEnd(48)} ${line}\n` : `FAILED: ${title}: ${failure}\n`);
  }
  let slower = 0;
  const measured = entrants.filter(({ failure }) => failure === null);
  for (const own of measured.filter(({ kind }) => kind === "ours"))
    for (const peer of measured.filter(({ kind }) => kind === "peer")) {
      const ratio = peer.lastUs / own.lastUs;
      if (!(ratio > 1)) slower++;
      const verdict = ratio > 1 ? "" : " FASTER PEER";
      process.stdout.write(`${own.title} is ${ratio.toFixed(2)} x as fast as ${peer.title} (above 1)${verdict}\n`);
    }
  return { slower, failed: entrants.length - measured.length };
}

try {
  const folder = installed(positionals[2] ?? ownFolder ?? "");
  let [slower, failed] = [0, 0];
  const raced: PeerClass[] = [];
  for (const each of classes) {
    const results = race(folder, each);
    raced.push(results);
    const result = compare(results);
    slower += result.slower;
    failed += result.failed;
  }
  process.stdout.write(
    `\ncomparisons in which a peer was faster: ${slower} (0); entrants that failed: ${failed} (0)\n`,
  );
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(raced));
  process.exitCode = failed > 0 || (values.check && slower > 0) ? 1 : 0;
} finally {
  if (ownFolder !== null) rmSync(ownFolder, { recursive: true, force: true });
}

// Turns of the stores against those of other session layers of equal durability, in one run, one after the other in every
// round, each in a process of its own. The packages of the others are installed into a folder of their own, from the npm
// registry, without their install scripts; about 1.2 GB.
// node --conditions=@throughline/source benchmarks/peers.ts [turns] [rounds] [folder of the packages]
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Measured } from "./peers/measure.ts";

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
    ],
  },
  {
    durability: "process",
    entrants: [
      { title: "control: ready lines, one write", name: "raw:process", ours: false },
      { title: "Throughline JSONL", name: "throughline:jsonl:process", ours: true },
      { title: "Throughline SQLite", name: "throughline:sqlite:process", ours: true },
      { title: "pi 0.87.1 SessionManager (no lock)", name: "pi", ours: false },
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
    ],
  },
];

const packages: Readonly<Record<string, string>> = {
  "@earendil-works/pi-coding-agent": "0.87.1",
  "@deepseek-ai/dsh-session-persistence": "0.1.0-rc.8",
  "@deepseek-ai/dsh-session-persistence-jsonl": "0.1.0-rc.8",
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

const turns = Number(process.argv[2] ?? 500);
const rounds = Number(process.argv[3] ?? 3);
const peersFolder = join(import.meta.dirname, "peers");

/** The modules beside the packages they import. */
function installed(folder: string): string {
  mkdirSync(folder, { recursive: true });
  // The one that brings its binaries along: nothing is compiled.
  const overrides = { "better-sqlite3": "13.2.0" };
  const manifest = { name: "peers", private: true, type: "module", dependencies: packages, overrides };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  if (!existsSync(join(folder, "node_modules/openclaw"))) {
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

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const folder = installed(process.argv[4] ?? mkdtempSync(join(tmpdir(), "throughline-peers-")));
let slower = 0;
for (const { durability, entrants } of classes) {
  const seen = new Map<string, Measured[]>();
  const failed = new Map<string, string>();
  for (let round = 0; round < rounds; round++)
    for (const entrant of entrants) {
      const measured = measure(entrant, folder);
      if (typeof measured === "string") failed.set(entrant.name, measured);
      else seen.set(entrant.name, [...(seen.get(entrant.name) ?? []), measured]);
    }
  const of = (entrant: Entrant, pick: (measured: Measured) => number): number =>
    median((seen.get(entrant.name) ?? []).map(pick));
  process.stdout.write(`\n${durability}: us a turn, first 100 | last 100 | ms to reopen | messages | bytes a turn\n`);
  for (const entrant of entrants) {
    const failure = failed.get(entrant.name);
    if (failure !== undefined) {
      process.stdout.write(`${entrant.title}: not measured: ${failure}\n`);
      continue;
    }
    const count = Math.min(turns, entrant.mostTurns ?? turns);
    const figures = [
      of(entrant, ({ firstUs }) => firstUs).toFixed(0),
      of(entrant, ({ lastUs }) => lastUs).toFixed(0),
      of(entrant, ({ reopenMs }) => reopenMs).toFixed(1),
      of(entrant, ({ messages }) => messages).toFixed(0),
      (of(entrant, ({ sizeBytes }) => sizeBytes) / count).toFixed(0),
    ];
    process.stdout.write(`${entrant.title.padEnd(48)} ${figures.join(" | ")}\n`);
  }
  for (const own of entrants.filter(({ ours }) => ours))
    for (const peer of entrants.filter(({ ours, name }) => !ours && !name.startsWith("raw") && !failed.has(name))) {
      const ratio = of(peer, ({ lastUs }) => lastUs) / of(own, ({ lastUs }) => lastUs);
      if (ratio < 1) slower++;
      process.stdout.write(`${own.title} is ${ratio.toFixed(2)} x as fast as ${peer.title}\n`);
    }
}
process.stdout.write(`\ncomparisons in which a peer was faster: ${slower}\n`);

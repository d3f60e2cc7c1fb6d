import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { openStore } from "../apps/cli/src/open-store.ts";
import { refsOf } from "../apps/cli/src/resolve-session.ts";
import { bundleCli } from "./bundle-cli.ts";
import { repositoryRoot } from "./find-files.ts";

const scope = { namespace: "", agentId: "main", isAgentGiven: false };
const cliFolder = join(repositoryRoot, "apps/cli");

/** A program start to be timed. */
interface Start {
  readonly name: string;
  readonly args: readonly string[];
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Milliseconds from start to end of a process; throws when it does not end with 0. */
function timeStart({ name, args }: Start, home: string): number {
  const startMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, {
    env: { ...process.env, THROUGHLINE_HOME: home },
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  const elapsedMs = performance.now() - startMs;
  if (status !== 0) throw new Error(`${name} ended with ${String(status)}: ${stderr}`);
  return elapsedMs;
}

/** A store with so many sessions of three records each, below `home`. */
async function fillStore(home: string, count: number): Promise<void> {
  await using store = await openStore(`sqlite:${join(home, "sessions.db")}`, { workingDirectory: home, create: true });
  for (let index = 0; index < count; index++) {
    const [ref] = refsOf(`agent:main:cli:direct:session-${index}`, scope);
    if (ref === undefined) throw new Error("no ref");
    await store.save(
      ref,
      { sessionId: `s-${index}`, label: `Session ${index}` },
      { ifRevision: null, durability: "process" },
    );
    const drafts = ["user", "assistant", "user"].map((role) => ({
      type: "message",
      message: { role, content: `text ${index}` },
    }));
    await store.append(ref, drafts, { durability: "process" });
  }
}

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "15" },
    sessions: { type: "string", default: "1000" },
    // A folder that stays: filling a store of 100,000 sessions takes longer than measuring it.
    home: { type: "string" },
    "fill-only": { type: "boolean", default: false },
  },
});
const directory = values.home ?? mkdtempSync(join(tmpdir(), "throughline-start-"));
mkdirSync(directory, { recursive: true });
try {
  const bundle = join(cliFolder, "dist");
  await bundleCli(cliFolder, bundle);
  const bare = join(directory, "bare.mjs");
  writeFileSync(bare, "");
  if (!existsSync(join(directory, "sessions.db"))) await fillStore(directory, Number(values.sessions));
  if (values["fill-only"]) process.exit(0);
  const bin = join(cliFolder, "bin/throughline.js");
  const source = "--conditions=@throughline/source";
  const starts: readonly Start[] = [
    { name: "bare node", args: [bare] },
    { name: "--help, bundle", args: [bin, "--help"] },
    { name: "sessions, bundle", args: [bin, "sessions"] },
    { name: "sessions --limit all, bundle", args: [bin, "sessions", "--limit", "all"] },
    { name: "--help, sources", args: [source, bin, "--help"] },
    { name: "sessions, sources", args: [source, bin, "sessions"] },
  ];
  for (const start of starts) timeStart(start, directory);
  const times = new Map(starts.map(({ name }) => [name, [] as number[]]));
  // Interleaved, so that whatever else the machine does hits all alike.
  for (let run = 0; run < Number(values.runs); run++) {
    for (const start of starts) times.get(start.name)?.push(timeStart(start, directory));
  }
  const bareMs = median(times.get("bare node") ?? []);
  for (const [name, measured] of times) {
    const ms = median(measured);
    process.stdout.write(
      `${name.padEnd(30)} ${ms.toFixed(1)} ms, ${(ms - bareMs).toFixed(1)} over bare, ratio ${(ms / bareMs).toFixed(2)}\n`,
    );
  }
} finally {
  if (values.home === undefined) rmSync(directory, { recursive: true, force: true });
}

// What sync takes: the first import, a run with nothing new, an idle watch, and the time until a new line is found. Beside
// each stands a control: `sessions --limit 1` of the same store, which opens it and does no more. Processor time and memory
// are those of the processes, so that other work on the machine counts little; the wall clock stands beside them.
// node --conditions=@throughline/source lab/benchmarks/sync-cost.ts [files] [megabytes] [idle seconds]
// The default of 1000 files and 20 MB takes a minute. 10000 40 and 400 1000 are the sizes of the promise.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { installBundle } from "../../tools/install-bundle.ts";

const [files = 1000, megabytes = 20, idleSeconds = 20] = process.argv.slice(2).map(Number);
const root = mkdtempSync(join(tmpdir(), "throughline-sync-cost-"));
try {
  await main();
} finally {
  rmSync(root, { recursive: true });
}

interface Cost {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  /** Holds how late timers ran: one in a thousand by more than this, and the latest. */
  readonly mostMs: number;
  readonly longestMs: number;
  readonly output: string;
}

async function main(): Promise<void> {
  const { bin } = await installBundle(join(root, "installed"));
  writeSessions();
  print("first sync", await runToEnd(bin, ["sync", "--json"]));
  for (let round = 1; round <= 3; round++) {
    print(`control ${round}`, await runToEnd(bin, ["sessions", "--limit", "1", "--json"]));
    print(`nothing new ${round}`, await runToEnd(bin, ["sync", "--json"]));
  }
  await watched(bin);
}

function idOf(at: number): string {
  return `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
}

function pathOf(at: number): string {
  return join(root, ".claude", "projects", `-srv-${Math.floor(at / 50)}`, `${idOf(at)}.jsonl`);
}

function lineOf(session: number, at: number, text: string): string {
  const uuid = `${String(session).padStart(8, "0")}-0000-4000-9000-${String(at).padStart(12, "0")}`;
  const role = at % 2 === 0 ? "user" : "assistant";
  const content = role === "user" ? text : [{ type: "text", text }];
  const fields = { parentUuid: null, isSidechain: false, userType: "external", cwd: "/srv", sessionId: idOf(session) };
  const timestamp = new Date(Date.UTC(2026, 0, 1) + session * 1000 + at).toISOString();
  return `${JSON.stringify({ ...fields, version: "2.0.0", type: role, message: { role, content }, uuid, timestamp })}\n`;
}

/** Most bytes of real transcripts are the results of tools, so every fourth line is ten times as long. */
function writeSessions(): void {
  const bytesOfFile = (megabytes * 1024 * 1024) / files;
  for (let session = 0; session < files; session++) {
    if (session % 50 === 0) mkdirSync(join(pathOf(session), ".."), { recursive: true });
    let text = "";
    for (let at = 0; text.length < bytesOfFile; at++)
      text += lineOf(session, at, `words ${session} ${at} `.repeat(at % 4 === 3 ? 200 : 20));
    writeFileSync(pathOf(session), text);
  }
}

function begin(bin: string, args: readonly string[]): ChildProcess {
  // The process prints its own costs at its end, because the system keeps only the sum of all children.
  const script = `const delay = require("node:perf_hooks").monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    process.on("exit", () => { const { userCPUTime, systemCPUTime } = process.resourceUsage();
      const status = require("node:fs").readFileSync("/proc/self/status", "utf8");
      // The system counts the memory of the process that started this one as its own peak.
      const peakKb = Number(/VmHWM:\\s+(\\d+)/.exec(status)[1]);
      const costs = [(userCPUTime + systemCPUTime) / 1e6, peakKb / 1024, delay.percentile(99.9) / 1e6, delay.max / 1e6];
      require("node:fs").writeSync(2, "\\n#" + JSON.stringify(costs)); });`;
  const meter = join(root, "meter.cjs");
  writeFileSync(meter, script);
  const env = { PATH: process.env["PATH"], HOME: root };
  return spawn(process.execPath, ["--require", meter, bin, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
}

async function runToEnd(bin: string, args: readonly string[]): Promise<Cost> {
  const startedMs = performance.now();
  const child = begin(bin, args);
  let [output, errors] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (output = (output + chunk.toString()).slice(-2000)));
  child.stderr?.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-2000)));
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${String(code)}: ${errors}`);
  const [cpuSeconds = 0, peakMb = 0, mostMs = 0, longestMs = 0] = JSON.parse(
    errors.slice(errors.lastIndexOf("#") + 1),
  ) as number[];
  return { seconds: (performance.now() - startedMs) / 1000, cpuSeconds, peakMb, mostMs, longestMs, output };
}

function print(what: string, { seconds, cpuSeconds, peakMb, mostMs, longestMs, output }: Cost): void {
  const totals = /"totals":(\{[^}]*\})/.exec(output)?.[1] ?? "";
  const costs = `${seconds.toFixed(2)} s, ${cpuSeconds.toFixed(2)} s of processor, ${Math.round(peakMb)} MB at most`;
  const delays = `event loop held ${Math.round(mostMs)} ms (99.9 %), ${Math.round(longestMs)} ms at most`;
  process.stdout.write(`${what}: ${costs}; ${delays} ${totals}\n`);
}

async function watched(bin: string): Promise<void> {
  const child = begin(bin, ["sync", "--watch"]);
  let errors = "";
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  while (!errors.includes("Watching")) await wait(50);
  await wait(2000);
  const before = ticksOf(child);
  await wait(idleSeconds * 1000);
  const busy = (ticksOf(child) - before) / 100 / idleSeconds;
  process.stdout.write(`idle: ${(busy * 100).toFixed(2)} % of a core, ${residentMb(child)} MB resident\n`);
  for (let round = 1; round <= 3; round++) {
    const startedMs = performance.now();
    appendFileSync(pathOf(round), lineOf(round, 1_000_000 + round, `zebra${round}`));
    while (!errors.includes("1 grown")) await wait(20);
    errors = "";
    const stored = performance.now() - startedMs;
    const { output } = await runToEnd(bin, ["search", `zebra${round}`, "--json"]);
    const isFound = output.includes('"kind":"hit"');
    process.stdout.write(`a line ${round}: stored after ${Math.round(stored)} ms, found: ${String(isFound)}\n`);
    await wait(1500);
  }
  child.kill("SIGINT");
  await new Promise((resolve) => child.on("close", resolve));
}

/** Linux counts the processor time of a process in hundredths of a second. */
function ticksOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${String(pid)}/stat`, "utf8").split(" ");
  return Number(fields[13]) + Number(fields[14]);
}

function residentMb({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
}

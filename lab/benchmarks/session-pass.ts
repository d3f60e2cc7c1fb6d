import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { createServer } from "../../apps/server/src/index.ts";
import { Holds } from "../../benchmarks/measure.ts";
import { openSession, sessionRef, type RecordDraft, type SessionStore } from "../../packages/core/src/index.ts";
import { systemRandom } from "../../packages/core/src/node/system-ports.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

// What the page's answers about a whole session cost at 10, 1,000 and 100,000 records: the CPU of the server's thread beside
// a bare read of the same records in the same run, the longest time in which it held the event loop, and the heap that stays.
// node --conditions=@throughline/source lab/benchmarks/session-pass.ts [--store sqlite|jsonl|memory] [--records 10,1000,100000] [--check]

const marks = { cpuMs: 2500, heldMs: 50 } as const;
const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    records: { type: "string", default: "10,1000,100000" },
    check: { type: "boolean", default: false },
  },
});
const sizes = values.records.split(",").map(Number);
const folder = mkdtempSync(join(tmpdir(), "throughline-session-pass-"));
const stores: Readonly<Record<string, () => SessionStore>> = {
  sqlite: () => createSqliteStore({ path: join(folder, "sessions.db") }),
  jsonl: () => createJsonlStore({ root: folder }),
  memory: () => createMemoryStore(),
};
const opened = stores[values.store]?.();
if (opened === undefined) throw new Error(`--store is one of ${Object.keys(stores).join(", ")}.`);
const store: SessionStore = opened;

/** The client has a loop of its own: what it does with an answer is not the server's work. */
const client = new Worker(
  `const { parentPort } = require("node:worker_threads");
   parentPort.on("message", async ({ url, init }) => {
     const response = await fetch(url, init);
     let bytes = 0;
     for await (const chunk of response.body ?? []) bytes += chunk.length;
     parentPort.postMessage({ status: response.status, bytes });
   });`,
  { eval: true },
);

const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" } as const;
const sentence = "The deployment of the service was checked, and its log has no error that was not known before. ";
const perBatch = 500;
const perTurn = 10;

/** A prompt, four calls with their results and an answer. Every fourth call edits a file, and one call in 16 fails. */
function draftAt(index: number): RecordDraft {
  const at = index % perTurn;
  const turn = Math.floor(index / perTurn);
  const usage = { input: 900, output: 100, cacheRead: 4000 + at, cacheWrite: 0 };
  if (at === 0) return message({ role: "user", content: `Change ${turn}: ${sentence}` });
  if (at === perTurn - 1)
    return message({ role: "assistant", content: [{ type: "text", text: sentence.repeat(8) }], ...origin, usage });
  const call = Math.floor((at - 1) / 2);
  const id = `toolu_${turn}_${call}`;
  if (at % 2 === 1)
    return message({ role: "assistant", content: [{ type: "toolCall", id, ...callAt(turn, call) }], ...origin, usage });
  const content = [{ type: "text", text: sentence.repeat(12) }];
  const isError = (turn * 4 + call) % 16 === 0;
  return message({ role: "toolResult", toolCallId: id, toolName: "edit", content, isError });
}

function callAt(turn: number, call: number): { readonly name: string; readonly arguments: unknown } {
  const path = `/src/part-${turn % 40}/file-${(turn * 4 + call) % 400}.ts`;
  if (call !== 3) return { name: "read", arguments: { path } };
  const lines = Array.from({ length: 30 }, (_, line) => `  const value${line} = compute(${turn}, ${line});`);
  const changed = lines.with(turn % 30, "  const other = compute();").with((turn + 7) % 30, "");
  return { name: "edit", arguments: { path, old_string: lines.join("\n"), new_string: changed.join("\n") } };
}

function message(fields: Readonly<Record<string, unknown>>): RecordDraft {
  return { type: "message", message: fields } as unknown as RecordDraft;
}

async function fill(key: string, records: number): Promise<void> {
  const ref = sessionRef({ namespace: "", agentId: "main", key });
  await openSession(store, ref, { random: systemRandom });
  for (let from = 0; from < records; from += perBatch) {
    const length = Math.min(perBatch, records - from);
    await store.append(
      ref,
      Array.from({ length }, (_, at) => draftAt(from + at)),
    );
  }
}

interface Cost {
  readonly cpuMs: number;
  readonly heldMs: number;
  readonly loopMs: number;
  readonly tookMs: number;
  readonly heapMb: number;
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const heap = heapBytes();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const holds = new Holds();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const cpu = process.threadCpuUsage();
  const beganMs = performance.now();
  await work();
  const tookMs = performance.now() - beganMs;
  const { user, system } = process.threadCpuUsage(cpu);
  await new Promise((resolve) => setTimeout(resolve, 20));
  delay.disable();
  holds.end();
  const cpuMs = (user + system) / 1000;
  return { cpuMs, heldMs: holds.longestMs, loopMs: delay.max / 1e6, tookMs, heapMb: (heapBytes() - heap) / 2 ** 20 };
}

/** Without `--expose-gc` the figure holds what was not collected yet. */
function heapBytes(): number {
  (globalThis as { readonly gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}

const many = 100_000_000;
const server = await createServer({
  openStore: () => store,
  port: 0,
  limits: { requestsPerMinute: many, requestBurst: many },
});
const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
const { text: token } = await server.tokens.create(rights, "benchmark");

function ask(path: string): Promise<void> {
  const init = { headers: { authorization: `Bearer ${token}` } };
  return new Promise((resolve, reject) => {
    client.once("message", ({ status }: { readonly status: number }) => {
      if (status === 200) resolve();
      else reject(new Error(`${path}: ${status}`));
    });
    client.postMessage({ url: `${server.url}/api/v1${path}`, init });
  });
}

/** A store fills its search index behind appends, which is none of the reader's work. */
async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 4;) {
    const cpu = process.threadCpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 250));
    const { user, system } = process.threadCpuUsage(cpu);
    quiet = user + system < 10_000 ? quiet + 1 : 0;
  }
}

async function bareRead(key: string): Promise<void> {
  const ref = sessionRef({ namespace: "", agentId: "main", key });
  for await (const { records } of store.read(ref, {})) if (records.length === 0) throw new Error("An empty page");
}

const routes: readonly (readonly [name: string, path: string])[] = [
  ["digest, first", "/digest"],
  ["digest, again", "/digest"],
  ["changed-files", "/changed-files"],
  ["changed-files of one", `/changed-files?path=${encodeURIComponent("/src/part-0/file-3.ts")}`],
  ["usage", "/usage"],
  ["outline", "/outline"],
  ["records, preview", "/records?payload=preview&limit=200"],
];
const tooMuch: string[] = [];
// The first requests of a process load and compile what they use.
await fill("warm", 200);
for (const [, path] of routes) await ask(`/sessions/warm${path}`);
print(["records", "what", "cpu ms", "of a read", "held ms", "loop ms", "took ms", "heap MB"]);
for (const records of sizes) {
  const key = `long-${records}`;
  await fill(key, records);
  await settled();
  await bareRead(key);
  const bare = await costOf(() => bareRead(key));
  show(records, "bare read", bare, bare);
  for (const [name, path] of routes) show(records, name, await costOf(() => ask(`/sessions/${key}${path}`)), bare);
  show(records, "bare read again", await costOf(() => bareRead(key)), bare);
}
await server.close();
await client.terminate();
rmSync(folder, { recursive: true, force: true });
if (values.check && tooMuch.length > 0) {
  process.stdout.write(`Above the marks: ${tooMuch.join(", ")}\n`);
  process.exitCode = 1;
}

function show(records: number, name: string, cost: Cost, bare: Cost): void {
  const { cpuMs, heldMs, loopMs, tookMs, heapMb } = cost;
  const figures = [cpuMs.toFixed(1), (cpuMs / bare.cpuMs).toFixed(2), heldMs.toFixed(1), loopMs.toFixed(1)];
  print([records.toLocaleString("en-US"), name, ...figures, tookMs.toFixed(0), heapMb.toFixed(1)]);
  if (name.startsWith("bare")) return;
  if (cpuMs > marks.cpuMs || heldMs > marks.heldMs) tooMuch.push(`${name} at ${records}`);
}

function print(columns: readonly string[]): void {
  const [first = "", name = "", ...figures] = columns;
  process.stdout.write(
    `${first.padStart(8)}  ${name.padEnd(22)}${figures.map((text) => text.padStart(11)).join("")}\n`,
  );
}

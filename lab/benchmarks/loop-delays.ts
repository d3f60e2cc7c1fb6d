import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, monitorEventLoopDelay, performance, PerformanceObserver } from "node:perf_hooks";
import process from "node:process";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import type { SessionStore } from "../../packages/core/src/index.ts";
import { createServer } from "../../apps/server/src/index.ts";
import { writableFormatNames } from "../../packages/foreign-formats/src/names.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { Holds } from "../../benchmarks/measure.ts";
import { fillSession, longKey, runTurns } from "./long-session.ts";

// How long each route of the server, and a turn in process, hold the event loop on a session of 60,000 records: the most CPU of
// the thread between two turns of the loop, the longest delay of the loop as other programs let it run, the longest pauses of
// the collector (whole and young heap), the time and the CPU of all. An idle control comes first and last.
// node --conditions=@throughline/source lab/benchmarks/loop-delays.ts [--store sqlite|jsonl|memory] [--records 60000] [--only export]

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    records: { type: "string", default: "60000" },
    only: { type: "string", default: "" },
  },
});
const count = Number(values.records);
const folder = mkdtempSync(join(tmpdir(), "throughline-loop-"));
const stores: Readonly<Record<string, () => SessionStore>> = {
  sqlite: () => createSqliteStore({ path: join(folder, "sessions.db") }),
  jsonl: () => createJsonlStore({ root: folder }),
  memory: () => createMemoryStore(),
};
const store = stores[values.store]?.();
if (store === undefined) throw new Error(`--store is one of ${Object.keys(stores).join(", ")}.`);

/** The client has a loop of its own: what it does with an answer is not the server's work. */
const client = new Worker(
  `const { parentPort } = require("node:worker_threads");
   parentPort.on("message", async ({ url, init }) => {
     const response = await fetch(url, init);
     let bytes = 0;
     let head = "";
     for await (const chunk of response.body ?? []) {
       bytes += chunk.length;
       if (head.length < 300) head += Buffer.from(chunk).toString("latin1").slice(0, 300);
     }
     parentPort.postMessage({ status: response.status, bytes, head });
   });`,
  { eval: true },
);

interface Reply {
  readonly status: number;
  readonly bytes: number;
  readonly head: string;
}

let collected: { readonly ms: number; readonly kind: number }[] = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = entry as unknown as { readonly detail: { readonly kind: number } };
    collected.push({ ms: entry.duration, kind: detail.kind });
  }
}).observe({ entryTypes: ["gc"] });

async function measured<Result>(name: string, work: () => Promise<Result>): Promise<Result | null> {
  if (values.only !== "" && !name.includes(values.only)) return null;
  await new Promise((resolve) => setTimeout(resolve, 300));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  collected = [];
  const cpu = process.cpuUsage();
  const beganMs = performance.now();
  delay.enable();
  const holds = new Holds();
  // The monitor measures from its first tick on.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const result = await work();
  const ms = performance.now() - beganMs;
  const { user, system } = process.cpuUsage(cpu);
  // The delay of the last slice shows with the next tick of the monitor, the pauses of the collector with the next turn.
  await new Promise((resolve) => setTimeout(resolve, 30));
  delay.disable();
  holds.end();
  const longest = (kinds: (kind: number) => boolean): string =>
    Math.max(0, ...collected.filter(({ kind }) => kinds(kind)).map((pause) => pause.ms)).toFixed(0);
  const isMajor = (kind: number): boolean => kind === constants.NODE_PERFORMANCE_GC_MAJOR;
  const columns = [
    holds.longestMs.toFixed(0),
    (delay.max / 1e6).toFixed(0),
    `${longest(isMajor)}/${longest((kind) => !isMajor(kind))}`,
    ms.toFixed(0),
    ((user + system) / 1000).toFixed(0),
  ];
  process.stdout.write(`${name.padEnd(34)}${columns.map((text) => text.padStart(10)).join("")}\n`);
  return result;
}

const many = 100_000_000;
const server = await createServer({
  openStore: () => store,
  port: 0,
  limits: { requestsPerMinute: many, requestBurst: many },
});
const scopes = ["read", "write", "delete", "metrics", "admin"] as const;
const { text: token } = await server.tokens.create(
  { namespace: "", agents: "*", scopes, expiresAtMs: null },
  "benchmark",
);

function ask(method: string, path: string, body?: unknown): Promise<Reply> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  return new Promise((resolve) => {
    client.once("message", resolve);
    client.postMessage({ url: `${server.url}/api/v1${path}`, init });
  });
}

async function route(name: string, method: string, path: string, body?: unknown): Promise<Reply | null> {
  const reply = await measured(name, () => ask(method, path, body));
  if (reply !== null && reply.status >= 300) process.stdout.write(`  ${reply.status}: ${reply.head}\n`);
  return reply;
}

const beganMs = performance.now();
await fillSession(store, count);
process.stdout.write(
  `${count} records in ${values.store}, ${((performance.now() - beganMs) / 1000).toFixed(1)} s to fill\n`,
);
process.stdout.write(
  `${"".padEnd(34)}${["held ms", "loop ms", "gc ms", "took ms", "cpu ms"].map((text) => text.padStart(10)).join("")}\n`,
);
const here = `/sessions/${longKey}`;
await measured("idle control", () => new Promise((resolve) => setTimeout(resolve, 2000)));
await ask("GET", "/store");
for (const provider of ["neutral", "anthropic", "openai", "gemini"])
  await route(`context ${provider}`, "GET", `${here}/context?provider=${provider}`);
await route("findings", "GET", `${here}/findings`);
await route("findings again", "GET", `${here}/findings`);
for (const to of ["jsonl", "openclaw", "pi", "claw0", ...writableFormatNames])
  await route(`export ${to}`, "GET", `${here}/export?to=${to}`);
await route("export pi, remarks", "GET", `${here}/export?to=pi&remarks=true`);
await route("window", "GET", `${here}/window`);
await route("outline", "GET", `${here}/outline`);
await route("calls", "GET", `${here}/calls`);
await route("checkpoints", "GET", `${here}/checkpoints`);
await route("records, newest page", "GET", `${here}/records?limit=500&order=descending`);
await route("records of a role", "GET", `${here}/records?role=system&limit=10`);
await route("search", "GET", `/search?q=deployment`);
await route("search, two words", "GET", `/search?q=words%20number`);
await route("sessions", "GET", "/sessions?limit=100");
await route("resolve", "GET", "/resolve?q=long");
await route("search, grouped", "POST", "/search", { anyOf: ["deployment", "words"], group: "session" });
await route("stats", "GET", "/stats");
for (const name of ["usage", "digest", "changed-files", "relations", "resume", "approvals", "branches?record=first"])
  await route(name, "GET", `${here}/${name.replace("first", await oneId())}`);
await route("usage of all", "GET", "/usage");
await route("diagnose", "POST", "/diagnose", { session: longKey });
await route("session", "GET", here);
await route("entry, patch", "PATCH", `${here}/entry`, { label: "Long" });
const opened = await route("turn, open", "POST", `${here}/turns`, { owner: "benchmark" });
const fence = /"fence":(\d+)/.exec(opened?.head ?? "")?.[1];
if (fence !== undefined) await route("turn, close", "POST", `${here}/turns/${fence}/close`, {});
await route("records, append", "POST", `${here}/records`, {
  drafts: [{ type: "message", message: { role: "user", content: "And now?" } }],
});
await route("fork", "POST", `${here}/fork`, { key: "branch", sessionId: "branch-of-long" });
await route("rename", "POST", `/sessions/branch/rename`, { key: "twig" });
await route("checkpoint, dry run", "POST", `${here}/checkpoint`, { dryRun: true });
await route("checkpoint", "POST", `${here}/checkpoint`, {});
await route("compact, dry run", "POST", `${here}/compact`, { dryRun: true, window: 200_000 });
await runTurns(store, measured);
await route("rewind", "POST", `${here}/rewind`, { to: await oneId() });
await route("switch", "POST", `${here}/switch`, { to: await oneId() });
await route("redact", "POST", `${here}/redact`, { ids: [await oneId()], reason: "test" });
await route("compact", "POST", `${here}/compact`, { window: 200_000 });
await route("reset", "POST", `/sessions/twig/reset`, { sessionId: "twig-anew" });
await measured("idle control", () => new Promise((resolve) => setTimeout(resolve, 2000)));

await server.close();
await client.terminate();
rmSync(folder, { recursive: true, force: true });

async function oneId(): Promise<string> {
  const { head } = await ask("GET", `${here}/records?limit=1&after=${Math.floor(count / 8) * 4}`);
  return /"id":"([^"]+)"/.exec(head)?.[1] ?? "";
}

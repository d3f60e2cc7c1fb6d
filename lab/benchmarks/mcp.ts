// What `throughline mcp` costs among many sessions in a SQLite store: its start until a client is served, its memory, and searches by a
// client over the same searches of the store in a process. The bundled command line; all by turns, medians. A session of 50 MB shows
// that no result passes the cap.
// node --conditions=@throughline/source lab/benchmarks/mcp.ts [--sessions 100000] [--runs 15] [--folder DIR] [--check]
// With --folder the filled store stays there for the next run. With --check the exit code is 1 above a target.
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import type { SearchHit, SessionStore } from "../../packages/core/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { installBundle } from "../../tools/install-bundle.ts";
import { entryOfMany, refOfMany } from "../../benchmarks/many-sessions.ts";
import { median } from "../../benchmarks/measure.ts";

/** Milliseconds that a client may wait for its server over a bare node. */
const mostStartMs = 300;
/** Milliseconds that a search by a client may take over the same search in a process. */
const mostExtraMs = 15;
const mostCharacters = 20_000;
const largeKey = "agent:main:cli:direct:large";
const plain = { PATH: process.env["PATH"] ?? "" };

const searches: Readonly<Record<string, string>> = {
  "a word of one session": "session4321x",
  "a word of one session in a hundred": "topic7",
  "a word of every session": "conversation",
  "two words": "conversation topic7",
};

async function fill(path: string, count: number): Promise<void> {
  await using store = createSqliteStore({ path });
  for (let index = 0; index < count; index++) {
    await store.save(refOfMany(index), entryOfMany(index), { ifRevision: null, durability: "process" });
    const text = `the conversation about topic${index % 100} in session${index}x`;
    const drafts = ["user", "assistant"].map((role) => ({ type: "message", message: { role, content: text } }));
    await store.append(refOfMany(index), drafts, { durability: "process" });
  }
  const large = { namespace: "", agentId: "main", key: largeKey };
  await store.save(large, { sessionId: "large" }, { ifRevision: null });
  const draft = { type: "message", message: { role: "user", content: "large 漢字 ".repeat(8000) } };
  for (let each = 0; each < 500; each += 50)
    await store.append(
      large,
      Array.from({ length: 50 }, () => draft),
      { durability: "process" },
    );
  // The first search fills what the index lacks; it is no part of what follows.
  for await (const _ of hitsOf(store, "large")) break;
}

function hitsOf(store: SessionStore, text: string): AsyncIterable<SearchHit> {
  if (store.search === undefined) throw new Error("the store has no index");
  return store.search.search({ text, agentId: "main", namespace: "", state: "active", limit: 11 });
}

/** What of a result is looked at. */
interface Result {
  readonly content?: readonly { readonly text: string }[];
  readonly isError?: boolean;
}

/** A client that writes requests and waits for each answer. */
class Client {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #id = 0;

  constructor(bin: string, path: string, home: string) {
    this.child = spawn(process.execPath, [bin, "mcp", "--home", home, "--store", `sqlite:${path}`], { env: plain });
    this.child.stderr.pipe(process.stderr);
    this.#lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  async request(method: string, params: Readonly<Record<string, unknown>>): Promise<Result> {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++this.#id, method, params })}\n`);
    const { value } = await this.#lines.next();
    const { result } = JSON.parse(String(value)) as { readonly result?: Result };
    if (result === undefined) throw new Error(String(value));
    return result;
  }

  initialize(): Promise<unknown> {
    const clientInfo = { name: "benchmark", version: "1" };
    return this.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  }

  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    const { content, isError } = await this.request("tools/call", { name, arguments: args });
    const text = content?.[0]?.text ?? "";
    if (isError === true) throw new Error(text);
    return text;
  }

  /** Megabytes of memory that the process holds. */
  memoryMB(): number {
    const status = readFileSync(`/proc/${String(this.child.pid)}/status`, "utf8");
    return Number(/VmRSS:\s*(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  }

  async end(): Promise<void> {
    const ended = new Promise((resolve) => this.child.on("close", resolve));
    this.child.stdin.end();
    await ended;
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

async function main(folder: string, count: number, runs: number): Promise<boolean> {
  mkdirSync(folder, { recursive: true });
  const { bin } = await installBundle(join(folder, "bundle"));
  const whole = join(folder, `mcp-${count}`);
  if (!existsSync(whole)) {
    process.stderr.write(`filling a store with ${count} sessions ...\n`);
    rmSync(`${whole}.part`, { recursive: true, force: true });
    mkdirSync(`${whole}.part`);
    await fill(join(`${whole}.part`, "sessions.db"), count);
    renameSync(`${whole}.part`, whole);
  }
  const [path, home, bare] = [join(whole, "sessions.db"), join(folder, "home"), join(folder, "bare.mjs")];
  writeFileSync(bare, "");
  const startMs: number[] = [];
  const bareMs: number[] = [];
  const startMB: number[] = [];
  for (let run = -2; run < runs; run++) {
    const nodeMs = await timed(async () => spawnSync(process.execPath, [bare], { env: plain }));
    const from = performance.now();
    const client = new Client(bin, path, home);
    await client.initialize();
    const tookMs = performance.now() - from;
    if (run >= 0) {
      bareMs.push(nodeMs);
      startMs.push(tookMs);
      startMB.push(client.memoryMB());
    }
    await client.end();
  }
  const overMs = median(startMs) - median(bareMs);
  process.stdout.write(
    `mcp: a client is served ${overMs.toFixed(0)} ms after a bare node would have ended (${median(bareMs).toFixed(0)} ms; ` +
      `at most ${mostStartMs}), with ${median(startMB).toFixed(0)} MB\n`,
  );
  const client = new Client(bin, path, home);
  await client.initialize();
  await using store = createSqliteStore({ path });
  let isMet = overMs <= mostStartMs;
  for (const [name, query] of Object.entries(searches)) {
    const [clientMs, storeMs] = [[] as number[], [] as number[]];
    for (let run = -2; run < runs; run++) {
      const inStoreMs = await timed(async () => Array.fromAsync(hitsOf(store, query)));
      const byClientMs = await timed(async () => client.call("search_sessions", { query }));
      if (run < 0) continue;
      storeMs.push(inStoreMs);
      clientMs.push(byClientMs);
    }
    const extraMs = median(clientMs) - median(storeMs);
    isMet &&= extraMs <= mostExtraMs;
    process.stdout.write(
      `mcp: ${name}, ${count} sessions: ${median(clientMs).toFixed(1)} ms by a client, ` +
        `${median(storeMs).toFixed(1)} ms in a process (at most ${mostExtraMs} more)\n`,
    );
  }
  const listMs = [];
  for (let run = 0; run < runs; run++) listMs.push(await timed(async () => client.call("list_sessions", {})));
  let longest = 0;
  const readMs = [];
  for (const args of [{}, { from: 1 }, { around: 250 }, { from: 250, to: 250 }, { to: 400, maxCharacters: 1_000_000 }])
    readMs.push(
      await timed(async () => {
        longest = Math.max(longest, (await client.call("read_session", { key: largeKey, ...args })).length);
      }),
    );
  isMet &&= longest > 0 && longest <= mostCharacters;
  process.stdout.write(
    `mcp: list_sessions ${median(listMs).toFixed(1)} ms; a session of 50 MB ${median(readMs).toFixed(0)} ms, at most ` +
      `${longest} characters (cap ${mostCharacters}); ${client.memoryMB().toFixed(0)} MB afterwards\n`,
  );
  await client.end();
  return isMet;
}

const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "100000" },
    runs: { type: "string", default: "15" },
    folder: { type: "string" },
    check: { type: "boolean", default: false },
  },
});
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "throughline-mcp-"));
try {
  const isMet = await main(folder, Number(values.sessions), Number(values.runs));
  process.exitCode = values.check && !isMet ? 1 : 0;
} finally {
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

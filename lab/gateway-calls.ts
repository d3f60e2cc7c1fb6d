// Sends calls through the gateway in conversations that nothing names, and prints what a call takes as the store fills. In the
// end requests are given back from the log and compared, and the notes that led to the sessions are pruned. The exit code is 1
// when a request is not given back, a call is missing, or a note is left.
// node --conditions=@throughline/source lab/gateway-calls.ts [--store memory|sqlite|jsonl|postgres] [--calls 100000]
//   [--length 10]: calls of one conversation [--parallel 4] [--samples 200]: so many requests are given back
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { createServer, type Server } from "../apps/server/src/index.ts";
import type { SessionStore } from "../packages/core/src/index.ts";
import { systemClock } from "../packages/core/src/node/system-ports.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import { type PostgresServer, startPostgres } from "../packages/store-postgres/test/postgres-server.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "memory" },
    calls: { type: "string", default: "100000" },
    length: { type: "string", default: "10" },
    parallel: { type: "string", default: "4" },
    samples: { type: "string", default: "200" },
  },
});
const [calls, length, parallel] = [Number(values.calls), Number(values.length), Number(values.parallel)];
const folder = mkdtempSync(join(tmpdir(), "throughline-gateway-calls-"));
const lookups = { namespace: "throughline.gateway" } as const;
const weekMs = 7 * 24 * 3_600_000;
/** Of so many requests one is given back in the end. */
const sampleEvery = Math.max(1, Math.floor(calls / Number(values.samples)));
const sampled: { readonly key: string; readonly callId: string; readonly sha256: string }[] = [];

const postgres = values.store === "postgres" ? await startedPostgres() : null;
const memory = createMemoryStore();

async function startedPostgres(): Promise<PostgresServer> {
  const started = await startPostgres();
  if ("unavailable" in started) throw new Error(started.unavailable);
  return started;
}

/** A store in memory outlives the server, as a database does. */
function openStore(): SessionStore | Promise<SessionStore> {
  switch (values.store) {
    case "memory":
      return new Proxy(memory, {
        get: (target, name): unknown => {
          const value: unknown = name === "close" ? async () => {} : Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    case "sqlite":
      return createSqliteStore({ path: join(folder, "sessions.db") });
    case "jsonl":
      return createJsonlStore({ root: join(folder, "sessions") });
    case "postgres":
      return createPostgresStore({ url: postgres?.url ?? "" });
    default:
      throw new TypeError(`There is no store ${values.store}.`);
  }
}

/** Answers with a text of its own, which leads to the session. */
const provider = createHttpServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const said = createHash("sha256").update(Buffer.concat(chunks)).digest("hex").slice(0, 16);
    const message = {
      id: `msg_${said}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-5",
      content: [{ type: "text", text: `Answer ${said}. ${"So it is. ".repeat(20)}` }],
      stop_reason: "end_turn",
      usage: { input_tokens: 100, output_tokens: 60 },
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message));
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
const address = provider.address();
const baseUrl = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;

async function start(laterMs: number): Promise<Server> {
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + laterMs };
  const gateway = { upstreams: { anthropic: { api: "anthropic" as const, baseUrl } } };
  return createServer({ port: 0, openStore, gateway, ...(laterMs === 0 ? {} : { clock }) });
}

const server = await start(0);
const rights = { namespace: "", agents: "*", scopes: ["read", "gateway:anthropic"], expiresAtMs: null } as const;
const { text: token } = await server.tokens.create(rights, null);
let done = 0;
/** Answers that were looked at for the name of their session. */
let looked = 0;
let times: number[] = [];
let sinceMs = performance.now();
const began = performance.now();

async function converse(name: number): Promise<void> {
  const messages: { readonly role: string; readonly content: unknown }[] = [];
  for (let call = 0; call < length && done < calls; call++) {
    // Half of the conversations begin with the same words.
    const first = name % 2 === 0 ? "Read the file and say what is in it." : `Question ${name}.`;
    messages.push({ role: "user", content: call === 0 ? first : `${name}: and then? ${"Please. ".repeat(20)}` });
    const body = JSON.stringify({ model: "claude-opus-5", max_tokens: 500, metadata: { call: `${name}` }, messages });
    const startedMs = performance.now();
    const answer = await fetch(`${server.url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "throughline-token": token, "anthropic-version": "2023-06-01" },
      body,
    });
    const { content } = (await answer.json()) as { readonly content: unknown };
    times.push(performance.now() - startedMs);
    messages.push({ role: "assistant", content });
    const [key, callId] = [answer.headers.get("throughline-session"), answer.headers.get("throughline-call")];
    if (done % sampleEvery === 0) {
      looked += 1;
      if (key !== null && callId !== null)
        sampled.push({ key, callId, sha256: createHash("sha256").update(body).digest("hex") });
    }
    done += 1;
    if (done % Math.ceil(calls / 10) === 0) report();
  }
}

function report(): void {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(2);
  const perSecond = (times.length / (performance.now() - sinceMs)) * 1000;
  const rss = Math.round(process.memoryUsage().rss / 1024 / 1024);
  process.stdout.write(
    `${values.store}: ${done} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${perSecond.toFixed(0)} a second, ${rss} MB\n`,
  );
  times = [];
  sinceMs = performance.now();
}

let next = 0;
await Promise.all(
  Array.from({ length: parallel }, async () => {
    while (done < calls) await converse(next++);
  }),
);
const seconds = ((performance.now() - began) / 1000).toFixed(0);
await server.close();

const later = await start(weekMs + 24 * 3_600_000);
const store = await openStore();
/** Waits where the server has had too many requests. */
async function ask(url: string): Promise<Response> {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  if (answer.status !== 429) return answer;
  await systemClock.sleep(Number(answer.headers.get("retry-after") ?? 1) * 1000);
  return ask(url);
}

let missing = 0;
for (const { key, callId, sha256 } of sampled) {
  const path = `/api/v1/sessions/${key}/calls/${callId}/request?payload=bytes`;
  const answer = await ask(`${later.url}${path}`);
  const hash = createHash("sha256")
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest("hex");
  if (hash !== sha256) missing += 1;
}
let kept = 0;
let sessions = 0;
for (let cursor: string | null = null, isMore = true; isMore;) {
  const page = await store.list({ namespace: "", limit: 1000, ...(cursor === null ? {} : { cursor }) });
  for (const { ref } of page.sessions) {
    sessions += 1;
    for await (const { records } of store.read(ref, { payload: "head" }))
      kept += records.filter(({ id }) => id.startsWith("x-call-")).length;
  }
  cursor = page.nextCursor;
  isMore = cursor !== null;
}
const pruneMs = performance.now();
let left = -1;
for (let waits = 0; waits < 3600 && left !== 0; waits++) {
  left = (await store.list({ ...lookups, limit: 1000 })).sessions.length;
  if (left > 0) await systemClock.sleep(1000);
}
const pruned = ((performance.now() - pruneMs) / 1000).toFixed(0);
await store.close();
await later.close();
provider.close();
await postgres?.stop();
rmSync(folder, { recursive: true, force: true });
process.stdout.write(
  `${values.store}: ${done} calls in ${seconds} s, ${kept} stored in ${sessions} sessions of ${next} conversations, ` +
    `${sampled.length} of ${looked} answers named their session, ` +
    `${sampled.length - missing} of ${sampled.length} requests given back, notes pruned in ${pruned} s, ${left} left\n`,
);
process.exitCode = missing > 0 || kept !== done || left !== 0 ? 1 : 0;

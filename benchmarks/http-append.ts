import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { serve, type ServerType } from "@hono/node-server";
import { Hono } from "hono";
import { openRaw } from "./sqlite-control.ts";
import { createServer } from "../apps/server/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

// Appends over HTTP, and beside them a bare handler of Hono that writes the same lines to SQLite with the same flush. They take
// turns; medians of rounds, and of the ratios of the rounds.
// node --conditions=@throughline/source benchmarks/http-append.ts [rounds] [--check]

const target = 0.7;
const rounds = Number(process.argv[2] ?? 9);
const perRound = 200;
const folder = mkdtempSync(join(tmpdir(), "throughline-http-append-"));
const text = "x".repeat(500);

async function serveOurs(): Promise<{ readonly send: () => Promise<void>; readonly close: () => Promise<void> }> {
  const server = await createServer({
    openStore: () => createSqliteStore({ path: join(folder, "ours.db") }),
    port: 0,
    limits: { requestsPerMinute: 100_000_000, requestBurst: 100_000_000 },
  });
  const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
  const { text: token } = await server.tokens.create(rights, "benchmark");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const url = `${server.url}/api/v1/sessions/notes`;
  await fetch(url, { method: "PUT", headers, body: "{}" });
  return { send: sender(`${url}/records`, headers, 201), close: () => server.close() };
}

async function serveBare(): Promise<{ readonly send: () => Promise<void>; readonly close: () => Promise<void> }> {
  const database = openRaw(join(folder, "bare.db"));
  database.exec("CREATE TABLE records (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, line TEXT NOT NULL)");
  const insert = database.prepare("INSERT INTO records (id, line) VALUES (?, ?)");
  let count = 0;
  const app = new Hono();
  app.post("/", async (context) => {
    const { drafts } = await context.req.json<{ readonly drafts: readonly object[] }>();
    const items = drafts.map((draft) => {
      count += 1;
      insert.run(`r${count}`, JSON.stringify({ id: `r${count}`, ...draft }));
      return { seq: count, id: `r${count}` };
    });
    return context.json({ items }, 201);
  });
  let http: ServerType | undefined;
  const port = await new Promise<number>((resolve) => {
    http = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, (address) => resolve(address.port));
  });
  const close = async (): Promise<void> => {
    await new Promise((resolve) => {
      http?.close(resolve);
      if (http !== undefined && "closeAllConnections" in http) http.closeAllConnections();
    });
    database.close();
  };
  return { send: sender(`http://127.0.0.1:${port}/`, { "content-type": "application/json" }, 201), close };
}

function sender(url: string, headers: Readonly<Record<string, string>>, expected: number): () => Promise<void> {
  const body = JSON.stringify({ drafts: [{ type: "message", message: { role: "user", content: text } }] });
  return async () => {
    const response = await fetch(url, { method: "POST", headers, body });
    await response.arrayBuffer();
    if (response.status !== expected) throw new Error(`status ${response.status}`);
  };
}

async function timed(send: () => Promise<void>): Promise<number> {
  const beganMs = performance.now();
  for (let index = 0; index < perRound; index++) await send();
  return perRound / ((performance.now() - beganMs) / 1000);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

const [ours, bare] = [await serveOurs(), await serveBare()];
const rates = { ours: [] as number[], bare: [] as number[] };
for (let round = 0; round <= rounds; round++) {
  const pair = { bare: await timed(bare.send), ours: await timed(ours.send) };
  // The first round warms both up.
  if (round === 0) continue;
  rates.bare.push(pair.bare);
  rates.ours.push(pair.ours);
}
// What else runs on the machine changes from round to round: the ratio is that of neighbors.
const ratio = median(rates.ours.map((rate, at) => rate / (rates.bare[at] ?? 1)));
process.stdout.write(
  `append over HTTP: ${median(rates.ours).toFixed(0)} a second, bare Hono handler ${median(rates.bare).toFixed(0)}, ratio ${ratio.toFixed(2)} (target at least ${target})\n`,
);
await ours.close();
await bare.close();
rmSync(folder, { recursive: true, force: true });
if (process.argv.includes("--check") && ratio < target) process.exitCode = 1;

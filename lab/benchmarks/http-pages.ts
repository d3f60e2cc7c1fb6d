import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { openSession, sessionRef } from "../../packages/core/src/index.ts";
import { systemRandom } from "../../packages/core/src/node/system-ports.ts";
import { createServer } from "../../apps/server/src/index.ts";
import { openRaw } from "../../benchmarks/sqlite-control.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

// Pages of 500 records over HTTP, and beside them two bare handlers of node:http: one sends the same bytes from memory, the other
// makes them of the same rows of the same database. They take turns; medians of rounds, and of the ratios of the rounds.
// node --conditions=@throughline/source lab/benchmarks/http-pages.ts [rounds] [--check]

const target = 0.6;
const rounds = Number(process.argv[2] ?? 9);
const perRound = 40;
const folder = mkdtempSync(join(tmpdir(), "throughline-http-pages-"));
const ref = sessionRef({ namespace: "", agentId: "main", key: "notes" });
const store = createSqliteStore({ path: join(folder, "sessions.db") });
await openSession(store, ref, { random: systemRandom });
const text = "x".repeat(500);
for (let batch = 0; batch < 10; batch++)
  await store.append(
    ref,
    Array.from({ length: 100 }, () => ({ type: "message", message: { role: "user", content: text } })),
  );
const many = 100_000_000;
const server = await createServer({
  openStore: () => store,
  port: 0,
  limits: { requestsPerMinute: many, requestBurst: many },
});
const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
const { text: token } = await server.tokens.create(rights, "benchmark");
const headers = { authorization: `Bearer ${token}` };
const url = `${server.url}/api/v1/sessions/notes/records?limit=500&after=200`;
const page = Buffer.from(await (await fetch(url, { headers })).arrayBuffer());

const database = openRaw(join(folder, "sessions.db"));
const rows = database.prepare(
  "SELECT seq, id, parent_id, type, side, ts_ms, stored_at_ms, bytes, crc, text FROM store_records WHERE seq > ? ORDER BY session, seq LIMIT 500",
);
interface Row {
  readonly [column: string]: string | number;
}
function pageOfRows(): string {
  const items = (rows.all(200) as Row[]).map(({ text: line, parent_id, ts_ms, stored_at_ms, side, ...row }) => {
    const { seq, id, type, bytes, crc } = row;
    const times = { side: side === 1, tsMs: ts_ms, storedAtMs: stored_at_ms, bytes, crc };
    return `${JSON.stringify({ kind: "record", seq, id, parentId: parent_id, type, ...times }).slice(0, -1)},"record":${line}}`;
  });
  return `{"kind":"list","items":[${items.join(",")}]${page.subarray(page.lastIndexOf(',"count"')).toString()}`;
}
if (pageOfRows() !== page.toString()) throw new Error("The bare handler sends another page.");

const http = createHttpServer(({ url: path }, response) => {
  const bytes = path === "/rows" ? Buffer.from(pageOfRows()) : page;
  response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length }).end(bytes);
});
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const address = http.address();
const bareUrl = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;

async function pagesPerSecond(from: string): Promise<number> {
  const beganMs = performance.now();
  for (let index = 0; index < perRound; index++) {
    const bytes = await (await fetch(from, { headers })).arrayBuffer();
    if (bytes.byteLength !== page.length) throw new Error(`${bytes.byteLength} bytes`);
  }
  return perRound / ((performance.now() - beganMs) / 1000);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

const rates = { ours: [] as number[], bytes: [] as number[], rows: [] as number[] };
for (let round = 0; round <= rounds; round++) {
  const [bytes, ours, made] = [
    await pagesPerSecond(`${bareUrl}/bytes`),
    await pagesPerSecond(url),
    await pagesPerSecond(`${bareUrl}/rows`),
  ];
  // The first round warms all up.
  if (round === 0) continue;
  rates.bytes.push(bytes);
  rates.ours.push(ours);
  rates.rows.push(made);
}
// What else runs on the machine changes from round to round: the ratio is that of neighbors.
const ratioTo = (others: readonly number[]): number => median(rates.ours.map((rate, at) => rate / (others[at] ?? 1)));
const ratio = ratioTo(rates.bytes);
process.stdout.write(
  `pages of 500 records, ${(page.length / 1024).toFixed(0)} KiB: ${median(rates.ours).toFixed(0)} a second; ` +
    `bare handler with the bytes ${median(rates.bytes).toFixed(0)}, ratio ${ratio.toFixed(2)} (target at least ${target}); ` +
    `with the rows ${median(rates.rows).toFixed(0)}, ratio ${ratioTo(rates.rows).toFixed(2)}\n`,
);
database.close();
http.closeAllConnections();
await new Promise((resolve) => http.close(resolve));
await server.close();
rmSync(folder, { recursive: true, force: true });
if (process.argv.includes("--check") && ratio < target) process.exitCode = 1;

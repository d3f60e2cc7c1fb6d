import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { openSession, sessionRef } from "../packages/core/src/index.ts";
import { systemRandom } from "../packages/core/src/node.ts";
import { createServer } from "../apps/server/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

// Pages of 500 records over HTTP, and beside them a bare handler of node:http that sends the same bytes from memory. They take
// turns; medians of rounds, and their ratio.
// node --conditions=@throughline/source benchmarks/http-pages.ts [rounds] [--check]

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

const http = createHttpServer((_request, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": page.length }).end(page);
});
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const address = http.address();
const bareUrl = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/`;

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

const rates = { ours: [] as number[], bare: [] as number[] };
for (let round = 0; round <= rounds; round++) {
  const pair = { bare: await pagesPerSecond(bareUrl), ours: await pagesPerSecond(url) };
  // The first round warms both up.
  if (round === 0) continue;
  rates.bare.push(pair.bare);
  rates.ours.push(pair.ours);
}
const ratio = median(rates.ours) / median(rates.bare);
process.stdout.write(
  `pages of 500 records, ${(page.length / 1024).toFixed(0)} KiB: ${median(rates.ours).toFixed(0)} a second, bare handler ${median(rates.bare).toFixed(0)}, ratio ${ratio.toFixed(2)} (target at least ${target})\n`,
);
http.closeAllConnections();
await new Promise((resolve) => http.close(resolve));
await server.close();
rmSync(folder, { recursive: true, force: true });
if (process.argv.includes("--check") && ratio < target) process.exitCode = 1;

import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer as createHttpServer, request } from "node:http";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import type { createSessionApi } from "../../packages/http-api/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import type * as Server from "../../apps/server/src/index.ts";
import { repositoryRoot } from "../../tools/find-files.ts";

// Processor time of the server for one append over HTTP to a store in memory: through the server, `nodeHandler` and `fetch`.
// Each way has a process of its own, and they take turns; medians of rounds. --other names a checkout whose server is measured too.
// node --conditions=@throughline/source lab/benchmarks/http-hosts.ts [rounds] [--other FOLDER]

type Listener = Parameters<typeof createHttpServer>[1];

const perRound = 1000;
const limits = { requestsPerMinute: 1e9, requestBurst: 1e9 };
const rights = { namespace: "", agents: "*", scopes: ["read", "write"] } as const;

async function serveIn(way: string): Promise<{ readonly url: string; readonly token: string }> {
  if (way.startsWith("server ")) {
    const path = join(way.slice("server ".length), "apps/server/src/index.ts");
    const { createServer } = (await import(pathToFileURL(path).href)) as typeof Server;
    const server = await createServer({ openStore: () => createMemoryStore(), port: 0, limits });
    const { text } = await server.tokens.create({ ...rights, expiresAtMs: null }, null);
    return { url: server.url, token: text };
  }
  const source = pathToFileURL(join(repositoryRoot, "packages/http-api/src/index.ts")).href;
  const entry = (await import(source)) as { readonly createSessionApi: typeof createSessionApi };
  const api = entry.createSessionApi({ store: createMemoryStore(), limits });
  const caller = { id: "benchmark", ...rights };
  const listeners: Readonly<Record<string, Listener>> = {
    nodeHandler: (incoming, outgoing) => void api.nodeHandler(incoming, outgoing, { caller }),
    fetch: getRequestListener((asked) => api.fetch(asked, { caller })),
  };
  const http = createHttpServer(listeners[way]).listen(0, "127.0.0.1");
  await once(http, "listening");
  return { url: `http://127.0.0.1:${(http.address() as { readonly port: number }).port}`, token: "none" };
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function send(method: string, url: string, token: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const asked = request(url, { method, agent, headers }, (answer) => {
      answer
        .resume()
        .on("end", () => (answer.statusCode === 201 ? resolve() : reject(new Error(`status ${answer.statusCode}`))));
    });
    asked.on("error", reject).end(body);
  });
}

async function measureAll(ways: readonly string[], rounds: number): Promise<void> {
  const children = await Promise.all(
    ways.map(async (way) => {
      const child = fork(import.meta.filename, ["--serve", way]);
      const [{ url, token }] = (await once(child, "message")) as [{ readonly url: string; readonly token: string }];
      await send("PUT", `${url}/api/v1/sessions/notes`, token, "{}");
      return { way, child, url, token, costs: [] as number[] };
    }),
  );
  const body = JSON.stringify({ drafts: [{ type: "message", message: { role: "user", content: "x".repeat(500) } }] });
  for (let round = -1; round < rounds; round++)
    for (const { child, url, token, costs } of round % 2 === 0 ? children : children.toReversed()) {
      for (let index = 0; index < perRound; index++)
        await send("POST", `${url}/api/v1/sessions/notes/records`, token, body);
      child.send("cost");
      const [microseconds] = (await once(child, "message")) as [number];
      // The first round warms up.
      if (round >= 0) costs.push(microseconds / perRound);
    }
  const median = (values: readonly number[]): number =>
    values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;
  const [first] = children;
  for (const { way, costs, child } of children) {
    const ratio = median(costs.map((cost, round) => cost / (first?.costs[round] ?? 1)));
    process.stdout.write(
      `${way}: ${median(costs).toFixed(0)} µs of the processor an append, ${ratio.toFixed(2)} of the first\n`,
    );
    child.kill();
  }
  agent.destroy();
}

const served = process.argv.indexOf("--serve");
if (served === -1) {
  const other = process.argv.indexOf("--other");
  const ways = [`server ${repositoryRoot}`, "nodeHandler", "fetch"];
  if (other !== -1) ways.unshift(`server ${process.argv[other + 1] ?? ""}`);
  await measureAll(ways, Number(process.argv[2] ?? 9) || 9);
} else {
  let before = process.cpuUsage();
  process.on("message", () => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    process.send?.(user + system);
  });
  process.send?.(await serveIn(process.argv[served + 1] ?? ""));
}

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { openSession, sessionRef } from "../../packages/core/src/index.ts";
import { systemRandom } from "../../packages/core/src/node/system-ports.ts";
import { createServer } from "../../apps/server/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

// Event streams on which nothing happens, and beside them a bare handler of node:http that holds as many and pings as
// often. Resident memory and CPU of each server, which runs in a process of its own.
// node --conditions=@throughline/source lab/benchmarks/http-streams.ts [streams] [seconds] [--check]

const [mostTimes, mostCpuPercent] = [1.6, 1];
const streams = Number(process.argv[2] ?? 10_000);
const seconds = Number(process.argv[3] ?? 30);
const sessions = 1000;
const pingEveryMs = 15_000;

interface Serving {
  readonly port: number;
  readonly token: string;
}

async function serveOurs(): Promise<Serving> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-http-streams-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(folder, "sessions.db") });
  for (let at = 0; at < sessions; at++)
    await openSession(store, sessionRef({ namespace: "", agentId: "main", key: `s${at}` }), { random: systemRandom });
  const many = 100_000_000;
  const server = await createServer({
    openStore: () => store,
    port: 0,
    limits: { requestsPerMinute: many, requestBurst: many, streamsPerToken: many, streams: many },
  });
  const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
  const { text: token } = await server.tokens.create(rights, "benchmark");
  return { port: Number(new URL(server.url).port), token };
}

async function serveBare(): Promise<Serving> {
  const open = new Set<ServerResponse>();
  const http = createHttpServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("event: hello\ndata: {}\n\n");
    open.add(response);
    response.on("close", () => open.delete(response));
  });
  setInterval(() => open.forEach((response) => response.write("event: ping\ndata: {}\n\n")), pingEveryMs);
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const address = http.address();
  return { port: typeof address === "object" && address !== null ? address.port : 0, token: "none" };
}

async function openStream({ port, token }: Serving, at: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  const path = `/api/v1/sessions/s${at % sessions}/events`;
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  const [first] = (await once(socket, "data")) as [Buffer];
  if (!first.toString().startsWith("HTTP/1.1 200")) throw new Error(first.toString());
  socket.resume();
  return socket;
}

function residentMb(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Time on a CPU, in seconds: ticks of a hundredth. */
function cpuSeconds(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function measured(role: "ours" | "bare"): Promise<{ readonly mb: number; readonly cpuPercent: number }> {
  const child = fork(import.meta.filename, [role], { execArgv: process.execArgv });
  const [serving] = (await once(child, "message")) as [Serving];
  const sockets: Socket[] = [];
  for (let at = 0; at < streams; at += 100)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(100, streams - at) }, (_, more) => openStream(serving, at + more)),
      )),
    );
  await sleep(5000);
  const before = cpuSeconds(child);
  await sleep(seconds * 1000);
  const cpuPercent = ((cpuSeconds(child) - before) / seconds) * 100;
  const mb = residentMb(child);
  for (const socket of sockets) socket.destroy();
  child.kill();
  await once(child, "exit");
  return { mb, cpuPercent };
}

if (process.argv[2] === "ours" || process.argv[2] === "bare")
  process.send?.(process.argv[2] === "ours" ? await serveOurs() : await serveBare());
else {
  const [bare, ours] = [await measured("bare"), await measured("ours")];
  const times = ours.mb / bare.mb;
  process.stdout.write(
    `${streams} idle streams: ${ours.mb.toFixed(0)} MB and ${ours.cpuPercent.toFixed(1)} % of a core; ` +
      `bare handler ${bare.mb.toFixed(0)} MB and ${bare.cpuPercent.toFixed(1)} %; ` +
      `memory ${times.toFixed(2)} times (target at most ${mostTimes}, and ${mostCpuPercent} % of a core)\n`,
  );
  if (process.argv.includes("--check") && (times > mostTimes || ours.cpuPercent > mostCpuPercent)) process.exitCode = 1;
}

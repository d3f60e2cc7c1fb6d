// What the first turn of the example Worker takes in workerd: seconds of processor and memory of its process before a request, after
// the first turn, and after each of the next ones. The server and the provider run in this process.
// node --conditions=@throughline/source lab/worker-turn.ts FOLDER   (workerd is installed into FOLDER, 130 MB)
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { workerBundle } from "../examples/worker/test/worker-bundle.ts";
import { createServer } from "../apps/server/src/index.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { createProviderSimulator } from "../packages/testing/src/index.ts";
import { build } from "esbuild";
import { freePort } from "../tools/free-port.ts";
import { installPeers } from "./peer-packages.ts";

const version = "1.20261117.1";
const turns = 20;

/** What a process has used since its start. */
interface Used {
  readonly cpuMs: number;
  readonly memoryMb: number;
}

/** Reads what Linux counts for a process. A tick is 10 ms. */
function usedBy(pid: number): Used {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [, kb = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return { cpuMs: 10 * (Number(fields[11]) + Number(fields[12])), memoryMb: Number(kb) / 1024 };
}

async function bundle(path: string): Promise<number> {
  await build({ ...workerBundle, outfile: path, logLevel: "silent" });
  return readFileSync(path).byteLength;
}

function configOf(port: number, bindings: Readonly<Record<string, string>>): string {
  const texts = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = "${text}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker", esModule = embed "bundle.js")],
      compatibilityDate = "2026-11-01",
      bindings = [${texts.join(", ")}],
      globalOutbound = "loopback",
    )),
    (name = "loopback", network = (allow = ["local", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`;
}

/** Asks until the server of the Worker listens. Any path without a token is refused before it does anything. */
async function untilReady(url: string): Promise<void> {
  for (let waited = 0; waited < 600; waited++) {
    const isThere = await fetch(url).then(
      (response) => response.arrayBuffer().then(() => true),
      () => false,
    );
    if (isThere) return;
    await sleep(50);
  }
  throw new Error(`Nothing listens at ${url}.`);
}

async function measure(workerd: string, folder: string): Promise<void> {
  await using provider = createProviderSimulator({ fallback: () => "The harbor opens at six." });
  await provider.start();
  const log = { write: () => undefined };
  const server = await createServer({ openStore: (onEvent) => createMemoryStore({ onEvent }), port: 0, log });
  const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
  const { text: token } = await server.tokens.create(rights, "worker");
  const bytes = await bundle(join(folder, "bundle.js"));
  const port = await freePort();
  const bindings = {
    THROUGHLINE_URL: server.url,
    THROUGHLINE_TOKEN: token,
    ANTHROPIC_API_KEY: "sk-test",
    ANTHROPIC_BASE_URL: provider.url,
    CALLER_TOKEN: "caller",
  };
  writeFileSync(join(folder, "config.capnp"), configOf(port, bindings));
  const child = spawn(workerd, ["serve", "config.capnp"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  try {
    const url = `http://127.0.0.1:${port}`;
    await untilReady(url);
    const used = [usedBy(child.pid ?? 0)];
    for (let turn = 0; turn < turns; turn++) {
      const headers = { authorization: "Bearer caller" };
      const answer = await fetch(`${url}/turns/ada`, { method: "POST", body: `Question ${turn}.`, headers });
      const events = await answer.text();
      if (!events.includes("event: turn.result")) throw new Error(`turn ${turn}: ${answer.status} ${events}`);
      used.push(usedBy(child.pid ?? 0));
    }
    const [ready, first, second] = used as [Used, Used, Used];
    const last = used.at(-1) as Used;
    const print = (line: string): void => void process.stdout.write(`${line}\n`);
    print(`bundle ${(bytes / 1000).toFixed(0)} kB`);
    print(`ready: ${ready.cpuMs} ms of processor since the start, ${ready.memoryMb.toFixed(1)} MB`);
    print(`first turn: ${first.cpuMs - ready.cpuMs} ms, ${first.memoryMb.toFixed(1)} MB`);
    print(`second turn: ${second.cpuMs - first.cpuMs} ms`);
    const each = (last.cpuMs - second.cpuMs) / (turns - 2);
    print(`each of the next ${turns - 2}: ${each.toFixed(1)} ms; ${last.memoryMb.toFixed(1)} MB at the end`);
  } finally {
    child.kill();
    await server.close();
  }
}

const [given] = process.argv.slice(2);
if (given === undefined) throw new Error("usage: worker-turn.ts FOLDER");
const folder = resolve(given);
if (process.platform !== "linux" || process.arch !== "x64") throw new Error("This needs Linux x64.");
if (!installPeers(folder, { workerd: version }, [])) throw new Error("workerd could not be installed.");
await measure(join(folder, "node_modules/@cloudflare/workerd-linux-64/bin/workerd"), folder);

// Nodes of the server on one PostgreSQL under load: killed with -9 in turn, restarted in an orderly way in turn. A node that
// nobody disturbs shows whether memory grows.
// node --conditions=@throughline/source tools/server-soak.ts [--seconds 1800] [--kill-every 20] [--restart-every 60]
//   [--writers 20] [--streams 50] [--sessions 10] [--other MAIN.TS]: one node runs the program of another checkout
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { freePort } from "./free-port.ts";
import { createTokenStore } from "../packages/http-api/src/internal.ts";
import { createHttpClient, type HttpClient } from "../packages/store-http/src/client/http-client.ts";
import { HttpProblem } from "../packages/store-http/src/client/http-problem.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";

export interface SoakOptions {
  readonly seconds: number;
  readonly killEverySeconds: number;
  readonly restartEverySeconds: number;
  readonly writers: number;
  readonly streams: number;
  readonly sessions: number;
  /** The program of one of the nodes. @default that of this checkout */
  readonly other?: string;
}

export interface SoakResult {
  readonly acknowledged: number;
  readonly repeated: number;
  readonly kills: number;
  readonly restarts: number;
  /** Orderly stops that did not end with 0, and nodes that ended by themselves. */
  readonly badStops: number;
  /** Acknowledged appends that the log does not hold at the seq that was answered. */
  readonly lost: number;
  /** Appends that the log holds more than once. */
  readonly twice: number;
  readonly events: number;
  readonly resumed: number;
  /** Events out of order, twice, or left out, and streams that did not reach the end. */
  readonly badEvents: number;
  /** Of the node that nobody disturbs, over the second half. */
  readonly rssMbPerMinute: number;
  readonly rssMb: number;
  /** The same of what its heap holds after collections: RSS also grows where V8 enlarges a heap that is mostly garbage. */
  readonly heapMbPerMinute: number;
  readonly heapMb: number;
}

const ownMain = join(import.meta.dirname, "../apps/cli/bin/throughline.js");

/** One node: always at the same port, whichever process serves it. */
class Node {
  readonly url: string;
  readonly #home = mkdtempSync(join(tmpdir(), "throughline-soak-node-"));
  readonly #port: number;
  readonly #store: string;
  readonly #main: string;
  #child: ChildProcess | null = null;

  constructor(port: number, store: string, main: string) {
    this.#port = port;
    this.#store = store;
    this.#main = main;
    this.url = `http://127.0.0.1:${port}`;
  }

  async start(): Promise<void> {
    const args = ["serve", "--port", String(this.#port), "--store", this.#store, "--json"];
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("THROUGHLINE_"));
    const child = spawn(process.execPath, ["--conditions=@throughline/source", this.#main, ...args], {
      env: {
        ...Object.fromEntries(own),
        THROUGHLINE_HOME: this.#home,
        THROUGHLINE_LOG_LEVEL: "error",
        THROUGHLINE_SERVER_REQUESTS_PER_MINUTE: "100000000",
        THROUGHLINE_SERVER_REQUEST_BURST: "100000000",
        THROUGHLINE_SERVER_STREAMS_PER_TOKEN: "100000",
      },
      stdio: ["ignore", "ignore", "inherit"],
    });
    this.#child = child;
    for (let tries = 0; tries < 600; tries++) {
      const ready = await fetch(`${this.url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (ready) return;
      if (child.exitCode !== null) throw new Error(`a node ended with ${child.exitCode}`);
      await sleep(50);
    }
    throw new Error("a node did not become ready");
  }

  /** Gives the exit code; null after a kill. */
  async stop(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    const child = this.#child;
    if (child === null) return null;
    this.#child = null;
    // One that ended by itself, as when the database takes no connection, closes no second time.
    if (child.exitCode !== null) return child.exitCode;
    const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
    child.kill(signal);
    return ended;
  }

  rssMb(): number {
    const status = readFileSync(`/proc/${this.#child?.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  }

  async heapMb(token: string): Promise<number> {
    const answer = await fetch(`${this.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    return Number(/^nodejs_heap_size_used_bytes (\d+)/m.exec(await answer.text())?.[1]) / 1024 / 1024;
  }

  async remove(): Promise<void> {
    await this.stop("SIGTERM");
    rmSync(this.#home, { recursive: true, force: true });
  }
}

/** What the run has seen so far. */
interface Counts {
  acknowledged: number;
  repeated: number;
  events: number;
  resumed: number;
  badEvents: number;
}

interface Load {
  readonly clients: readonly HttpClient[];
  readonly keys: readonly string[];
  readonly counts: Counts;
  /** Seqs of acknowledged appends, by session and by what was appended. */
  readonly seqs: ReadonlyMap<string, Map<string, number>>;
  isWriting: boolean;
  isFollowing: boolean;
}

const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(Math.random() * items.length)] as Item;

/** Appends one record after the other; what fails in a way that may be repeated is repeated at another node. */
async function write(load: Load, writer: number): Promise<void> {
  for (let at = 0; load.isWriting; at++) {
    const name = `w${writer}-${at}`;
    const key = pick(load.keys);
    for (let tries = 0; ; tries++) {
      try {
        const answer = await pick(load.clients).json<{ readonly items: readonly { readonly seq: number }[] }>({
          method: "POST",
          path: `/sessions/${key}/records`,
          body: { drafts: [{ type: "note", name, text: "x".repeat(300) }] },
          headers: { "idempotency-key": name },
          signal: AbortSignal.timeout(10_000),
        });
        load.seqs.get(key)?.set(name, answer.items[0]?.seq ?? 0);
        load.counts.acknowledged += 1;
        break;
      } catch (error) {
        if (error instanceof HttpProblem && error.problem !== null && !error.problem.retryable && error.status < 500)
          throw error;
        load.counts.repeated += 1;
        await sleep(20 + Math.random() * 80);
        if (tries > 2000) throw error;
      }
    }
    await sleep(5 + Math.random() * 20);
  }
}

/** Follows a session from its beginning, at whichever node answers, and counts what is not the next seq. */
async function follow(load: Load, key: string, position: { seq: number }): Promise<void> {
  for (let lastEventId: string | undefined; load.isFollowing;) {
    const silence = new AbortController();
    const timer = setInterval(() => {
      if (!load.isFollowing) silence.abort();
    }, 200);
    try {
      const request = { path: `/sessions/${key}/events`, query: { after: 0 }, signal: silence.signal };
      const resume = lastEventId === undefined ? {} : { lastEventId };
      for await (const { event, id, data } of pick(load.clients).events({ ...request, ...resume })) {
        if (event === "gone") throw new Error(`a stream was told that its session is gone: ${data}`);
        if (event !== "record") continue;
        const { seq } = JSON.parse(data) as { readonly seq: number };
        if (seq !== position.seq + 1) load.counts.badEvents += 1;
        position.seq = seq;
        lastEventId = id;
        load.counts.events += 1;
      }
    } catch (error) {
      if (error instanceof HttpProblem && error.status < 500 && error.status !== 429) throw error;
    } finally {
      clearInterval(timer);
    }
    load.counts.resumed += 1;
    await sleep(50 + Math.random() * 100);
  }
}

interface Chaos {
  kills: number;
  restarts: number;
  badStops: number;
}

async function disturb(nodes: readonly Node[], options: SoakOptions, untilMs: number, done: Chaos): Promise<void> {
  let turn = 0;
  let nextRestartMs = Date.now() + options.restartEverySeconds * 1000;
  while (Date.now() + options.killEverySeconds * 1000 < untilMs) {
    await sleep(options.killEverySeconds * 1000);
    if (Date.now() >= nextRestartMs) {
      // One after the other: a rolling restart.
      for (const node of nodes) {
        if ((await node.stop("SIGTERM")) !== 0) done.badStops += 1;
        await node.start();
        done.restarts += 1;
      }
      nextRestartMs = Date.now() + options.restartEverySeconds * 1000;
      continue;
    }
    const node = nodes[turn++ % nodes.length] as Node;
    if ((await node.stop("SIGKILL")) === null) done.kills += 1;
    else done.badStops += 1;
    await sleep(500);
    await node.start();
  }
}

type Sample = readonly [ms: number, mb: number];

/** Of each stretch of samples the least: what is used just after a collection. */
function floors(samples: readonly Sample[], stretch: number): readonly Sample[] {
  const starts = Array.from({ length: Math.ceil(samples.length / stretch) }, (_, at) => at * stretch);
  return starts.map((from) => {
    return samples.slice(from, from + stretch).reduce((least, next) => (next[1] < least[1] ? next : least));
  });
}

/** By least squares, over the second half: the first loads code and fills caches. */
function slopePerMinute(samples: readonly Sample[]): number {
  const half = samples.slice(Math.floor(samples.length / 2));
  const meanX = half.reduce((sum, [ms]) => sum + ms, 0) / half.length;
  const meanY = half.reduce((sum, [, mb]) => sum + mb, 0) / half.length;
  const over = half.reduce((sum, [ms, mb]) => sum + (ms - meanX) * (mb - meanY), 0);
  const under = half.reduce((sum, [ms]) => sum + (ms - meanX) ** 2, 0);
  return under === 0 ? 0 : (over / under) * 60_000;
}

/** Runs the load and gives what came of it; why not where there is no PostgreSQL. */
export async function soak(options: SoakOptions): Promise<SoakResult | { readonly unavailable: string }> {
  const postgres = await startPostgres("disk");
  if ("unavailable" in postgres) return postgres;
  const store = createPostgresStore({ url: postgres.url });
  const mains = [options.other ?? ownMain, ownMain, ownMain];
  const nodes: Node[] = [];
  for (const main of mains) nodes.push(new Node(await freePort(), postgres.url, main));
  try {
    const tokens = createTokenStore(store, () => Date.now());
    const rights = { namespace: "", agents: "*", scopes: ["read", "write", "metrics"], expiresAtMs: null } as const;
    const { text: token } = await tokens.create(rights, "soak");
    await Promise.all(nodes.map((node) => node.start()));
    const clients = nodes.map(({ url }) => createHttpClient({ url, token }));
    const keys = Array.from({ length: options.sessions }, (_, at) => `soak-${at}`);
    for (const key of keys) await clients[0]?.json({ method: "PUT", path: `/sessions/${key}`, body: {} });
    const counts: Counts = { acknowledged: 0, repeated: 0, events: 0, resumed: 0, badEvents: 0 };
    const seqs = new Map(keys.map((key) => [key, new Map<string, number>()]));
    const load: Load = { clients, keys, counts, seqs, isWriting: true, isFollowing: true };
    const followed = Array.from({ length: options.streams }, (_, at) => {
      return { key: keys[at % keys.length] as string, position: { seq: 0 } };
    });
    const streams = followed.map(({ key, position }) => follow(load, key, position));
    const writers = Array.from({ length: options.writers }, (_, at) => write(load, at));
    const steady = nodes[2] as Node;
    const samples: Sample[] = [];
    const heapSamples: Sample[] = [];
    const sampling = setInterval(() => {
      samples.push([Date.now(), steady.rssMb()]);
      void steady.heapMb(token).then((mb) => heapSamples.push([Date.now(), mb]));
    }, 1000);
    const chaos: Chaos = { kills: 0, restarts: 0, badStops: 0 };
    const untilMs = Date.now() + options.seconds * 1000;
    await disturb(nodes.slice(0, 2), options, untilMs, chaos);
    await sleep(Math.max(0, untilMs - Date.now()));
    load.isWriting = false;
    await Promise.all(writers);
    clearInterval(sampling);
    let [lost, twice] = [0, 0];
    for (const key of keys) {
      const found = new Map<string, number[]>();
      for await (const { records } of store.read({ namespace: "", agentId: "main", key }))
        for (const { seq, record } of records) {
          const name = String(record["name"]);
          found.set(name, [...(found.get(name) ?? []), seq]);
        }
      for (const [name, seq] of seqs.get(key) ?? []) if (!(found.get(name) ?? []).includes(seq)) lost += 1;
      for (const places of found.values()) if (places.length > 1) twice += 1;
    }
    const lastSeqs = new Map<string, number>();
    for (const key of keys)
      lastSeqs.set(key, (await store.load({ namespace: "", agentId: "main", key }))?.head.lastSeq ?? 0);
    const isBehind = ({ key, position }: (typeof followed)[number]): boolean => position.seq !== lastSeqs.get(key);
    for (let tries = 0; tries < 200 && followed.some(isBehind); tries++) await sleep(100);
    counts.badEvents += followed.filter(isBehind).length;
    load.isFollowing = false;
    await Promise.all(streams);
    const heap = floors(heapSamples, 20);
    return {
      ...counts,
      ...chaos,
      lost,
      twice,
      rssMbPerMinute: slopePerMinute(samples),
      rssMb: samples.at(-1)?.[1] ?? 0,
      heapMbPerMinute: slopePerMinute(heap),
      heapMb: heap.at(-1)?.[1] ?? 0,
    };
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
    await store.close();
    await postgres.stop();
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "1800" },
      "kill-every": { type: "string", default: "20" },
      "restart-every": { type: "string", default: "60" },
      writers: { type: "string", default: "20" },
      streams: { type: "string", default: "50" },
      sessions: { type: "string", default: "10" },
      other: { type: "string" },
    },
  });
  const result = await soak({
    seconds: Number(values.seconds),
    killEverySeconds: Number(values["kill-every"]),
    restartEverySeconds: Number(values["restart-every"]),
    writers: Number(values.writers),
    streams: Number(values.streams),
    sessions: Number(values.sessions),
    ...(values.other === undefined ? {} : { other: values.other }),
  });
  if ("unavailable" in result) process.stdout.write(`skipped: ${result.unavailable}\n`);
  else {
    const { acknowledged, repeated, kills, restarts, badStops, lost, twice, events, resumed, badEvents } = result;
    process.stdout.write(
      `server soak: ${acknowledged} appends acknowledged, ${repeated} repeated, ${kills} kills, ${restarts} restarts (${badStops} bad), ` +
        `${lost} lost, ${twice} twice; ${events} events, ${resumed} resumed, ${badEvents} bad; ` +
        `RSS ${result.rssMb.toFixed(0)} MB, ${result.rssMbPerMinute.toFixed(2)} MB a minute; ` +
        `heap after collections ${result.heapMb.toFixed(1)} MB, ${result.heapMbPerMinute.toFixed(2)} MB a minute\n`,
    );
    if (lost + twice + badEvents + badStops > 0) process.exitCode = 1;
  }
}

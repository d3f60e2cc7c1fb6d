import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, request as httpRequest, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { createServer } from "../apps/server/src/index.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";

// Streams through the gateway, and through a bare proxy of node:http that pipes both ways. They take turns; one call begins
// when the one before it has ended. Upstream, proxies and client share this process, for both alike.
// node --conditions=@throughline/source benchmarks/gateway.ts [rounds] [--check] [--json FILE]

/** What --json writes: the bare proxy and the gateway, in this order. */
export interface GatewayResult {
  readonly firstByteMs: readonly number[];
  readonly firstByteP99Ms: readonly number[];
  readonly endMs: readonly number[];
  readonly eventUs: readonly number[];
  /** Twenty streams at once, until all have ended. */
  readonly togetherMs: readonly number[];
  readonly rounds: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false }, json: { type: "string" } },
});
const rounds = Number(positionals[0] ?? 300);
const targets = { firstByteMs: 1, firstByteP99Ms: 8, perEvent: 1.25, atOnce: 0.8 };
const streamsAtOnce = 20;
const eventCount = 300;

const events = [
  {
    type: "message_start",
    message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage: {} },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ...Array.from({ length: eventCount }, (_, index) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text: `word${index} ` },
  })),
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 300 } },
  { type: "message_stop" },
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);

async function listening(handler: RequestListener): Promise<{ readonly http: Server; readonly port: number }> {
  const http = createHttpServer(handler);
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const address = http.address();
  return { http, port: typeof address === "object" && address !== null ? address.port : 0 };
}

const upstream = await listening((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let next = 0;
    const write = (): void => {
      const event = events[next++];
      if (event === undefined) return void response.end();
      response.write(event);
      setImmediate(write);
    };
    write();
  });
});

const bare = await listening((request, response) => {
  const { method = "GET", url: path = "/", headers } = request;
  const passed = httpRequest({ host: "127.0.0.1", port: upstream.port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  request.pipe(passed);
});

const folder = mkdtempSync(join(tmpdir(), "throughline-gateway-"));
const server = await createServer({
  openStore: () => createMemoryStore(),
  port: 0,
  gateway: {
    upstreams: { anthropic: { api: "anthropic", baseUrl: `http://127.0.0.1:${upstream.port}` } },
    // The journal, as `throughline serve` has it.
    spoolFolder: join(folder, "spool"),
  },
});
const rights = { namespace: "", agents: "*", scopes: ["gateway:anthropic"], expiresAtMs: null } as const;
const { text: token } = await server.tokens.create(rights, "benchmark");

/** A conversation of 200 kB whose end is new with every call. */
const history = Array.from({ length: 100 }, (_, index) => ({
  role: index % 2 === 0 ? "user" : "assistant",
  content: [{ type: "text", text: `${index} ${"x".repeat(1970)}` }],
}));
let count = 0;

interface Taken {
  readonly firstMs: number;
  /** Until the newest event before the last one, which the gateway holds until its journal has the call. */
  readonly eventsMs: number;
  readonly wholeMs: number;
}

async function take(url: string): Promise<Taken> {
  const messages = [...history, { role: "user", content: `Question ${++count}` }];
  const body = JSON.stringify({ model: "m", max_tokens: 1000, stream: true, messages });
  const headers = {
    "content-type": "application/json",
    "throughline-token": token,
    "throughline-session": "benchmark",
  };
  const beganMs = performance.now();
  const answer = await fetch(url, { method: "POST", headers, body });
  let [firstMs, eventsMs] = [0, 0];
  for await (const chunk of answer.body ?? []) {
    const ms = performance.now() - beganMs;
    firstMs ||= ms;
    if (!Buffer.from(chunk).includes("message_stop")) eventsMs = ms;
  }
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  return { firstMs, eventsMs, wholeMs: performance.now() - beganMs };
}

const urls = [`http://127.0.0.1:${bare.port}/v1/messages`, `${server.url}/anthropic/v1/messages`] as const;
for (let round = 0; round < 20; round++) for (const url of urls) await take(url);
const [control, ours]: [Taken[], Taken[]] = [[], []];
for (let round = 0; round < rounds; round++) {
  control.push(await take(urls[0]));
  ours.push(await take(urls[1]));
}

/** So many streams at once, in turns; gives what each turn took. */
const together: [number[], number[]] = [[], []];
for (let round = 0; round < Math.max(5, rounds / streamsAtOnce); round++)
  for (const [index, url] of urls.entries()) {
    const beganMs = performance.now();
    await Promise.all(Array.from({ length: streamsAtOnce }, () => take(url)));
    together[index]?.push(performance.now() - beganMs);
  }

function at(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? 0;
}
const firsts = (taken: readonly Taken[]): readonly number[] => taken.map(({ firstMs }) => firstMs);
const perEvent = (taken: readonly Taken[]): number =>
  at(
    taken.map(({ firstMs, eventsMs }) => (eventsMs - firstMs) / events.length),
    0.5,
  );
const ends = (taken: readonly Taken[]): readonly number[] => taken.map(({ eventsMs, wholeMs }) => wholeMs - eventsMs);
const added = {
  p50: at(firsts(ours), 0.5) - at(firsts(control), 0.5),
  p99: at(firsts(ours), 0.99) - at(firsts(control), 0.99),
};
const ratio = perEvent(ours) / perEvent(control);
const throughput = at(together[0], 0.5) / at(together[1], 0.5);
process.stdout.write(
  [
    `first byte: bare ${at(firsts(control), 0.5).toFixed(2)} ms, gateway ${at(firsts(ours), 0.5).toFixed(2)} ms`,
    `added p50 ${added.p50.toFixed(2)} ms (target ${targets.firstByteMs}), p99 ${added.p99.toFixed(2)} ms (target ${targets.firstByteP99Ms})`,
    `end of the answer: added p50 ${(at(ends(ours), 0.5) - at(ends(control), 0.5)).toFixed(2)} ms`,
    `per event ${ratio.toFixed(2)} of the bare proxy (target ${targets.perEvent})`,
    `${streamsAtOnce} streams at once: ${throughput.toFixed(2)} of the bare proxy's throughput (target ${targets.atOnce})`,
    "",
  ].join("\n"),
);
const result: GatewayResult = {
  firstByteMs: [control, ours].map((taken) => at(firsts(taken), 0.5)),
  firstByteP99Ms: [control, ours].map((taken) => at(firsts(taken), 0.99)),
  endMs: [control, ours].map((taken) => at(ends(taken), 0.5)),
  eventUs: [control, ours].map((taken) => perEvent(taken) * 1000),
  togetherMs: together.map((times) => at(times, 0.5)),
  rounds,
};
if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(result));
await server.close();
rmSync(folder, { recursive: true });
for (const { http } of [bare, upstream]) {
  http.closeAllConnections();
  http.close();
}
const isMissed =
  added.p50 > targets.firstByteMs ||
  added.p99 > targets.firstByteP99Ms ||
  ratio > targets.perEvent ||
  throughput < targets.atOnce;
if (values.check && isMissed) process.exitCode = 1;

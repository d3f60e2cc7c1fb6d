// How long the event loop is held while the indexes of a store are filled, first of words, then of vectors: the longest CPU of the
// thread between two turns of the loop, after an idle control. Then appends of one record, each durable, by turns to a store
// whose vectors are filled behind it and to one without.
// `--each` states the records of a session.
// node --conditions=@throughline/source lab/benchmarks/index-fill.ts sqlite|jsonl|postgres|memory [--records 60000] [--each 500] [--appends 1000]
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { type Embedder, type SessionRef, sessionRef, type SessionStore } from "../../packages/core/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createPostgresStore } from "../../packages/store-postgres/src/index.ts";
import { startPostgres } from "../../packages/store-postgres/test/postgres-server.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { MeaningIndex } from "../../packages/tools/src/internal.ts";
import { Holds } from "../../benchmarks/measure.ts";
import { pairsBesideFiller } from "./beside-filler.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    records: { type: "string", default: "60000" },
    each: { type: "string", default: "500" },
    appends: { type: "string", default: "1000" },
  },
});
const [kind = ""] = positionals;
const count = Number(values.records);
const appends = Number(values.appends);
const perSession = Number(values.each);
const dimensions = 512;
const scope = { namespace: "", agentId: "main" };
const folder = mkdtempSync(join(tmpdir(), "index-fill-"));

let state = 7;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

const words = (number: number): string =>
  Array.from({ length: number }, () => `w${Math.floor(20_000 ** random()).toString(36)}x`).join(" ");

const draft = (index: number): { type: string; message: object } => ({
  type: "message",
  message: { role: index % 2 === 0 ? "user" : "assistant", content: words(6 + Math.floor(random() * 20)) },
});

// Making the vectors must not count as work of the filler.
const vectors = Array.from({ length: 64 }, () => Float32Array.from({ length: dimensions }, () => random() - 0.5));

const embedder: Embedder = {
  id: `lab/random@${dimensions}`,
  dimensions,
  maxBatch: 64,
  maxTokens: 8000,
  embed: async (texts) => {
    // The answer of a server arrives in a later turn of the loop.
    await new Promise((resolve) => setImmediate(resolve));
    return texts.map(() => vectors[Math.floor(random() * vectors.length)] as Float32Array);
  },
};

const kinds: Readonly<Record<string, (name: string, url: string) => SessionStore>> = {
  sqlite: (name) => createSqliteStore({ path: join(folder, `${name}.db`), searchFill: "on-demand" }),
  jsonl: (name) => createJsonlStore({ root: join(folder, name) }),
  memory: () => createMemoryStore() as SessionStore,
  postgres: (name, url) => createPostgresStore({ url, schema: name }),
};

/** Does the work, and says how long it held the loop at most. */
async function held(name: string, work: AsyncIterable<unknown>): Promise<void> {
  const holds = new Holds();
  const startedMs = performance.now();
  for await (const _step of work);
  const seconds = (performance.now() - startedMs) / 1000;
  // The last hold ends with the turn of the loop after the work.
  await new Promise((resolve) => setTimeout(resolve, 5));
  holds.end();
  process.stdout.write(
    `${kind}, ${count} records, ${perSession} a session, ${name}: longest hold ${holds.longestMs.toFixed(1)} ms, ${seconds.toFixed(0)} s, load ${loadavg()[0]?.toFixed(1) ?? "?"}\n`,
  );
}

async function* idle(): AsyncGenerator<number> {
  for (let round = 0; round < 40; round++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    yield round;
  }
}

const refOf = (index: number): SessionRef => sessionRef({ key: `agent:main:s${index}` });

function indexOf(store: SessionStore): MeaningIndex {
  const { vectors: facet } = store;
  if (facet === undefined) throw new Error(`${kind} keeps no vectors`);
  return new MeaningIndex({ store, vectors: facet, scope, embedder, budget: { take: () => true } });
}

async function fill(open: (name: string) => SessionStore): Promise<void> {
  await using store = open("filled");
  const durability = store.capabilities.durabilities.includes("process") ? "process" : "none";
  for (let session = 0; session * perSession < count; session++) {
    await store.save(refOf(session), { sessionId: `s${session}` }, { ifRevision: null });
    await store.append(
      refOf(session),
      Array.from({ length: perSession }, (_, at) => draft(at)),
      { durability },
    );
  }
  await held("idle", idle());
  if (store.search?.fill !== undefined) await held("index of words", store.search.fill({}));
  const meaning = indexOf(store);
  await held("vectors", meaning.fill());
  await meaning.close();
}

async function append(open: (name: string) => SessionStore): Promise<void> {
  const work = async (store: SessionStore, round: number): Promise<void> => {
    await store.append(refOf(0), [draft(round)]);
  };
  const paired = { open, indexOf, ref: refOf(0), rounds: appends, pauseEvery: 100, work };
  const { alone, beside, difference } = await pairsBesideFiller(paired);
  process.stdout.write(
    `${kind}, an append of one record: ${alone} ms alone, ${beside} ms beside the filler, median difference ${difference} ms over ${appends} pairs, load ${loadavg()[0]?.toFixed(1) ?? "?"}\n`,
  );
}

const started = kind === "postgres" ? await startPostgres() : null;
try {
  const create = kinds[kind];
  if (create === undefined) throw new Error(`Usage: index-fill.ts ${Object.keys(kinds).join("|")}`);
  if (started !== null && "unavailable" in started) throw new Error(started.unavailable);
  const open = (name: string): SessionStore => create(name, started?.url ?? "");
  if (count > 0) await fill(open);
  if (appends > 0) await append(open);
} finally {
  if (started !== null && "stop" in started) await started.stop();
  rmSync(folder, { recursive: true, force: true });
}

// What vectors cost a SQLite store: the nearest of 10,000 and 200,000 of 512 numbers in ms and MB, with the longest hold of the
// event loop, counted as CPU of the thread between two turns, beside an idle control; and turns with and without a filler
// beside them, by turns.
// node --expose-gc --conditions=@throughline/source lab/benchmarks/vectors.ts [--counts 10000,200000] [--turns 1000]
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { Embedder, SessionRef, SessionStore, VectorsFacet } from "../../packages/core/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { MeaningIndex } from "../../packages/tools/src/internal.ts";
import { Holds, median } from "../../benchmarks/measure.ts";
import { pairsBesideFiller } from "./beside-filler.ts";

const { values } = parseArgs({
  options: { counts: { type: "string", default: "10000,200000" }, turns: { type: "string", default: "1000" } },
});
const dimensions = 512;
const model = `lab/random@${dimensions}`;
const scope = { namespace: "", agentId: "main" };
const perSession = 500;
const folder = mkdtempSync(join(tmpdir(), "vectors-"));

let state = 7;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 31 - 1;
}
const randomVector = (): Float32Array => Float32Array.from({ length: dimensions }, random);

function refOf(index: number): SessionRef {
  return { ...scope, key: `agent:main:s${index}` };
}

function facetOf({ vectors }: SessionStore): VectorsFacet {
  if (vectors === undefined) throw new Error("the store keeps no vectors");
  return vectors;
}

const drafts = (count: number): readonly { type: string; message: { role: string; content: string } }[] =>
  Array.from({ length: count }, (_, index) => ({
    type: "message",
    message: {
      role: index % 2 === 0 ? "user" : "assistant",
      content: `text ${index} of a conversation about a harbor`,
    },
  }));

async function fill(store: SessionStore, count: number): Promise<void> {
  for (let session = 0; session * perSession < count; session++) {
    const ref = refOf(session);
    await store.save(ref, { sessionId: `s${session}` }, { ifRevision: null });
    await store.append(ref, drafts(perSession), { durability: "process" });
    const { ranges } = await facetOf(store).pending(scope, { model, limit: 1 });
    const [range] = ranges;
    if (range === undefined) throw new Error("nothing is pending");
    const vectors = Array.from({ length: perSession }, (_, index) => ({
      firstSeq: index + 1,
      lastSeq: index + 1,
      part: 0,
      vector: randomVector(),
    }));
    const { mark, toSeq } = range;
    await facetOf(store).put(ref, { model, mark, fromSeq: 1, toSeq, resumeSeq: toSeq, vectors });
  }
}

async function measured(work: () => Promise<unknown>): Promise<readonly [ms: number, heldMs: number]> {
  const holds = new Holds();
  const startedMs = performance.now();
  await work();
  const ms = performance.now() - startedMs;
  // The last hold ends with the turn of the loop after the work.
  await new Promise((resolve) => setTimeout(resolve, 5));
  holds.end();
  return [ms, holds.longestMs];
}

async function nearestOf(count: number): Promise<void> {
  const path = join(folder, `${count}.db`);
  const filling = createSqliteStore({ path, searchFill: "on-demand" });
  await fill(filling, count);
  await filling.close();
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  await store.load(refOf(0));
  globalThis.gc?.();
  const beforeBytes = process.memoryUsage().rss;
  const nearest = (): Promise<unknown> =>
    facetOf(store).nearest({ ...scope, model, vector: randomVector(), state: "active" });
  const first = await measured(nearest);
  globalThis.gc?.();
  const memory = (process.memoryUsage().rss - beforeBytes) / 2 ** 20;
  const next: (readonly [number, number])[] = [];
  const idle: number[] = [];
  for (let round = 0; round < 20; round++) {
    idle.push((await measured(() => new Promise((resolve) => setTimeout(resolve, 20))))[1]);
    next.push(await measured(nearest));
  }
  const cpuBefore = process.cpuUsage();
  for (let round = 0; round < 20; round++) await facetOf(store).nearest({ ...scope, model, vector: randomVector() });
  const { user, system } = process.cpuUsage(cpuBefore);
  process.stdout.write(
    `${count} vectors: first ${first[0].toFixed(0)} ms (hold ${first[1].toFixed(1)} ms), then ${median(next.map(([ms]) => ms)).toFixed(1)} ms (hold ${median(next.map(([, held]) => held)).toFixed(1)} ms, longest ${Math.max(...next.map(([, held]) => held)).toFixed(1)}, idle ${Math.max(...idle).toFixed(1)}), load ${loadavg()[0]?.toFixed(1) ?? "?"}, CPU ${((user + system) / 20_000).toFixed(1)} ms, ${memory.toFixed(0)} MB more, file ${(statSync(path).size / 2 ** 20).toFixed(0)} MB\n`,
  );
}

const embedder: Embedder = {
  id: model,
  dimensions,
  maxBatch: 64,
  maxTokens: 8000,
  embed: async (texts) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return texts.map(randomVector);
  },
};

/** Runs both appends of a turn: the question opens it, and the reply closes it. */
async function turn(store: SessionStore, number: number): Promise<void> {
  const [asked, answered] = drafts(2);
  if (asked === undefined || answered === undefined) return;
  const open = { turnId: `t${number}`, owner: "lab", leaseUntilMs: Date.now() + 60_000, fence: number };
  await store.append(refOf(0), [asked], { turn: { action: "open", ...open } });
  await store.append(refOf(0), [answered], { turn: { action: "close", fence: number } });
}

async function turns(count: number): Promise<void> {
  const { alone, beside, difference } = await pairsBesideFiller({
    open: (name) => createSqliteStore({ path: join(folder, `${name}.db`) }),
    indexOf: (store) =>
      new MeaningIndex({ store, vectors: facetOf(store), scope, embedder, budget: { take: () => true } }),
    ref: refOf(0),
    rounds: count,
    pauseEvery: 50,
    work: (store, round) => turn(store, round + 1),
  });
  process.stdout.write(
    `a turn of two durable appends: ${alone} ms without, ${beside} ms with the filler, median difference ${difference} ms over ${count} pairs\n`,
  );
}

try {
  for (const count of values.counts.split(",").filter((text) => text !== "")) await nearestOf(Number(count));
  if (Number(values.turns) > 0) await turns(Number(values.turns));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

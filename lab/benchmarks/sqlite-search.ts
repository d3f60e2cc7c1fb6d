// Search over many records: what filling the index costs, how long a search takes, and what a turn costs beside it.
// node --conditions=@throughline/source lab/benchmarks/sqlite-search.ts [records]
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import type { SessionStore } from "../../packages/core/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

const [recordCount = 500_000] = process.argv.slice(2).map(Number);
const sessionCount = 500;
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
const path = join(folder, "store.db");

/** Words as they are spread in text: few that are everywhere, many that are rare. */
let state = 1;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

function text(words: number): string {
  let made = "";
  for (let each = 0; each < words; each++) made += `w${Math.floor(30_000 ** random())} `;
  return made;
}

function refOf(index: number): { namespace: string; agentId: string; key: string } {
  return { namespace: "", agentId: "main", key: `agent:main:s${index}` };
}

function drafts(): { type: string; message: object }[] {
  return [40, 60, 200, 100].map((words, index) => ({
    type: "message",
    message: { role: index % 2 === 0 ? "user" : "assistant", content: text(words) },
  }));
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const startedNs = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - startedNs) / 1e6;
}

function say(name: string, value: string): void {
  process.stdout.write(`${name.padEnd(52)} ${value}\n`);
}

async function fill(store: SessionStore): Promise<void> {
  for (let index = 0; index < sessionCount; index++)
    await store.save(refOf(index), { sessionId: `s${index}` }, { ifRevision: null });
  for (let at = 0; at < recordCount; at += 400) {
    const batch = Array.from({ length: 100 }, drafts).flat();
    await store.append(refOf((at / 400) % sessionCount), batch, { durability: "process" });
  }
}

async function turns(store: SessionStore, count: number, session: number): Promise<number> {
  const made = Array.from({ length: count }, drafts);
  return (
    (await milliseconds(async () => {
      for (const each of made) await store.append(refOf(session), each);
    })) / count
  );
}

const writer = createSqliteStore({ path, searchFill: "on-demand" });
const fillMs = await milliseconds(() => fill(writer));
say("appending, without the index, us a record", ((fillMs * 1000) / recordCount).toFixed(1));
await writer.close();
const bare = statSync(path).size;

/** Every hit of a query, counted. */
async function hitsOf(asked: SessionStore, query: string): Promise<number> {
  let hits = 0;
  for await (const _hit of asked.search?.search({ text: query }) ?? []) hits++;
  return hits;
}

const indexer = createSqliteStore({ path, searchFill: "on-demand" });
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const indexMs = await milliseconds(() => hitsOf(indexer, "nosuchword"));
delay.disable();
say("filling the index, us a record", ((indexMs * 1000) / recordCount).toFixed(1));
say("filling the index, longest stall of the loop, ms", (delay.max / 1e6).toFixed(1));
// Closing writes the log into the file, whose size then tells.
await indexer.close();
const store = createSqliteStore({ path, searchFill: "on-demand" });
say("index / file without it", ((statSync(path).size - bare) / bare).toFixed(2));
for (const query of ["w29000", "w29000 w150", "w150", "w7", "w7 w8", '"w1 w2"', "w2900*", "w1*", "w1* w29000"]) {
  const times: number[] = [];
  let hits = 0;
  for (let round = 0; round < 7; round++) {
    times.push(
      await milliseconds(async () => {
        hits = await hitsOf(store, query);
      }),
    );
  }
  times.sort((one, other) => one - other);
  say(
    `search ${query}, ${hits} hits, ms min / median / max`,
    [times[0], times[3], times[6]].map((ms) => ms?.toFixed(1)).join(" / "),
  );
}
const filling = createSqliteStore({ path });
const ratios: number[] = [];
const sums = { without: [0, 0], filled: [0, 0] };
const turnsEach = 40;

/** Wall time of the turns alone; the CPU of everything until the index has them too. */
async function noteTurns(of: SessionStore, session: number, sum: number[], isFilled: boolean): Promise<number> {
  const cpu = process.cpuUsage();
  const mean = await turns(of, turnsEach, session);
  while (isFilled && (await of.search?.lag()) !== 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const { user, system } = process.cpuUsage(cpu);
  sum[0] = (sum[0] ?? 0) + mean * 1000;
  sum[1] = (sum[1] ?? 0) + (user + system) / turnsEach;
  return mean;
}

const rounds = 9;
for (let round = 0; round < rounds; round++) {
  // What the store without an index leaves is not to be counted as work of the other.
  await hitsOf(store, "nosuchword");
  const without = await noteTurns(store, 1, sums.without, false);
  await hitsOf(store, "nosuchword");
  ratios.push((await noteTurns(filling, 2, sums.filled, true)) / without);
}
for (const [name, sum] of Object.entries(sums)) {
  const [wall, cpu] = sum.map((each) => (each / rounds).toFixed(0));
  say(`turns on ${recordCount} records, ${name}, us wall / CPU of a turn`, `${wall} / ${cpu}`);
}
ratios.sort((one, other) => one - other);
say(
  "turns with the index filled behind / without",
  ratios
    .filter((_, index) => [0, 4, 8].includes(index))
    .map((each) => each.toFixed(2))
    .join(" / "),
);
await filling.close();
await store.close();
rmSync(folder, { recursive: true });

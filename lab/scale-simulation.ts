// Checks the arithmetic of docs/scale.md: plays turns against servers and compares what comes out with what was computed.
// With --table, prints the page's table of loads from what was measured.
// node lab/scale-simulation.ts [--turns-per-minute N] [--shards N] [--turns-per-second N] [--sessions N] [--table]
import process from "node:process";
import { parseArgs } from "node:util";

/** A load, and what there is to bear it. */
export interface ScalePlan {
  readonly turnsPerMinute: number;
  readonly sessions: number;
  /** Primaries, each with its part of the sessions by hash. */
  readonly shards: number;
  /** What one primary takes, measured. */
  readonly turnsPerSecond: number;
  /** Appends of one turn: the user's record with the turn mark, what came of it, the end. */
  readonly appendsPerTurn: number;
}

export interface ScaleFigures {
  /** Of the busiest primary, 1 being all it can. */
  readonly utilisation: number;
  /** Of an append, waiting and being served, in milliseconds. */
  readonly meanMs: number;
  /** Sessions on the fullest primary over those on the average one. */
  readonly imbalance: number;
}

/**
 * The arithmetic. Appends come at random and take the same time each (M/D/1): the wait is half of what random service
 * times would make. Sessions fall on shards as balls into bins: the fullest has about sqrt(2 m ln n) more than the mean m.
 */
export function computeScale(plan: ScalePlan): ScaleFigures {
  const { shards, sessions } = plan;
  const mean = sessions / shards;
  const imbalance = shards === 1 ? 1 : 1 + Math.sqrt((2 * Math.log(shards)) / mean);
  const perSecond = (plan.turnsPerMinute / 60) * plan.appendsPerTurn;
  const utilisation = (perSecond / shards / plan.turnsPerSecond) * imbalance;
  const serviceMs = 1000 / plan.turnsPerSecond;
  const average = perSecond / shards / plan.turnsPerSecond;
  const meanMs = average >= 1 ? Infinity : serviceMs * (1 + average / (2 * (1 - average)));
  return { utilisation, meanMs, imbalance };
}

/** Plays so many appends: random arrivals, each of a random session, each session on the shard its hash says. */
export function simulateScale(plan: ScalePlan, appends: number, seed: number): ScaleFigures {
  const random = createRandom(seed);
  const { shards, sessions, turnsPerSecond } = plan;
  const serviceMs = 1000 / turnsPerSecond;
  const gapMs = 60_000 / (plan.turnsPerMinute * plan.appendsPerTurn);
  const freeAtMs = new Float64Array(shards);
  const busyMs = new Float64Array(shards);
  let [nowMs, totalMs] = [0, 0];
  for (let index = 0; index < appends; index++) {
    nowMs += -Math.log(1 - random()) * gapMs;
    const shard = shardOf(Math.floor(random() * sessions), shards);
    const startMs = Math.max(nowMs, freeAtMs[shard] ?? 0);
    freeAtMs[shard] = startMs + serviceMs;
    busyMs[shard] = (busyMs[shard] ?? 0) + serviceMs;
    totalMs += startMs + serviceMs - nowMs;
  }
  const counted = new Float64Array(shards);
  const sample = Math.min(sessions, 1_000_000);
  for (let session = 0; session < sample; session++) {
    const shard = shardOf(session, shards);
    counted[shard] = (counted[shard] ?? 0) + 1;
  }
  return {
    utilisation: Math.max(...busyMs) / nowMs,
    meanMs: totalMs / appends,
    imbalance: Math.max(...counted) / (sample / shards),
  };
}

/** A number's shard, mixed as hash partitioning mixes it. */
function shardOf(session: number, shards: number): number {
  let mixed = Math.imul(session ^ (session >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0) % shards;
}

/** xorshift32, so that a run can be repeated. */
function createRandom(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** What one append costs: the figures of docs/scale.md. */
export interface AppendCost {
  /** CPU of the server, in milliseconds. */
  readonly serverMs: number;
  readonly logBytes: number;
  readonly tableBytes: number;
}

/** As `benchmarks/postgres-append.ts` (CPU) and `lab/benchmarks/postgres-size.ts` (bytes) printed them last. */
export const measuredCost: AppendCost = { serverMs: 0.48, logBytes: 4888, tableBytes: 4610 };

/** A row of the table for each load in turns a minute: three appends a turn, primaries of 16 cores at 60 %. */
export function capacityRows(loads: readonly number[], cost: AppendCost): readonly string[] {
  return loads.map((turnsPerMinute) => {
    const appends = (turnsPerMinute / 60) * 3;
    const cores = (appends * cost.serverMs) / 1000;
    const primaries = Math.ceil(cores / (16 * 0.6));
    const [log, tables] = [(appends * cost.logBytes) / 1e6, (appends * 86_400 * cost.tableBytes) / 1e9];
    const cells = [
      turnsPerMinute.toLocaleString("en"),
      appends.toLocaleString("en"),
      `${cores.toPrecision(2)} cores`,
      String(primaries),
      `${log < 1 ? log.toFixed(2) : log.toPrecision(3)} MB/s`,
      tables < 1000 ? `${tables.toFixed(0)} GB` : `${(tables / 1000).toFixed(1)} TB`,
    ];
    return `| ${cells.join(" | ")} |`;
  });
}

/** The loads of the page. */
export const tableLoads: readonly number[] = [1000, 10_000, 100_000, 1_000_000];

/** How far the simulation may lie from the arithmetic. */
const tolerance = 0.12;

function main(): number {
  const { values } = parseArgs({
    options: {
      "turns-per-minute": { type: "string", default: "1000000" },
      shards: { type: "string", default: "64" },
      "turns-per-second": { type: "string", default: "1300" },
      "appends-per-turn": { type: "string", default: "3" },
      sessions: { type: "string", default: "100000000" },
      seed: { type: "string", default: "1" },
      table: { type: "boolean", default: false },
    },
  });
  if (values.table) {
    process.stdout.write(`${capacityRows(tableLoads, measuredCost).join("\n")}\n`);
    return 0;
  }
  const plan: ScalePlan = {
    turnsPerMinute: Number(values["turns-per-minute"]),
    shards: Number(values.shards),
    turnsPerSecond: Number(values["turns-per-second"]),
    appendsPerTurn: Number(values["appends-per-turn"]),
    sessions: Number(values.sessions),
  };
  const [computed, played] = [computeScale(plan), simulateScale(plan, 2_000_000, Number(values.seed))];
  let isRight = true;
  for (const figure of ["utilisation", "meanMs"] as const) {
    const off = Math.abs(played[figure] / computed[figure] - 1);
    if (!(off <= tolerance)) isRight = false;
    process.stdout.write(
      `${figure}: computed ${computed[figure].toFixed(3)}, played ${played[figure].toFixed(3)} (${(off * 100).toFixed(1)} % off)\n`,
    );
  }
  process.stdout.write(`${isRight ? "the arithmetic holds" : "the arithmetic does not hold"}\n`);
  return isRight ? 0 : 1;
}

if (import.meta.main) process.exitCode = main();

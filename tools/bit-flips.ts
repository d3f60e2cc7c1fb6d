import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { SessionEvent, SessionRef } from "../packages/core/src/index.ts";
import { compareReads, type Expected, expectedOf } from "./bit-flips/compare-reads.ts";
import { fillStore } from "./bit-flips/fill-store.ts";
import { flipBit, type FlippedStore, flippedStores, type FlipRegion } from "./bit-flips/flipped-store.ts";
import { postgresFlips } from "./bit-flips/postgres-flips.ts";

/** One changed bit, and what the operations on the store gave. */
interface FlipResult {
  readonly flip: number;
  /** The table, index or kind of file. */
  readonly name: string;
  readonly right: number;
  readonly errors: number;
  /** What is neither: each with its place. */
  readonly wrong: readonly string[];
  /** How often each error code came, where it is counted. */
  readonly codes?: Readonly<Record<string, number>>;
  /** Whether the byte is in a page that holds something, where that is known. */
  readonly isInUse?: boolean;
}

/** The counts of one table, index or kind of file. */
export interface FlipFigures {
  flips: number;
  right: number;
  errors: number;
  wrong: number;
  /** Flips in pages that hold something, where that is known. */
  inUse: number;
  codes: Map<string, number>;
}

export interface BitFlipOptions {
  readonly store: keyof typeof flippedStores | "postgres";
  readonly flips: number;
  readonly seed: number;
  /** Called with each result that is neither right nor a typed error. */
  readonly onWrong?: (what: string) => void;
  /** Called after some flips, with the counts so far. */
  readonly onProgress?: (flips: number, figures: ReadonlyMap<string, FlipFigures>) => void;
}

/** A flip that takes longer does not end. */
const mostMs = 300_000;
/** A process ends with what damage made of it, so that each runs some only. */
const flipsOfProcess = 500;

/**
 * Changes one random bit of a closed store at a time, then reads, lists, copies, exports and backs it up. Each of these must
 * give what it gives on the whole store, or end with a typed error. Half of the bits are drawn by table or kind of file, so that
 * small ones are met as often; the others by place.
 */
export async function bitFlips({
  store,
  flips,
  seed,
  onWrong,
  onProgress,
}: BitFlipOptions): Promise<Map<string, FlipFigures>> {
  const figures = new Map<string, FlipFigures>();
  const note = (result: FlipResult): void => {
    const none = { flips: 0, right: 0, errors: 0, wrong: 0, inUse: 0, codes: new Map<string, number>() };
    const found = figures.get(result.name) ?? none;
    figures.set(result.name, found);
    found.flips += 1;
    found.right += result.right;
    found.errors += result.errors;
    found.wrong += result.wrong.length;
    if (result.isInUse === true) found.inUse += 1;
    for (const [code, count] of Object.entries(result.codes ?? {}))
      found.codes.set(code, (found.codes.get(code) ?? 0) + count);
    for (const what of result.wrong) onWrong?.(`flip ${result.flip} in ${result.name}: ${what}`);
  };
  if (store === "postgres") {
    const draw = (regions: readonly FlipRegion[], flip: number): DrawnFlip => drawFlip(regions, seed, flip);
    await postgresFlips({
      flips,
      draw,
      note: (result) => {
        note(result);
        if ((result.flip + 1) % 100 === 0) onProgress?.(result.flip + 1, figures);
      },
    });
    return figures;
  }
  const whole = mkdtempSync(join(tmpdir(), "bit-flips-"));
  try {
    const filled = flippedStores[store].open(whole);
    await fillStore(filled);
    await filled.close();
    for (let from = 0; from < flips;) {
      from = await runProcess({ store, seed, from, to: flips, whole }, note);
      onProgress?.(from, figures);
    }
    return figures;
  } finally {
    rmSync(whole, { recursive: true, force: true });
  }
}

interface FlipRange {
  readonly store: string;
  /** The folder of the store that is whole. */
  readonly whole: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
}

/** Runs flips in a process of their own until it ends; gives the flip that comes next. */
async function runProcess(
  { store, whole, seed, from, to }: FlipRange,
  note: (result: FlipResult) => void,
): Promise<number> {
  const end = Math.min(to, from + flipsOfProcess);
  const args = [
    "--store",
    store,
    "--whole",
    whole,
    "--seed",
    String(seed),
    "--from",
    String(from),
    "--to",
    String(end),
    "--child",
  ];
  const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise<string>((resolve) =>
    child.once("exit", (code, signal) => resolve(String(signal ?? code))),
  );
  let next = from;
  let timer = setTimeout(() => child.kill("SIGKILL"), mostMs);
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(timer);
    timer = setTimeout(() => child.kill("SIGKILL"), mostMs);
    const result = JSON.parse(line) as FlipResult;
    note(result);
    next = result.flip + 1;
  }
  clearTimeout(timer);
  const ending = await exited;
  if (next >= end) return next;
  note({ flip: next, name: "(process)", right: 0, errors: 0, wrong: [`the process ended with ${ending}`] });
  return next + 1;
}

/** Numbers from 0 to 1, the same for a seed. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type DrawnFlip = FlipRegion & { readonly at: number; readonly bit: number };

/** The byte and the bit of a flip. */
function drawFlip(regions: readonly FlipRegion[], seed: number, flip: number): DrawnFlip {
  const random = createRandom(seed * 1_000_003 + flip);
  return { ...drawPlace(regions, random), bit: Math.floor(random() * 8) };
}

function drawPlace(regions: readonly FlipRegion[], random: () => number): FlipRegion & { readonly at: number } {
  const names = [...new Set(regions.map(({ name }) => name))];
  const name = random() < 0.5 ? names[Math.floor(random() * names.length)] : undefined;
  const among = name === undefined ? regions : regions.filter((region) => region.name === name);
  let left = Math.floor(random() * among.reduce((sum, { size }) => sum + size, 0));
  for (const region of among) {
    if (left < region.size) return { ...region, at: region.offset + left };
    left -= region.size;
  }
  throw new Error("no place was drawn");
}

async function runFlips(kind: FlippedStore, { seed, from, to, whole }: FlipRange, folder: string): Promise<void> {
  const [flipped, backup] = [join(folder, "flipped"), join(folder, "backup")];
  const regions = kind.regions(whole);
  kind.copy(whole, flipped);
  const { refs, expected } = await readWhole(kind, flipped, backup);
  for (let flip = from; flip < to; flip++) {
    kind.copy(whole, flipped);
    rmSync(backup, { recursive: true, force: true });
    const { bit, ...place } = drawFlip(regions, seed, flip);
    flipBit(join(flipped, place.file), place.at, bit);
    const events: SessionEvent[] = [];
    const store = kind.open(flipped, (event) => events.push(event));
    const context = { store, refs, backup: { path: backup, open: kind.openBackup } };
    const outcomes = await compareReads(context, expected, events);
    const where = `${place.file} at ${place.at}, bit ${bit}`;
    const wrong = outcomes.filter((each) => each.kind === "wrong");
    await store.close().catch(() => undefined);
    const result: FlipResult = {
      flip,
      name: place.name,
      right: outcomes.filter((each) => each.kind === "right").length,
      errors: outcomes.filter((each) => each.kind === "error").length,
      wrong: wrong.map(({ operation, what }) => `${where}: ${operation}: ${what}`),
    };
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
}

async function readWhole(
  kind: FlippedStore,
  folder: string,
  backup: string,
): Promise<{ readonly refs: readonly SessionRef[]; readonly expected: Expected }> {
  const store = kind.open(folder);
  try {
    const { sessions } = await store.list({ state: "any", limit: 1000, sort: "key" });
    // Sessions without records are many and alike: some of them stand for all.
    const refs = sessions.filter(({ head }, index) => head.lastSeq > 0 || index % 6 === 0).map(({ ref }) => ref);
    return { refs, expected: await expectedOf({ store, refs, backup: { path: backup, open: kind.openBackup } }) };
  } finally {
    await store.close();
  }
}

function tableOf(figures: ReadonlyMap<string, FlipFigures>): string {
  const rows = [...figures].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const sum = (pick: (each: FlipFigures) => number): number => rows.reduce((all, [, each]) => all + pick(each), 0);
  const total = {
    flips: sum((each) => each.flips),
    right: sum((each) => each.right),
    errors: sum((each) => each.errors),
    wrong: sum((each) => each.wrong),
  };
  return [...rows, ["all", total] as const]
    .map(([name, { flips, right, errors, wrong }]) => `| ${name} | ${flips} | ${right} | ${errors} | ${wrong} |`)
    .join("\n");
}

function codesOf(figures: ReadonlyMap<string, FlipFigures>): string {
  const all = new Map<string, number>();
  let inUse = 0;
  for (const each of figures.values()) {
    inUse += each.inUse;
    for (const [code, count] of each.codes) all.set(code, (all.get(code) ?? 0) + count);
  }
  return `${inUse} flips in pages in use; ${[...all].map(([code, count]) => `${code} ${count}`).join(", ")}`;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      store: { type: "string", default: "sqlite" },
      flips: { type: "string", default: "1000" },
      seed: { type: "string", default: "1" },
      whole: { type: "string", default: "" },
      child: { type: "boolean", default: false },
      from: { type: "string", default: "0" },
      to: { type: "string", default: "0" },
    },
  });
  const store = values.store === "jsonl" || values.store === "postgres" ? values.store : "sqlite";
  const seed = Number(values.seed);
  if (values.child && store !== "postgres") {
    const folder = mkdtempSync(join(tmpdir(), "bit-flips-"));
    try {
      const range = { store, whole: values.whole, seed, from: Number(values.from), to: Number(values.to) };
      await runFlips(flippedStores[store], range, folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  } else {
    const onWrong = (what: string): void => console.log(what);
    const onProgress: BitFlipOptions["onProgress"] = (flips, figures) =>
      console.error(`${flips} flips: ${tableOf(figures).split("\n").at(-1)}`);
    const figures = await bitFlips({ store, seed, flips: Number(values.flips), onWrong, onProgress });
    console.log(`| table or file | flips | right | typed errors | anything else |\n| --- | --- | --- | --- | --- |`);
    console.log(tableOf(figures));
    if (store === "postgres") console.log(codesOf(figures));
    const wrong = [...figures.values()].reduce((all, each) => all + each.wrong, 0);
    process.exitCode = wrong === 0 ? 0 : 1;
  }
}

import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { SessionEvent, SessionRef } from "../packages/core/src/index.ts";
import { compareReads, type Expected, expectedOf, type FlipOutcome } from "./bit-flips/compare-reads.ts";
import { fileIdsOf } from "./bit-flips/facet-reads.ts";
import { fillStore } from "./bit-flips/fill-store.ts";
import { type FlippedStore, flippedStores, type FlipRegion } from "./bit-flips/flipped-store.ts";
import { KeptFiles, setWholeTimes } from "./bit-flips/kept-files.ts";
import { postgresFlips } from "./bit-flips/postgres-flips.ts";
import { createRandom } from "./seeded-random.ts";

/** One changed bit, and what the operations on the store gave. */
interface FlipResult {
  readonly flip: number;
  /** The table, index or kind of file. */
  readonly name: string;
  readonly right: number;
  readonly errors: number;
  /** Operations that gave what is left of a line, with a finding that names it. */
  readonly reported: readonly string[];
  /** How many took the flip for a change of the program that shares the file. */
  readonly shared: number;
  /** The results that are none of these, each with its place. */
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
  reported: number;
  shared: number;
  wrong: number;
  /** Flips in pages that hold something, where that is known. */
  inUse: number;
  codes: Map<string, number>;
}

const noFigures = { flips: 0, right: 0, errors: 0, reported: 0, shared: 0, wrong: 0, inUse: 0 };

export interface BitFlipOptions {
  readonly store: keyof typeof flippedStores | "postgres";
  readonly flips: number;
  readonly seed: number;
  /** Called with each result that is neither right nor a typed error. */
  readonly onWrong?: (what: string) => void;
  /** Called with each read that gave what is left of a line and reported it. */
  readonly onReported?: (operation: string) => void;
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
  onReported,
  onProgress,
}: BitFlipOptions): Promise<Map<string, FlipFigures>> {
  const figures = new Map<string, FlipFigures>();
  const note = (result: FlipResult): void => {
    const found = figures.get(result.name) ?? { ...noFigures, codes: new Map<string, number>() };
    figures.set(result.name, found);
    found.flips += 1;
    found.right += result.right;
    found.errors += result.errors;
    found.reported += result.reported.length;
    found.shared += result.shared;
    found.wrong += result.wrong.length;
    if (result.isInUse === true) found.inUse += 1;
    for (const [code, count] of Object.entries(result.codes ?? {}))
      found.codes.set(code, (found.codes.get(code) ?? 0) + count);
    for (const operation of result.reported) onReported?.(operation);
    for (const what of result.wrong) onWrong?.(`flip ${result.flip} in ${result.name}: ${what}`);
  };
  if (store === "postgres") {
    const draw = (regions: readonly FlipRegion[], flip: number): DrawnFlip => drawFlip(regions, seed, flip);
    await postgresFlips({
      flips,
      draw,
      note: (result) => {
        note({ reported: [], shared: 0, ...result });
        if ((result.flip + 1) % 100 === 0) onProgress?.(result.flip + 1, figures);
      },
    });
    return figures;
  }
  const whole = makeFolder();
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
  note({
    flip: next,
    name: "(process)",
    right: 0,
    errors: 0,
    reported: [],
    shared: 0,
    wrong: [`the process ended with ${ending}`],
  });
  return next + 1;
}

/** In memory where that is possible: a flush costs nothing there. */
function makeFolder(): string {
  return mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "bit-flips-"));
}

type DrawnFlip = FlipRegion & { readonly at: number; readonly bit: number; readonly random: () => number };

/** The byte and the bit of a flip, and the numbers that the seed has left. */
function drawFlip(regions: readonly FlipRegion[], seed: number, flip: number): DrawnFlip {
  const random = createRandom(seed * 1_000_003 + flip);
  return { ...drawPlace(regions, random), bit: Math.floor(random() * 8), random };
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

/** The session that a file belongs to and three others; all where it belongs to several. */
function drawSessions(sessionIds: readonly string[], owner: string | null, random: () => number): ReadonlySet<number> {
  const all = [...sessionIds.keys()];
  if (owner === null) return new Set(all);
  const others = Array.from({ length: 3 }, () => Math.floor(random() * all.length));
  return new Set([...all.filter((index) => sessionIds[index] === owner), ...others]);
}

async function runFlips(kind: FlippedStore, { seed, from, to, whole }: FlipRange, folder: string): Promise<void> {
  const [flipped, backup] = [join(folder, "flipped"), join(folder, "backup")];
  cpSync(whole, flipped, { recursive: true });
  const { refs, sessionIds, fileIds, expected } = await readWhole(kind, flipped, backup);
  let kept = await settledFiles(kind, flipped);
  const regions = kind.regions(flipped);
  for (let flip = from; flip < to; flip++) {
    const { bit, random, ...place } = drawFlip(regions, seed, flip);
    kept.flip(place.file, place.at, bit);
    const isUnderived = kind.derived !== null && place.file !== kind.derived && random() < 0.5;
    if (isUnderived) rmSync(join(flipped, kind.derived));
    const events: SessionEvent[] = [];
    const store = kind.open(flipped, (event) => events.push(event));
    const asked = drawSessions(sessionIds, kind.sessionIdOf(place.file), random);
    const context = { store, refs, asked, fileIds, backup: { path: backup, open: kind.openBackup } };
    const changed = { path: join(flipped, place.file), isShared: place.file === kind.shared };
    const outcomes = await compareReads(context, expected, events, changed);
    await store.close().catch(() => undefined);
    rmSync(backup, { recursive: true, force: true });
    const where = `${place.file} at ${place.at}, bit ${bit}${isUnderived ? ", without what is derived" : ""}`;
    const of = (kind: FlipOutcome["kind"]): readonly FlipOutcome[] => outcomes.filter((each) => each.kind === kind);
    const result: FlipResult = {
      flip,
      name: place.name,
      right: of("right").length,
      errors: of("error").length,
      reported: of("reported").map(({ operation }) => operation),
      shared: of("shared").length,
      wrong: of("wrong").map(({ operation, what }) => `${where}: ${operation}: ${what}`),
    };
    process.stdout.write(`${JSON.stringify(result)}\n`);
    if (!kept.restore(place.file)) kept = await settledFiles(kind, flipped);
  }
}

/** The files once the store finds nothing to write in them: what is derived knows the others as they are. */
async function settledFiles(kind: FlippedStore, folder: string): Promise<KeptFiles> {
  for (let attempt = 0; ; attempt++) {
    const hadAll = setWholeTimes(folder, (file) => file === kind.derived);
    const store = kind.open(folder);
    await store.list({ state: "any", limit: 1000 });
    await store.close();
    if (hadAll || attempt === mostAttempts) return new KeptFiles(folder);
  }
}

const mostAttempts = 5;

async function readWhole(
  kind: FlippedStore,
  folder: string,
  backup: string,
): Promise<{
  readonly refs: readonly SessionRef[];
  readonly sessionIds: readonly string[];
  readonly fileIds: readonly string[];
  readonly expected: Expected;
}> {
  const store = kind.open(folder);
  try {
    const { sessions } = await store.list({ state: "any", limit: 1000, sort: "key" });
    // Sessions without records are many and alike: some of them stand for all.
    const some = sessions.filter(({ head }, index) => head.lastSeq > 0 || index % 6 === 0);
    const refs = some.map(({ ref }) => ref);
    const sessionIds = some.map(({ sessionId }) => sessionId);
    const fileIds = await fileIdsOf(store);
    return {
      refs,
      sessionIds,
      fileIds,
      expected: await expectedOf({ store, refs, fileIds, backup: { path: backup, open: kind.openBackup } }),
    };
  } finally {
    await store.close();
  }
}

function tableOf(figures: ReadonlyMap<string, FlipFigures>): string {
  const rows = [...figures].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const total = { ...noFigures };
  for (const [, each] of rows)
    for (const name of Object.keys(total) as (keyof typeof noFigures)[]) total[name] += each[name];
  return [...rows, ["all", total] as const]
    .map(
      ([name, each]) =>
        `| ${[name, each.flips, each.right, each.errors, each.reported, each.shared, each.wrong].join(" | ")} |`,
    )
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

const tableHead = `| table or file | flips | right | typed errors | reported with file and line | change of a shared file | anything else |
| --- | --: | --: | --: | --: | --: | --: |`;

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
    const folder = makeFolder();
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
    const reported = new Map<string, number>();
    const onReported = (operation: string): void => {
      const name = operation.replace(/ \d+$/, "");
      reported.set(name, (reported.get(name) ?? 0) + 1);
    };
    const figures = await bitFlips({ store, seed, flips: Number(values.flips), onWrong, onReported, onProgress });
    console.log(`${tableHead}\n${tableOf(figures)}`);
    console.log(`reported: ${[...reported].map(([name, count]) => `${name} ${count}`).join(", ") || "none"}`);
    if (store === "postgres") console.log(codesOf(figures));
    const wrong = [...figures.values()].reduce((all, each) => all + each.wrong, 0);
    process.exitCode = wrong === 0 ? 0 : 1;
  }
}

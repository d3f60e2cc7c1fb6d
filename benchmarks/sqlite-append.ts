// Durable turns of the SQLite store against the bare database in the same run, and many sessions at once against one.
// node --conditions=@throughline/source benchmarks/sqlite-append.ts [rounds] [turns]
import { mkdtempSync, rmSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { AppendOptions, SessionRef, SessionStore } from "../packages/core/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { createControl, lineOf, messages, openRaw, type Control } from "./sqlite-control.ts";

const [rounds = 9, turns = 200] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));

/** Only the texts, in a table of their own with one index: less than any store of sessions could write. */
function createBareControl(path: string): Pick<Control, "turn" | "close"> {
  const database = openRaw(path);
  database.exec(
    "CREATE TABLE records (record INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE (session, seq)) STRICT",
  );
  const [begin, commit] = [database.prepare("BEGIN IMMEDIATE"), database.prepare("COMMIT")];
  const insert = database.prepare("INSERT INTO records (session, seq, text) VALUES (1, ?, ?)");
  let seq = 0;
  return {
    turn() {
      begin.run();
      for (const message of messages) insert.run(++seq, lineOf(seq, message));
      commit.run();
    },
    close: () => database.close(),
  };
}

let ids = 0;

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:bench-${index}` };
}

async function turn(
  store: SessionStore,
  ref: SessionRef,
  options: AppendOptions = {},
  isIdGiven = false,
): Promise<void> {
  await store.append(
    ref,
    messages.map((message) => ({ type: "message", ...(isIdGiven ? { id: `given-${++ids}` } : {}), message })),
    options,
  );
}

async function meanMicroseconds(count: number, work: () => Promise<void>): Promise<number> {
  const startedNs = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - startedNs) / 1000 / count;
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  return [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
    .map((value) => (value ?? 0).toFixed(value !== undefined && value < 50 ? 2 : 0))
    .join(" / ");
}

/**
 * Turns are taken in small blocks, one contestant after the other, each time another one first, so that a slow moment of
 * the disk meets all of them. A store writes its log back when nothing was committed for 100 ms: with blocks so small no
 * such pause lies between two of its own, and it does so when the log has 1,000 pages, as SQLite does in the control.
 */
const blockTurns = 10;
/** Rounds before anything is counted: code that was compiled just now is what the first turn of a process pays, not a turn. */
const warmRounds = 3;
/** Long enough for every store to have written its log back. */
const quietMs = 350;

const controls = {
  first: createControl(join(folder, "first.db")),
  second: createControl(join(folder, "second.db")),
  many: createControl(join(folder, "many.db")),
  relaxed: createControl(join(folder, "relaxed.db"), { synchronous: "NORMAL" }),
  bare: createBareControl(join(folder, "bare.db")),
};

/** Each has a file of its own, as each control has: what one leaves in a log another would have to write back. */
async function openStore(name: string, sessions = 1): Promise<SessionStore> {
  // The index has a benchmark of its own.
  const store = createSqliteStore({ path: join(folder, `${name}.db`), searchFill: "on-demand" });
  for (let index = 0; index < sessions; index++)
    await store.save(refOf(index), { sessionId: `bench-${index}` }, { ifRevision: null });
  return store;
}
const stores = {
  one: await openStore("one-store"),
  keyed: await openStore("keyed-store"),
  given: await openStore("given-store"),
  relaxed: await openStore("relaxed-store"),
  many: await openStore("many-store", 64),
};

async function repeat(count: number, work: (index: number) => unknown): Promise<void> {
  for (let each = 0; each < count; each++) await work(each);
}

let keys = 0;
const contestants: readonly (readonly [name: string, turn: (each: number) => unknown])[] = [
  ["four texts", () => controls.bare.turn()],
  ["raw", () => controls.first.turn()],
  ["store", () => turn(stores.one, refOf(0))],
  ["raw again", () => controls.second.turn()],
  [
    "store, entry and key",
    (each) => turn(stores.keyed, refOf(0), { entry: { totalTokens: each }, idempotencyKey: `k${++keys}` }),
  ],
  ["store, given ids", () => turn(stores.given, refOf(0), {}, true)],
  ["raw, NORMAL", () => controls.relaxed.turn()],
  ["store, process", () => turn(stores.relaxed, refOf(0), { durability: "process" })],
];

/** Microseconds of a turn of each. */
async function turnsOfOne(): Promise<Record<string, number>> {
  const means: Record<string, number> = {};
  const blocks = turns / blockTurns;
  for (let block = 0; block < blocks; block++) {
    for (let place = 0; place < contestants.length; place++) {
      const contestant = contestants[(block + place) % contestants.length];
      if (contestant === undefined) continue;
      const [name, work] = contestant;
      means[name] = (means[name] ?? 0) + (await meanMicroseconds(turns, () => repeat(blockTurns, work)));
    }
  }
  return means;
}

const columns: Record<string, number[]> = {};
const note = (name: string, value: number): void => void (columns[name] ??= []).push(value);
for (let round = -warmRounds; round < rounds; round++) {
  const means = await turnsOfOne();
  await new Promise((resolve) => setTimeout(resolve, quietMs));
  const rawMany = await meanMicroseconds(turns * 4, () => repeat(turns / 16, () => controls.many.turnOfEach()));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const cpu = process.cpuUsage();
  const many = await meanMicroseconds(turns * 4, async () => {
    await Promise.all(
      Array.from({ length: 64 }, (_, index) => repeat(turns / 16, () => turn(stores.many, refOf(index)))),
    );
  });
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  await new Promise((resolve) => setTimeout(resolve, quietMs));
  if (round < 0) continue;
  note("64 sessions at once, us of CPU a turn", (user + system) / (turns * 4));
  note("64 sessions at once, longest stall, ms", delay.max / 1e6);
  const serial = means["store"] ?? 0;
  const raw = ((means["raw"] ?? 0) + (means["raw again"] ?? 0)) / 2;
  for (const [name, mean] of Object.entries(means)) note(`${name}, us a turn`, mean);
  note("64 sessions at once, us a turn", many);
  note("raw again / raw", (means["raw again"] ?? 0) / (means["raw"] ?? 1));
  note("STORE / RAW", serial / raw);
  note("store / four texts", serial / (means["four texts"] ?? 1));
  note("process / raw NORMAL", (means["store, process"] ?? 0) / (means["raw, NORMAL"] ?? 1));
  note("with entry and key / without", (means["store, entry and key"] ?? 0) / serial);
  note("with given ids / without", (means["store, given ids"] ?? 0) / serial);
  note("raw, 64 turns a commit, us a turn", rawMany);
  note("raw, 64 turns a commit, times one", raw / rawMany);
  note("64 sessions at once / raw, 64 a commit", many / rawMany);
  note("64 SESSIONS, TIMES ONE", serial / many);
  // What is left of a turn when nothing is flushed at all is the same for one session and for many.
  note("raw / raw, NORMAL", raw / (means["raw, NORMAL"] ?? 1));
}
for (const store of Object.values(stores)) await store.close();
for (const control of Object.values(controls)) control.close();
rmSync(folder, { recursive: true });
process.stdout.write(`${rounds} rounds of ${turns} turns, 4 records each; min / median / max\n`);
const totalOf = (name: string): number => (columns[`${name}, us a turn`] ?? []).reduce((sum, each) => sum + each, 0);
const ofAll = (totalOf("store") * 2) / (totalOf("raw") + totalOf("raw again"));
process.stdout.write(`${"STORE / RAW, mean of all turns".padEnd(42)} ${ofAll.toFixed(2)}\n`);
for (const [name, values] of Object.entries(columns)) process.stdout.write(`${name.padEnd(42)} ${spread(values)}\n`);

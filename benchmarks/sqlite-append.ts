// Durable turns of the SQLite store against the bare database in the same run, and many sessions at once against one.
// node --conditions=@throughline/source benchmarks/sqlite-append.ts [rounds] [turns]
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { AppendOptions, SessionRef, SessionStore } from "../packages/core/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

interface RawDatabase {
  pragma(text: string): unknown;
  exec(sql: string): unknown;
  prepare(sql: string): { run(...values: unknown[]): unknown };
  close(): void;
}

const [rounds = 9, turns = 100] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../packages/store-sqlite/package.json", import.meta.url));
const Database = require("better-sqlite3") as new (path: string) => RawDatabase;
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));

/** A turn: a question, a call of a tool, its result, the answer. About 3 KB. */
const messages: readonly { readonly role: string; readonly content: string }[] = [
  { role: "user", content: "q".repeat(200) },
  { role: "assistant", content: "c".repeat(300) },
  { role: "toolResult", content: "r".repeat(1700) },
  { role: "assistant", content: "a".repeat(500) },
];

/** The same columns without any rule: what SQLite itself takes for four rows made durable. */
function createControl(path: string, synchronous: "FULL" | "NORMAL" = "FULL"): { turn(): void; close(): void } {
  const database = new Database(path);
  for (const setting of ["page_size = 8192", "journal_mode = WAL", `synchronous = ${synchronous}`])
    database.pragma(setting);
  database.exec(
    "CREATE TABLE records (record INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE (session, seq)) STRICT",
  );
  const [begin, commit] = [database.prepare("BEGIN IMMEDIATE"), database.prepare("COMMIT")];
  const insert = database.prepare("INSERT INTO records (session, seq, text) VALUES (1, ?, ?)");
  let seq = 0;
  return {
    turn() {
      begin.run();
      for (const message of messages)
        insert.run(
          ++seq,
          JSON.stringify({
            type: "message",
            id: `${1_700_000_000_000 + seq}_00000000`,
            parentId: null,
            timestamp: "2026-01-02T03:04:05.006Z",
            message,
          }),
        );
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

/** Turns are taken in small blocks, one contestant after the other, so that a slow moment of the disk meets all of them. */
const blockTurns = 20;

const controls = {
  first: createControl(join(folder, "first.db")),
  second: createControl(join(folder, "second.db")),
  relaxed: createControl(join(folder, "relaxed.db"), "NORMAL"),
};
// The index has a benchmark of its own.
const store = createSqliteStore({ path: join(folder, "store.db"), searchFill: "on-demand" });
for (let index = 0; index < 64; index++)
  await store.save(refOf(index), { sessionId: `bench-${index}` }, { ifRevision: null });

async function repeat(count: number, work: (index: number) => unknown): Promise<void> {
  for (let each = 0; each < count; each++) await work(each);
}

const contestants: Readonly<Record<string, (count: number) => Promise<void>>> = {
  raw: (count) => repeat(count, () => controls.first.turn()),
  store: (count) => repeat(count, () => turn(store, refOf(0))),
  "raw again": (count) => repeat(count, () => controls.second.turn()),
  "store, entry and key": (count) =>
    repeat(count, (each) => turn(store, refOf(2), { entry: { totalTokens: each }, idempotencyKey: `k${++keys}` })),
  "store, given ids": (count) => repeat(count, () => turn(store, refOf(1), {}, true)),
  "raw, NORMAL": (count) => repeat(count, () => controls.relaxed.turn()),
  "store, process": (count) => repeat(count, () => turn(store, refOf(3), { durability: "process" })),
};
let keys = 0;

const columns: Record<string, number[]> = {};
const note = (name: string, value: number): void => void (columns[name] ??= []).push(value);
for (let round = 0; round < rounds; round++) {
  const means: Record<string, number> = {};
  for (let block = 0; block < turns / blockTurns; block++) {
    for (const [name, work] of Object.entries(contestants)) {
      means[name] = (means[name] ?? 0) + (await meanMicroseconds(turns, () => work(blockTurns)));
    }
  }
  const many = await meanMicroseconds(turns * 4, async () => {
    await Promise.all(Array.from({ length: 64 }, (_, index) => repeat(turns / 16, () => turn(store, refOf(index)))));
  });
  const serial = means["store"] ?? 0;
  const raw = ((means["raw"] ?? 0) + (means["raw again"] ?? 0)) / 2;
  for (const [name, mean] of Object.entries(means)) note(`${name}, us a turn`, mean);
  note("64 sessions at once, us a turn", many);
  note("raw again / raw", (means["raw again"] ?? 0) / (means["raw"] ?? 1));
  note("STORE / RAW", serial / raw);
  note("process / raw NORMAL", (means["store, process"] ?? 0) / (means["raw, NORMAL"] ?? 1));
  note("with entry and key / without", (means["store, entry and key"] ?? 0) / serial);
  note("with given ids / without", (means["store, given ids"] ?? 0) / serial);
  note("64 SESSIONS, TIMES ONE", serial / many);
}
await store.close();
for (const control of Object.values(controls)) control.close();
rmSync(folder, { recursive: true });
process.stdout.write(`${rounds} rounds of ${turns} turns, 4 records each; min / median / max\n`);
for (const [name, values] of Object.entries(columns)) process.stdout.write(`${name.padEnd(42)} ${spread(values)}\n`);

// Durable turns of the SQLite store against the bare database in the same run, and many sessions at once against one.
// node --conditions=@throughline/source benchmarks/sqlite-append.ts [rounds] [turns]
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { crc32 } from "node:zlib";
import type { AppendOptions, SessionRef, SessionStore } from "../packages/core/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { schemaSteps } from "../packages/store-sqlite/src/schema.ts";

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

interface Control {
  turn(): void;
  /** One turn of each of 64 sessions in one commit: what a commit can be shared for at best. */
  turnOfEach?(): void;
  close(): void;
}

function openRaw(path: string, synchronous: "FULL" | "NORMAL"): RawDatabase {
  const database = new Database(path);
  for (const setting of ["page_size = 8192", "journal_mode = WAL", `synchronous = ${synchronous}`])
    database.pragma(setting);
  return database;
}

function lineOf(seq: number, message: object): string {
  const [id, parentId] = [idOf(seq), seq === 1 ? null : idOf(seq - 1)];
  return JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-02T03:04:05.006Z", message });
}

function idOf(seq: number): string {
  return `${1_700_000_000_000 + seq}_00000000`;
}

/**
 * The rows a turn of the store writes, in its own schema with its own indexes: four records with their columns and
 * checksums, and the session's row. No rule, no queue, no promise: what SQLite and the driver take for them.
 */
function createControl(path: string, synchronous: "FULL" | "NORMAL" = "FULL"): Control {
  const database = openRaw(path, synchronous);
  for (const { sql } of schemaSteps) database.exec(sql);
  const begun = database.prepare(
    `INSERT INTO store_sessions (namespace, agent_id, key, archived, session_id, revision, last_seq, fence, message_count, created_at_ms,
       updated_at_ms, updated_slot, ids_to_seq, keyed_next, keyed_rows, keyed_sweep_at, keyed_horizon_ms)
     VALUES ('', 'main', ?, 0, ?, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5120, -1)`,
  );
  for (let session = 1; session <= 64; session++) begun.run(`agent:main:raw-${session}`, `raw-${session}`);
  const [begin, commit] = [database.prepare("BEGIN IMMEDIATE"), database.prepare("COMMIT")];
  const insert = database.prepare(
    `INSERT INTO store_records (session, seq, id, parent_id, type, side, ts_ms, stored_at_ms, bytes, crc, role, tool_name, text)
     VALUES (?, ?, ?, ?, 'message', 0, ?, ?, ?, ?, ?, NULL, ?)`,
  );
  const update = database.prepare(
    "UPDATE store_sessions SET last_seq = ?, head_id = ?, message_count = ?, updated_at_ms = ? WHERE session = ?",
  );
  const seqs = Array.from({ length: 65 }, () => 0);
  const write = (session: number): void => {
    let seq = seqs[session] ?? 0;
    for (const message of messages) {
      const text = lineOf(++seq, message);
      const parentId = seq === 1 ? null : idOf(seq - 1);
      const nowMs = 1_700_000_000_000 + seq;
      const [id, bytes] = [idOf(seq), Buffer.byteLength(text)];
      insert.run(session, seq, id, parentId, nowMs, nowMs, bytes, crc32(text), message.role, text);
    }
    update.run(seq, idOf(seq), seq, 1_700_000_000_000 + seq, session);
    seqs[session] = seq;
  };
  return {
    turn() {
      begin.run();
      write(1);
      commit.run();
    },
    turnOfEach() {
      begin.run();
      for (let session = 1; session <= 64; session++) write(session);
      commit.run();
    },
    close: () => database.close(),
  };
}

/** Only the texts, in a table of their own with one index: less than any store of sessions could write. */
function createBareControl(path: string): Control {
  const database = openRaw(path, "FULL");
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

/** Turns are taken in small blocks, one contestant after the other, so that a slow moment of the disk meets all of them. */
const blockTurns = 50;

const controls = {
  first: createControl(join(folder, "first.db")),
  second: createControl(join(folder, "second.db")),
  relaxed: createControl(join(folder, "relaxed.db"), "NORMAL"),
  bare: createBareControl(join(folder, "bare.db")),
};
// The index has a benchmark of its own.
const store = createSqliteStore({ path: join(folder, "store.db"), searchFill: "on-demand" });
// What is not flushed here would be flushed by the next turn that is: a file of its own, as the relaxed control has one.
const relaxedStore = createSqliteStore({ path: join(folder, "relaxed-store.db"), searchFill: "on-demand" });
await relaxedStore.save(refOf(0), { sessionId: "bench-0" }, { ifRevision: null });
for (let index = 0; index < 64; index++)
  await store.save(refOf(index), { sessionId: `bench-${index}` }, { ifRevision: null });

async function repeat(count: number, work: (index: number) => unknown): Promise<void> {
  for (let each = 0; each < count; each++) await work(each);
}

const contestants: Readonly<Record<string, (count: number) => Promise<void>>> = {
  "four texts": (count) => repeat(count, () => controls.bare.turn()),
  raw: (count) => repeat(count, () => controls.first.turn()),
  store: (count) => repeat(count, () => turn(store, refOf(0))),
  "raw again": (count) => repeat(count, () => controls.second.turn()),
  "store, entry and key": (count) =>
    repeat(count, (each) => turn(store, refOf(2), { entry: { totalTokens: each }, idempotencyKey: `k${++keys}` })),
  "store, given ids": (count) => repeat(count, () => turn(store, refOf(1), {}, true)),
  "raw, NORMAL": (count) => repeat(count, () => controls.relaxed.turn()),
  "store, process": (count) => repeat(count, () => turn(relaxedStore, refOf(0), { durability: "process" })),
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
  const rawMany = await meanMicroseconds(turns * 4, () => repeat(turns / 16, () => controls.first.turnOfEach?.()));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const cpu = process.cpuUsage();
  const many = await meanMicroseconds(turns * 4, async () => {
    await Promise.all(Array.from({ length: 64 }, (_, index) => repeat(turns / 16, () => turn(store, refOf(index)))));
  });
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
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
}
await store.close();
await relaxedStore.close();
for (const control of Object.values(controls)) control.close();
rmSync(folder, { recursive: true });
process.stdout.write(`${rounds} rounds of ${turns} turns, 4 records each; min / median / max\n`);
const totalOf = (name: string): number => (columns[`${name}, us a turn`] ?? []).reduce((sum, each) => sum + each, 0);
const ofAll = (totalOf("store") * 2) / (totalOf("raw") + totalOf("raw again"));
process.stdout.write(`${"STORE / RAW, mean of all turns".padEnd(42)} ${ofAll.toFixed(2)}\n`);
for (const [name, values] of Object.entries(columns)) process.stdout.write(`${name.padEnd(42)} ${spread(values)}\n`);

// Opening and reading a session of 10,000 messages against SELECT and JSON.parse of the same rows.
// node --conditions=@throughline/source lab/benchmarks/sqlite-read.ts [rounds]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { openRaw } from "../../benchmarks/sqlite-control.ts";

const [rounds = 15] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
const [path, controlPath] = [join(folder, "store.db"), join(folder, "control.db")];
const ref = { namespace: "", agentId: "main", key: "agent:main:read" };
const messageCount = 10_000;

/** Turns of four records, 3 KB each: a question, a call, its result, the answer. */
const sizes = [
  ["user", 200],
  ["assistant", 300],
  ["toolResult", 1000],
  ["assistant", 500],
] as const;

function words(length: number, seed: number): string {
  let text = "";
  for (let at = seed; text.length < length; at += 7) text += `word${at % 911} `;
  return text.slice(0, length);
}

async function fill(): Promise<{ readonly contentBytes: number }> {
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  await store.save(ref, { sessionId: "read" }, { ifRevision: null });
  for (let at = 0; at < messageCount; at += sizes.length) {
    const drafts = sizes.map(([role, size], index) => ({
      type: "message",
      message: { role, content: [{ type: "text", text: words(size, at + index) }] },
    }));
    await store.append(ref, drafts, { durability: "process" });
  }
  const control = openRaw(controlPath);
  control.exec(
    "CREATE TABLE records (record INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE (session, seq)) STRICT; BEGIN",
  );
  const insert = control.prepare("INSERT INTO records (session, seq, text) VALUES (1, ?, ?)");
  let contentBytes = 0;
  for await (const { records } of store.read(ref, { payload: "source" })) {
    for (const { seq, source, bytes } of records) {
      insert.run(seq, source);
      contentBytes += bytes;
    }
  }
  control.exec("COMMIT");
  control.close();
  return { contentBytes };
}

/** What is read is kept, as by whoever rebuilds a session: that is what the collector has to walk through. */
async function readStore(): Promise<number> {
  await using store = createSqliteStore({ path, create: false });
  const kept: unknown[] = [];
  for await (const { records } of store.read(ref)) for (const record of records) kept.push(record);
  return kept.length;
}

/** The same, page by page, without keeping any: as by an export. */
async function passStore(): Promise<number> {
  await using store = createSqliteStore({ path, create: false });
  let count = 0;
  for await (const { records } of store.read(ref)) count += records.length;
  return count;
}

async function openStore(): Promise<number> {
  await using store = createSqliteStore({ path, create: false });
  return (await store.load(ref)) === null ? 0 : messageCount;
}

async function readControl(): Promise<number> {
  const control = openRaw(controlPath);
  const texts = control.prepare("SELECT text FROM records WHERE session = 1 ORDER BY seq").pluck().all() as string[];
  const records: unknown[] = [];
  for (const text of texts) records.push(JSON.parse(text));
  control.close();
  return records.length;
}

type Row = readonly [
  seq: number,
  side: number,
  tsMs: number,
  storedAtMs: number,
  bytes: number,
  crc: number,
  text: string,
];

/** The bare database giving what a record of the contract is: its text and the nine values of its head, in one object. */
async function readHeads(): Promise<number> {
  const control = openRaw(path);
  const slice = control
    .prepare(
      "SELECT seq, side, ts_ms, stored_at_ms, bytes, crc, text FROM store_records WHERE session = 1 AND seq > ? ORDER BY seq LIMIT 128",
    )
    .raw();
  const records: { readonly seq: number }[] = [];
  for (let rows: Row[]; (rows = slice.all(records.at(-1)?.seq ?? 0) as Row[]).length > 0;) {
    for (const [seq, side, tsMs, storedAtMs, bytes, crc, text] of rows) {
      const record = JSON.parse(text) as { readonly id: string; readonly parentId: string; readonly type: string };
      const { id, parentId, type } = record;
      records.push({ seq, id, parentId, type, side: side === 1, tsMs, storedAtMs, bytes, crc, record } as Head);
    }
  }
  control.close();
  return records.length;
}

type Head = { readonly seq: number };

async function timed(work: () => Promise<number>): Promise<number> {
  const startedNs = process.hrtime.bigint();
  const count = await work();
  if (count !== messageCount) throw new Error(`read ${count} records`);
  return Number(process.hrtime.bigint() - startedNs) / 1e6;
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  return [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((value) => (value ?? 0).toFixed(2)).join(" / ");
}

const { contentBytes } = await fill();
const contestants: Readonly<Record<string, () => Promise<number>>> = {
  control: readControl,
  "control, with heads": readHeads,
  "open and load": openStore,
  store: readStore,
  "store, none kept": passStore,
};
const names = Object.keys(contestants);
const columns: Record<string, number[]> = {};
for (let round = 0; round < rounds + 3; round++) {
  const taken: Record<string, number> = {};
  for (let place = 0; place < names.length; place++) {
    const name = names[(place + round) % names.length] ?? "";
    taken[name] = await timed(contestants[name] ?? readControl);
  }
  // The first ones warm up.
  if (round < 3) continue;
  for (const name of names) {
    (columns[`${name}, ms`] ??= []).push(taken[name] ?? 0);
    if (name !== "control") (columns[`${name} / control`] ??= []).push((taken[name] ?? 0) / (taken["control"] ?? 1));
  }
}
const totalOf = (name: string): number => (columns[`${name}, ms`] ?? []).reduce((sum, each) => sum + each, 0);
process.stdout.write(
  `open and read ${messageCount} messages, ${contentBytes} bytes; ${rounds} rounds, min / median / max\n`,
);
for (const [name, values] of Object.entries(columns)) process.stdout.write(`${name.padEnd(30)} ${spread(values)}\n`);
const ofAll = ["control, with heads", "store", "store, none kept"].map((name) => totalOf(name) / totalOf("control"));
process.stdout.write(
  `${"BY THE MEAN: heads, STORE, pass".padEnd(30)} ${ofAll.map((each) => each.toFixed(2)).join(" / ")}\n`,
);
rmSync(folder, { recursive: true });

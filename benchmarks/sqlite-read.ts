// Opening and reading a session of 10,000 messages against SELECT and JSON.parse of the same rows, and the size of the file.
// node --conditions=@throughline/source benchmarks/sqlite-read.ts [rounds]
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

interface Statement {
  all(...values: unknown[]): unknown[];
  run(...values: unknown[]): unknown;
}
interface RawDatabase {
  exec(sql: string): unknown;
  pragma(text: string): unknown;
  prepare(sql: string): Statement & { pluck(): Statement };
  close(): void;
}

const [rounds = 15] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../packages/store-sqlite/package.json", import.meta.url));
const Database = require("better-sqlite3") as new (path: string) => RawDatabase;
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
  const control = new Database(controlPath);
  for (const setting of ["page_size = 8192", "journal_mode = WAL"]) control.pragma(setting);
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

async function readStore(): Promise<number> {
  await using store = createSqliteStore({ path, create: false });
  let count = 0;
  for await (const { records } of store.read(ref)) count += records.length;
  return count;
}

async function readControl(): Promise<number> {
  const control = new Database(controlPath);
  const texts = control.prepare("SELECT text FROM records WHERE session = 1 ORDER BY seq").pluck().all() as string[];
  const records: unknown[] = [];
  for (const text of texts) records.push(JSON.parse(text));
  control.close();
  return records.length;
}

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
const columns: Record<string, number[]> = { "control, ms": [], "store, ms": [], "STORE / CONTROL": [] };
for (let round = 0; round < rounds + 2; round++) {
  const before = await timed(readControl);
  const store = await timed(readStore);
  const control = (before + (await timed(readControl))) / 2;
  // The first two warm up.
  if (round < 2) continue;
  columns["control, ms"]?.push(control);
  columns["store, ms"]?.push(store);
  columns["STORE / CONTROL"]?.push(store / control);
}
process.stdout.write(
  `open and read ${messageCount} messages, ${contentBytes} bytes; ${rounds} rounds, min / median / max\n`,
);
for (const [name, values] of Object.entries(columns)) process.stdout.write(`${name.padEnd(24)} ${spread(values)}\n`);
const sizeBytes = statSync(path).size;
process.stdout.write(
  `${"SIZE / CONTENT".padEnd(24)} ${(sizeBytes / contentBytes).toFixed(3)} (${sizeBytes} bytes, without full text)\n`,
);
rmSync(folder, { recursive: true });

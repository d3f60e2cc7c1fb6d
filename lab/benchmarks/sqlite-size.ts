// Bytes on disk over content, without full text, as a session grows; and where they lie.
// node --conditions=@throughline/source lab/benchmarks/sqlite-size.ts [messages ...]
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { openRaw } from "../../benchmarks/sqlite-control.ts";

const asked = process.argv.slice(2).map(Number);
const counts = asked.length > 0 ? asked : [10_000, 50_000, 200_000];
const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
const path = join(folder, "store.db");
const ref = { namespace: "", agentId: "main", key: "agent:main:size" };

/** Turns of four records: a question, a call, its result, the answer. */
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

async function fill(from: number, to: number): Promise<void> {
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  if (from === 0) await store.save(ref, { sessionId: "size" }, { ifRevision: null });
  for (let at = from; at < to; at += sizes.length) {
    const drafts = sizes.map(([role, size], index) => ({
      type: "message",
      message: { role, content: [{ type: "text", text: words(size, at + index) }] },
    }));
    await store.append(ref, drafts, { durability: "process" });
  }
}

interface Space {
  readonly rows: number;
  readonly unused: number;
  readonly index: number;
  readonly others: number;
}

/** Bytes: of the rows, unused in their pages, of their index, and of everything that is there in an empty store too. */
function spaceOf(contentBytes: number): Space {
  const database = openRaw(path);
  const sum = (column: string, where: string): number =>
    database.prepare(`SELECT total(${column}) FROM dbstat WHERE ${where}`).pluck().get() as number;
  const [records, index] = ["name = 'store_records'", "name = 'sqlite_autoindex_store_records_1'"];
  const unused = sum("unused", records);
  const space = {
    rows: sum("pgsize", records) - unused - contentBytes,
    unused,
    index: sum("pgsize", index),
    others: sum("pgsize", `NOT (${records}) AND NOT (${index})`),
  };
  database.close();
  return space;
}

let filled = 0;
for (const count of counts) {
  await fill(filled, count);
  filled = count;
  const database = openRaw(path);
  const contentBytes = database.prepare("SELECT total(bytes) FROM store_records").pluck().get() as number;
  database.close();
  const space = Object.entries(spaceOf(contentBytes)).map(
    ([name, bytes]) => `${name} ${(bytes / contentBytes).toFixed(3)}`,
  );
  const ratio = statSync(path).size / contentBytes;
  process.stdout.write(`${String(count).padStart(8)} messages, ${contentBytes} bytes: ${ratio.toFixed(3)} times; `);
  process.stdout.write(`over content: ${space.join(", ")}\n`);
}
rmSync(folder, { recursive: true });

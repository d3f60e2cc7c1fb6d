// What a durable turn of the JSONL store is made of: one write and one fdatasync of ready bytes, then the same beside one thing
// more that every store of this kind has to do, then all of them, then the store. Blocks of ten of each kind in turn.
// node --conditions=@throughline/source benchmarks/jsonl-floor.ts [blocks]
import {
  fdatasync,
  fstatSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { createRecordIds } from "../packages/core/src/record-ids.ts";
import { systemClock, systemRandom } from "../packages/core/src/node/system-ports.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { turnMessages } from "./measure.ts";

const [blocks = 120] = process.argv.slice(2).map(Number);
const turnsOfABlock = 10;
const warmUpTurns = 200;
const folder = mkdtempSync(join(tmpdir(), "throughline-floor-"));

const ref = { namespace: "", agentId: "main", key: "agent:main:floor" };
const store = createJsonlStore({ root: join(folder, "store"), sessionsJson: false });
await store.save(ref, { sessionId: "floor" }, { ifRevision: null });

const [path, otherPath, lockPath] = ["control.jsonl", "other", "lock"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
writeFileSync(otherPath, "");
const handle = openSync(path, "a+");
const lock = new DatabaseSync(lockPath);
lock.exec("PRAGMA journal_mode=MEMORY");
const [begin, rollback] = [lock.prepare("BEGIN IMMEDIATE"), lock.prepare("ROLLBACK")];
const ids = createRecordIds({ clock: systemClock, random: systemRandom });

function madeBytes(): Buffer {
  const at = systemClock.nowMs();
  const timestamp = new Date(at).toISOString();
  let parentId = "";
  const lines = turnMessages.map((message, index) => {
    const id = ids.next();
    const text = JSON.stringify({ type: "message", id, parentId, timestamp, message });
    parentId = id;
    return `${text.slice(0, -1)},"_tl":{"seq":${index},"batch":[${index + 1},4],"at":${at},"crc":${crc32(text)}}}\n`;
  });
  return Buffer.from(lines.join(""));
}

function lookAndRead(): void {
  for (const each of [path, otherPath, lockPath]) lstatSync(each, { bigint: true });
  const { size } = fstatSync(handle);
  const end = Buffer.allocUnsafe(256);
  readSync(handle, end, 0, end.length, Math.max(0, size - end.length));
  crc32(end);
}

function flush(): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(handle, (error) => (error === null ? resolve() : reject(error)));
  });
}

function underLock(work: () => void): void {
  begin.run();
  try {
    work();
  } finally {
    rollback.run();
  }
}

const ready = madeBytes();
const write = (bytes: Buffer): void => void writeSync(handle, bytes);
const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
  "control: ready bytes, one write, one fdatasync": () => (write(ready), flush()),
  "and the bytes made": () => (write(madeBytes()), flush()),
  "and the looks at files": () => (lookAndRead(), write(ready), flush()),
  "and the lock": () => (underLock(() => write(ready)), flush()),
  "and all of these": () => (underLock(() => (lookAndRead(), write(madeBytes()))), flush()),
  store: () =>
    store.append(
      ref,
      turnMessages.map((message) => ({ type: "message", message })),
    ),
  "control again": () => (write(ready), flush()),
};

const times = new Map(Object.keys(kinds).map((name) => [name, [] as number[]]));
for (let block = 0; block < blocks; block++)
  for (const [name, turn] of Object.entries(kinds))
    for (let each = 0; each < turnsOfABlock; each++) {
      const startMs = performance.now();
      await turn();
      times.get(name)?.push((performance.now() - startMs) * 1000);
    }

function median(values: readonly number[]): number {
  const sorted = values.slice(warmUpTurns).toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const controlUs = median([...times.values()][0] ?? []);
for (const [name, values] of times) {
  const us = median(values);
  process.stdout.write(`${name.padEnd(48)} ${us.toFixed(0).padStart(6)} us  ${(us / controlUs).toFixed(2)}\n`);
}
await store.close();
lock.close();
rmSync(folder, { recursive: true });

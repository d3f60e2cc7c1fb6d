// Opens a store in two threads at the same moment, again and again, and says how often this process then held no lock on
// the database, by which others see that it is in use.
import { readFileSync, statSync } from "node:fs";
import process from "node:process";
import { Worker, isMainThread, workerData } from "node:worker_threads";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf } from "./append-drafts.ts";

const [path = "", rounds = "0"] = process.argv.slice(2);
const threads = 2;

/** SQLite's shared lock on a database begins here. */
const sharedByte = 0x40000002;

function isLocked(): boolean {
  const lock = new RegExp(`POSIX .* ${process.pid} \\S+:${statSync(path).ino} ${sharedByte} `);
  return lock.test(readFileSync("/proc/locks", "utf8"));
}

/** Goes on when every thread has come here. */
function together(cells: Int32Array): void {
  const round = Atomics.load(cells, 1);
  if (Atomics.add(cells, 0, 1) === threads - 1) {
    Atomics.store(cells, 0, 0);
    Atomics.add(cells, 1, 1);
    Atomics.notify(cells, 1);
  } else while (Atomics.load(cells, 1) === round) Atomics.wait(cells, 1, round);
}

if (isMainThread) {
  const cells = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  for (let number = 0; number < threads; number++)
    new Worker(new URL(import.meta.url), { argv: [path, rounds], workerData: { cells, isFirst: number === 0 } });
} else {
  const { cells: shared, isFirst } = workerData as { readonly cells: SharedArrayBuffer; readonly isFirst: boolean };
  const cells = new Int32Array(shared);
  let unlocked = 0;
  for (let round = 0; round < Number(rounds); round++) {
    together(cells);
    const store = createSqliteStore({ path, searchFill: "on-demand" });
    await store.load(refOf("a"));
    together(cells);
    if (isFirst && !isLocked()) unlocked++;
    together(cells);
    await store.close();
  }
  if (isFirst) process.stdout.write(String(unlocked));
}

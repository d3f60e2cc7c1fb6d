// Opens a lock that is not there yet in two threads at the same moment, again and again, and says how often this process then
// held no lock in the kernel, though one of them had taken it.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { openLockFile } from "../src/lock-file.ts";
import { nodeFiles } from "../src/files.ts";

const [folder = "", rounds = "0"] = process.argv.slice(2);
const threads = 2;

function isLocked(path: string): boolean {
  return new RegExp(`POSIX .* WRITE ${process.pid} \\S+:${statSync(path).ino} `).test(
    readFileSync("/proc/locks", "utf8"),
  );
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
    new Worker(new URL(import.meta.url), { argv: [folder, rounds], workerData: { cells, isFirst: number === 0 } });
} else {
  const { cells: shared, isFirst } = workerData as { readonly cells: SharedArrayBuffer; readonly isFirst: boolean };
  const cells = new Int32Array(shared);
  let unlocked = 0;
  for (let round = 0; round < Number(rounds); round++) {
    const path = join(folder, String(round));
    together(cells);
    const lock = openLockFile(nodeFiles, path);
    const isTaken = isFirst && lock.tryLock();
    together(cells);
    if (isTaken && !isLocked(path)) unlocked++;
    together(cells);
    if (isTaken) lock.unlock();
    lock.close();
  }
  if (isFirst) process.stdout.write(String(unlocked));
}

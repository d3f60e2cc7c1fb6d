import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";

/** Under this name the threads of a process share one cell; each one gets it from the one that began it. */
const name = "throughline: the thread that opens a file that is locked";
const [free, taken] = [0, 1] as const;

/** Nobody is at it for so long, unless that thread was ended meanwhile, or its disk is very slow. */
const mostMs = 500;

const cell = sharedCell();

function sharedCell(): Int32Array {
  const found: unknown = getEnvironmentData(name);
  const shared = found instanceof SharedArrayBuffer ? found : new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  if (shared !== found) setEnvironmentData(name, shared);
  return new Int32Array(shared);
}

/**
 * Runs something while no other thread of this process runs something here. A lock of the system belongs to the
 * process, and whichever thread closes a descriptor of a file drops the locks that all of them have on it. SQLite
 * handles that for its own descriptors. Ours must be closed while no other thread has SQLite's lock on the file. Else
 * another process assumes that this one has ended, and deletes the log that it still writes, or writes to one that this
 * one deletes. Not to be called within itself.
 */
export function inOneThread<Result>(run: () => Result): Result {
  while (Atomics.compareExchange(cell, 0, free, taken) !== free)
    if (Atomics.wait(cell, 0, taken, mostMs) === "timed-out") break;
  try {
    return run();
  } finally {
    Atomics.store(cell, 0, free);
    Atomics.notify(cell, 0, 1);
  }
}

import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";

/**
 * The threads of a process share one cell under this name. Each thread gets the cell from the thread that started it.
 */
const name = "throughline: the thread that opens a file that is locked";
const [free, taken] = [0, 1] as const;

/** No thread takes longer than this, unless it was ended meanwhile or its disk is very slow. */
const mostMs = 500;

const cell = sharedCell();

function sharedCell(): Int32Array {
  const found: unknown = getEnvironmentData(name);
  const shared = found instanceof SharedArrayBuffer ? found : new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  if (shared !== found) setEnvironmentData(name, shared);
  return new Int32Array(shared);
}

/**
 * Runs a function while no other thread of this process runs a function here. Must not be called within itself.
 *
 * A lock of the system belongs to the process. A thread that closes a descriptor of a file drops the locks of all
 * threads on that file. SQLite handles this for its own descriptors. Throughline's descriptors must be closed while no
 * other thread has SQLite's lock on the file. Otherwise another process assumes that this process has ended. The other
 * process then deletes the log that this process still writes, or writes to a log that this process deletes.
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

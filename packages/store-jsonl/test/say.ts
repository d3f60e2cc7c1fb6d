import { writeSync } from "node:fs";

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Writes to standard output at once, so that nothing said is still in a buffer when the process is killed. Waits while a
 * pipe is full whose reader has not come to read it.
 */
export function say(text: string): void {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length;) {
    try {
      from += writeSync(1, bytes, from);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(cell, 0, 0, 1);
    }
  }
}

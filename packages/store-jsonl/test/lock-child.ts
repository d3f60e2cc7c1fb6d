// A process that takes one lock, says so, and keeps it: for ever ("hold"), or until told to let go on stdin.
// Arguments: lock path, "hold" or a number of rounds, each said as "held" and left again at once.
import { writeSync } from "node:fs";
import { systemRandom } from "@throughline/core/node";
import { nodeFiles } from "@throughline/store-jsonl";
import { kernelLocks } from "../src/lock-file.ts";
import { createSessionLocks } from "../src/session-lock.ts";

const [path = "", mode = "hold"] = process.argv.slice(2);
const locks = createSessionLocks({ files: nodeFiles, port: kernelLocks, random: systemRandom, timeoutMs: 600_000 });
const cell = new Int32Array(new SharedArrayBuffer(4));
if (mode === "hold") {
  writeSync(1, "waiting\n");
  await locks.hold([path], () => {
    writeSync(1, `held ${process.pid}\n`);
    // Synchronous, as a write is: whoever wants the lock gets it when this process is killed.
    Atomics.wait(cell, 0, 0);
  });
} else {
  for (let round = 0; round < Number(mode); round++) await locks.hold([path], () => undefined);
  writeSync(1, "done\n");
}

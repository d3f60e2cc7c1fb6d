// A process that takes one lock, says so, and keeps it: for ever ("hold"), or until told to let go on stdin.
// Arguments: lock path, "hold" or a number of rounds, each said as "held" and left again at once.
import { systemRandom } from "@throughline/core/internal";
import { nodeFiles } from "../src/files.ts";
import { kernelLocks } from "../src/lock-file.ts";
import { createSessionLocks } from "../src/session-lock.ts";
import { say } from "./say.ts";

const [path = "", mode = "hold"] = process.argv.slice(2);
const locks = createSessionLocks({ files: nodeFiles, port: kernelLocks, random: systemRandom, timeoutMs: 600_000 });
const cell = new Int32Array(new SharedArrayBuffer(4));
if (mode === "hold") {
  say("waiting\n");
  await locks.hold([path], () => {
    say(`held ${process.pid}\n`);
    // Synchronous, as a write is: whoever wants the lock gets it when this process is killed.
    Atomics.wait(cell, 0, 0);
  });
} else {
  for (let round = 0; round < Number(mode); round++) await locks.hold([path], () => undefined);
  say("done\n");
}

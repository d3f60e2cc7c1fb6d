// Edits an entry of a sessions.json as OpenClaw's file eras do, for so long: an exclusive lock file, the whole file read,
// changed, and put in place by a rename. Prints how many edits there were; each has left a field of its own.
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";

const [path = "", key = "", durationMs = "0"] = process.argv.slice(2);
const endMs = performance.now() + Number(durationMs);
let edits = 0;
while (performance.now() < endMs) {
  let lock: number;
  try {
    lock = openSync(`${path}.lock`, "wx");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await pause(2);
    continue;
  }
  writeSync(lock, JSON.stringify({ pid: process.pid, createdAt: new Date().toISOString() }));
  closeSync(lock);
  const entries = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, unknown>>;
  const entry = entries[key];
  if (entry !== undefined) {
    edits++;
    Object.assign(entry, { [`theirs${edits}`]: edits, updatedAt: Date.now() });
    writeFileSync(`${path}.edit`, JSON.stringify(entries, null, 2));
    renameSync(`${path}.edit`, path);
  }
  rmSync(`${path}.lock`);
  await pause(4);
}
process.stdout.write(String(edits));

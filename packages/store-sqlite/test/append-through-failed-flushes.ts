// Appends with keys while flushes fail, repeats each through the way that is asked for until it is acknowledged, and is
// killed. Every acknowledgement of an append that has to survive a power cut is one line of the file `acknowledged`.
import { spawnSync } from "node:child_process";
import { openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { hasErrorCode, type SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf, say } from "./append-drafts.ts";

const [path = "", way = "", only = ""] = process.argv.slice(2);
const acknowledgements = openSync(join(dirname(path), "acknowledged"), "a");
const appends = 9;

const open = (): SessionStore => createSqliteStore({ path, recover: false, searchFill: "on-demand" });

async function append(store: SessionStore, index: number): Promise<boolean> {
  // Every third may be lost with the power, and lies in the log before those that may not.
  const durability = index % 3 === 1 ? "process" : "disk";
  try {
    await store.append(refOf("a"), [say(`n${index} ${"x".repeat(500)}`)], { idempotencyKey: `k${index}`, durability });
  } catch (error) {
    if (!hasErrorCode(error, "STORE_IO") || error.outcome !== "unknown") throw error;
    return false;
  }
  if (durability === "disk") writeSync(acknowledgements, Buffer.from(`${index}\n`), 0, null, index * 8);
  return true;
}

function appendElsewhere(index: number): boolean {
  const args = ["--conditions=@throughline/source", process.argv[1] ?? "", path, "same", String(index)];
  const child = spawnSync(process.execPath, args, { env: { ...process.env, JW_FROM: "9999" }, encoding: "utf8" });
  if (child.stderr !== "") throw new Error(child.stderr);
  return child.signal === "SIGKILL";
}

const store = open();
for (let index = only === "" ? 0 : Number(only); index < (only === "" ? appends : Number(only) + 1); index++) {
  if (await append(store, index)) continue;
  const another = way === "another handle" ? open() : store;
  for (let attempt = 1; ; attempt++) {
    if (attempt === 20) throw new Error(`append ${index} is not acknowledged`);
    if (way === "another process" ? appendElsewhere(index) : await append(another, index)) break;
  }
}
process.kill(process.pid, "SIGKILL");

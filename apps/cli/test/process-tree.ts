import { execFileSync } from "node:child_process";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";

/**
 * Kills processes and all that descends from them, and waits until none is left. What ends with its terminal still writes:
 * a folder that is removed before that fills again.
 */
export async function endProcessTrees(roots: readonly number[]): Promise<void> {
  const pids = withDescendants(roots);
  for (const pid of pids) kill(pid);
  const untilMs = Date.now() + 30_000;
  while (table().some(({ pid }) => pids.has(pid))) {
    if (Date.now() > untilMs) throw new Error(`These processes do not end: ${[...pids].join(", ")}.`);
    await wait(20);
  }
}

function withDescendants(roots: readonly number[]): ReadonlySet<number> {
  const processes = table();
  const pids = new Set(roots);
  // A child may be listed before its parent.
  for (let size = 0; size < pids.size;) {
    size = pids.size;
    for (const { pid, parent } of processes) if (pids.has(parent)) pids.add(pid);
  }
  return pids;
}

/** Lists the processes of this machine without those that have ended and wait for their parents to look. */
function table(): readonly { readonly pid: number; readonly parent: number }[] {
  return execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([pid = "", , state = ""]) => pid !== "" && !state.startsWith("Z"))
    .map(([pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

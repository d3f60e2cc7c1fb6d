import { execFileSync } from "node:child_process";
import process from "node:process";
import { withClient } from "./store-under-test.ts";

/** Stops every process of a server on this machine, as a machine that hangs does. Returns what lets them go on. */
export async function freeze(url: string): Promise<() => void> {
  const main = await withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: string }>(
      "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid",
    );
    return Number(rows[0]?.pid);
  });
  if (!(main > 1)) throw new Error(`${url} names no main process.`);
  const pids = [main];
  const thaw = (): void => {
    for (const pid of pids) signal(pid, "SIGCONT");
  };
  // The main process is stopped first, so that it makes no further ones while they are listed.
  process.kill(main, "SIGSTOP");
  try {
    pids.push(...childrenOf(main));
    for (const pid of pids) signal(pid, "SIGSTOP");
  } catch (error) {
    thaw();
    throw error;
  }
  return thaw;
}

/** Lists the processes that another one started. An empty line is no process: 0 would be the group of this test. */
function childrenOf(pid: number): readonly number[] {
  const listed = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return listed
    .split(/\s+/)
    .filter((word) => word !== "")
    .map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // A process of one connection may end by itself.
    if ((error as { readonly code?: unknown }).code !== "ESRCH") throw error;
  }
}

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
  // The main process first, so that it makes no further ones.
  process.kill(main, "SIGSTOP");
  const listed = execFileSync("ps", ["-o", "pid=", "--ppid", String(main)], { encoding: "utf8" });
  const pids = [main, ...listed.trim().split(/\s+/).map(Number)];
  for (const pid of pids) signal(pid, "SIGSTOP");
  return () => {
    for (const pid of pids) signal(pid, "SIGCONT");
  };
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // A process of one connection may end by itself.
    if ((error as { readonly code?: unknown }).code !== "ESRCH") throw error;
  }
}

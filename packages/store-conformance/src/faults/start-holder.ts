import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";

interface HolderOptions {
  /** Names a Node script that takes a lock, prints a line once it has the lock, and keeps it. */
  readonly scriptPath: string;
  readonly args?: readonly string[];
  /** Holds the options of Node itself. @default those of this process */
  readonly execArgv?: readonly string[];
}

/** Represents a process that keeps a lock until it is killed. */
interface Holder {
  readonly pid: number;
  /** Kills the process with SIGKILL and resolves when it is gone. */
  kill(): Promise<void>;
}

/**
 * Starts a script and waits for its first line.
 * @throws {Error} when the script ends before it has printed one
 */
export async function startHolder({ scriptPath, args = [], execArgv }: HolderOptions): Promise<Holder> {
  const child = spawn(process.execPath, [...(execArgv ?? process.execArgv), scriptPath, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  const ended = once(child, "close");
  const early = ended.then(([code]) => {
    throw new Error(`${scriptPath} ended with ${String(code)} before it held anything: ${stderr}`);
  });
  await Promise.race([once(child.stdout, "data"), early]);
  early.catch(() => undefined);
  return {
    pid: child.pid ?? 0,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import type { Host } from "../host.ts";

/**
 * Starts this program again without THROUGHLINE_ variables, so that it does not find the user's store or configuration.
 */
export function spawnSelf(host: Host, args: readonly string[], signal: AbortSignal): ChildProcessWithoutNullStreams {
  const environment = Object.entries(host.environment).filter(([name]) => !name.startsWith("THROUGHLINE_"));
  return spawn(host.self.command, [...host.self.arguments, ...args], {
    cwd: host.workingDirectory,
    env: { ...Object.fromEntries(environment), NO_COLOR: "1" },
    stdio: "pipe",
    signal,
  });
}

/** Returns the JSON objects that the program printed. @throws when the exit code is not 0 */
export async function runSelf(
  host: Host,
  args: readonly string[],
  signal: AbortSignal,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const child = spawnSelf(host, [...args, "--json", "--quiet"], signal);
  child.stdin.end();
  const chunks: Buffer[] = [];
  const talk: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => talk.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0)
    throw new Error(`${args.join(" ")} ended with ${code}: ${Buffer.concat(talk).toString("utf8").trim()}`);
  const lines = Buffer.concat(chunks).toString("utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, unknown>);
}

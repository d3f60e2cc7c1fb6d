import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  portKinds,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import { spawn } from "node:child_process";
import process from "node:process";
import type { RandomSource } from "@throughline/core";

/** Options of `killProcess`. */
interface KillProcessOptions {
  /** A script for Node that prints a line for every acknowledged write. */
  readonly scriptPath: string;
  /** Arguments of the script. @default none */
  readonly args?: readonly string[];
  /** Options for Node itself. @default those of this process */
  readonly execArgv?: readonly string[];
  /** The environment of the process. @default that of this process */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The kill comes this long after the first acknowledgement, at most. @default 50 */
  readonly maxDelayMs?: number;
  /** Chooses when the kill comes. @default the system's */
  readonly random?: RandomSource;
}

/** What a killed process had acknowledged. */
interface KilledProcess {
  /** The lines that were printed whole before the process ended. */
  readonly acknowledged: readonly string[];
  /** False when the script ended by itself before it was killed. */
  readonly wasKilled: boolean;
  /** What the process printed as errors. */
  readonly stderr: string;
}

const { filledText, listOf, number, object, required, text: textKind } = optionKinds;
const killTable: OptionTable<KillProcessOptions> = {
  scriptPath: required(filledText),
  args: listOf(textKind),
  execArgv: listOf(textKind),
  env: object,
  maxDelayMs: number({ min: 0 }),
  random: portKinds.random,
};

/**
 * Starts a script, waits for its first acknowledgement, and kills it with SIGKILL a random moment later. What it
 * acknowledged must then be in the store.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export async function killProcess(options: KillProcessOptions): Promise<KilledProcess> {
  assertKnownOptions<KillProcessOptions>("killProcess", options, killTable);
  const { scriptPath, args = [], execArgv = process.execArgv, env, maxDelayMs = 50, random = systemRandom } = options;
  const child = spawn(process.execPath, [...execArgv, scriptPath, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    ...(env === undefined ? {} : { env: { ...env } }),
  });
  const acknowledged: string[] = [];
  let stderr = "";
  let text = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  const first = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      acknowledged.push(...lines);
      if (acknowledged.length > 0) resolve();
    });
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (_code, signal) => resolve(signal));
  });
  await Promise.race([first, ended]);
  await Promise.race([systemClock.sleep(random.uint32() % (maxDelayMs + 1)), ended]);
  child.kill("SIGKILL");
  return { wasKilled: (await ended) === "SIGKILL", acknowledged, stderr };
}

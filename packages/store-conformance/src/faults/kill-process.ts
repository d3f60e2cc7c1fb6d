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

/** Configures `killProcess`. */
interface KillProcessOptions {
  /** Names a Node script that prints a line for every acknowledged write. */
  readonly scriptPath: string;
  /** Holds the arguments of the script. @default none */
  readonly args?: readonly string[] | undefined;
  /** Holds the options of Node itself. @default those of this process */
  readonly execArgv?: readonly string[] | undefined;
  /** Holds the environment of the process. @default that of this process */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Limits the delay of the kill after the first acknowledgment, in milliseconds. @default 50 */
  readonly maxDelayMs?: number | undefined;
  /** Chooses the delay of the kill. @default the system's */
  readonly random?: RandomSource | undefined;
}

/** Holds what a killed process acknowledged and printed. */
interface KilledProcess {
  /** Holds the lines that were printed completely before the process ended. */
  readonly acknowledged: readonly string[];
  /** States whether the process was killed; false when the script ended by itself before. */
  readonly wasKilled: boolean;
  /** Holds the standard error output of the process. */
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
 * Starts a script, waits for its first acknowledgment, and kills it with SIGKILL after a random delay. A durable store
 * must contain all that the script acknowledged.
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

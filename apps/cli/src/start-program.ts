import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { constants as systemConstants } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { ThroughlineError } from "@throughline/core";
import type { CommandContext } from "./command.ts";

/**
 * Runs another program on this terminal, without a shell, and returns its exit code.
 * @throws {ThroughlineError} FILE_NOT_FOUND if the program is not on the path
 */
export async function startProgram(
  { host, signal }: Pick<CommandContext, "host" | "signal">,
  [name = "", ...words]: readonly string[],
  cwd: string,
): Promise<number> {
  const file = findProgram(host.environment["PATH"] ?? "", name);
  if (file === null) {
    throw new ThroughlineError("FILE_NOT_FOUND", `The program ${name} is not on the path.`, {
      outcome: "not-applied",
      details: { name },
      remedy: `Install ${name}, or leave out --run and run the printed command where ${name} is installed.`,
    });
  }
  // The program handles an interrupt of the terminal itself, and this process ends with it.
  host.onService?.();
  const child = spawn(file, words, { cwd, env: host.environment, stdio: "inherit" });
  const stop = (): void => void child.kill();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, ended) => {
        resolve(code ?? 128 + (ended === null ? 0 : systemConstants.signals[ended]));
      });
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A relative folder of the path is skipped, because it would mean a folder that a transcript names. */
export function findProgram(path: string, name: string): string | null {
  const files = path
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, name));
  return files.find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // The next folder of the path may have the program.
    return false;
  }
}

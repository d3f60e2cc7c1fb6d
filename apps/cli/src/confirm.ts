import { ThroughlineError } from "@throughline/core";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";
import { terminalSafe } from "./terminal-safe.ts";

export interface ConfirmOptions {
  /** `--yes`: every question is answered already. */
  readonly isYes: boolean;
  /** False with `--no-input` and its kin. */
  readonly isInputAllowed: boolean;
}

/**
 * Asks before something that cannot be taken back; anything but yes stops. Without a terminal nobody is asked: a script
 * must say `--yes`, and hears so before anything is done.
 * @throws {ThroughlineError} USAGE without a terminal, ABORTED when the answer is not yes
 */
export async function confirm(
  { stdin, stderr, signal }: Pick<Host, "stdin" | "stderr" | "signal">,
  { isYes, isInputAllowed }: ConfirmOptions,
  question: string,
): Promise<void> {
  if (isYes) return;
  if (!isInputAllowed || stdin.isTTY !== true || stderr.isTTY !== true)
    throw usageError(`${question} Nobody can be asked here.`, { question }, "Run it again with --yes if it is meant.");
  const { createInterface } = await import("node:readline/promises");
  const questions = createInterface({ input: stdin, output: stderr });
  try {
    const answer = await questions.question(`${terminalSafe(question)} [y/N] `, { signal });
    if (/^\s*y(es)?\s*$/i.test(answer)) return;
  } finally {
    questions.close();
  }
  throw new ThroughlineError("ABORTED", "The answer was not yes; nothing was changed.", {
    outcome: "not-applied",
    remedy: "Run the command again and answer y, or say --yes.",
  });
}

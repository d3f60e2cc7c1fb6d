import { ThroughlineError } from "@throughline/core";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";
import { terminalSafe } from "./terminal-safe.ts";

export interface ConfirmOptions {
  /** True for `--yes`, which answers every question. */
  readonly isYes: boolean;
  /** False with `--no-input` and the equivalent settings. */
  readonly isInputAllowed: boolean;
}

/**
 * Asks before an action that cannot be undone; any answer but yes stops. Without a terminal a script must pass `--yes`,
 * and gets the error before any change.
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

import { setImmediate as nextTurn } from "node:timers/promises";
import type { ReadStream } from "node:tty";
import { ThroughlineError } from "@throughline/core";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";
import { terminalSafe } from "./terminal-safe.ts";

export interface ConfirmOptions {
  /** True for `--yes`, which answers every question. */
  readonly isYes: boolean;
  /** Holds whether a person can be asked. */
  readonly canAsk: boolean;
}

/** Returns whether a person can be asked: a script must not wait for an answer. */
export function canAsk({ stdin, stderr }: Pick<Host, "stdin" | "stderr">, isInputAllowed: boolean): boolean {
  return isInputAllowed && stdin.isTTY === true && stderr.isTTY === true;
}

/**
 * Returns what asks for a secret on the terminal and does not show what is typed. What was typed before the question is
 * dropped: who answers early answers again at the question, and something else would get the second answer.
 */
export function askSecret({
  stdin,
  stderr,
  signal,
}: Pick<Host, "stdin" | "stderr" | "signal">): (question: string) => Promise<string> {
  return async (question) => {
    const { createInterface } = await import("node:readline/promises");
    const { Writable } = await import("node:stream");
    const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
    await dropTyped(stdin);
    const questions = createInterface({ input: stdin, output: unseen, terminal: true });
    try {
      stderr.write(terminalSafe(question));
      return await questions.question("", { signal });
    } finally {
      questions.close();
      stderr.write("\n");
    }
  };
}

/** Reads what waits on the terminal, also a line without its end, which only raw mode gives. */
async function dropTyped(stdin: Host["stdin"]): Promise<void> {
  const drop = (): void => {};
  (stdin as Partial<ReadStream>).setRawMode?.(true);
  stdin.on("data", drop).resume();
  // The event loop reads all that waits in one turn. Its first turn only begins to read.
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
  stdin.off("data", drop);
}

/**
 * Asks a question on the terminal, whose own line editing is used: nothing moves the cursor. Returns null where the input
 * ends.
 */
export async function askLine(
  { stdin, stderr, signal }: Pick<Host, "stdin" | "stderr" | "signal">,
  question: string,
): Promise<string | null> {
  const { createInterface } = await import("node:readline/promises");
  const questions = createInterface({ input: stdin, output: stderr, terminal: false });
  const ended = new Promise<null>((resolve) => questions.once("close", () => resolve(null)));
  try {
    return await Promise.race([questions.question(terminalSafe(question), { signal }), ended]);
  } finally {
    questions.close();
  }
}

/**
 * Asks before an action that cannot be undone; any answer but yes stops. Without a terminal a script must pass `--yes`,
 * and gets the error before any change.
 * @throws {ThroughlineError} USAGE without a terminal, ABORTED when the answer is not yes
 */
export async function confirm(
  { stdin, stderr, signal }: Pick<Host, "stdin" | "stderr" | "signal">,
  { isYes, canAsk }: ConfirmOptions,
  question: string,
): Promise<void> {
  if (isYes) return;
  if (!canAsk)
    throw usageError(`${question} Nobody can be asked here.`, { question }, "Run it again with --yes if it is meant.");
  const answer = await askLine({ stdin, stderr, signal }, `${question} [y/N] `);
  if (answer !== null && /^\s*y(es)?\s*$/i.test(answer)) return;
  throw new ThroughlineError("ABORTED", "The answer was not yes; nothing was changed.", {
    outcome: "not-applied",
    remedy: "Run the command again and answer y, or say --yes.",
  });
}

import { spawn } from "@lydell/node-pty";
import { binPath, cleanEnvironment, sourceCondition } from "./harness.ts";
import { endProcessTrees } from "./process-tree.ts";

/** The command line in a real terminal. */
export interface Terminal extends AsyncDisposable {
  /** Everything that was written so far, as it came. */
  readonly raw: () => string;
  /** The same without what moves the cursor and colors. */
  readonly text: () => string;
  write(keys: string): void;
  resize(columns: number, rows: number): void;
  /** Waits until the text holds this after what was waited for last. */
  waitFor(wanted: string | RegExp, timeoutMs?: number): Promise<void>;
  /** Waits for the next prompt that reads a line, and for all that was printed before it. */
  waitForPrompt(timeoutMs?: number): Promise<void>;
  exitCode(): Promise<number>;
  kill(signal?: string): void;
}

export interface TerminalOptions {
  readonly columns?: number;
  readonly environment?: Readonly<Record<string, string>>;
  /** A script that starts the command line. @default the command line itself */
  readonly script?: string;
}

/** Types a line and waits for the next prompt. */
export async function say(terminal: Terminal, line: string): Promise<void> {
  terminal.write(`${line}\r`);
  await terminal.waitForPrompt();
}

export function runInTerminal(home: string, args: readonly string[], options: TerminalOptions = {}): Terminal {
  const child = spawn(process.execPath, [sourceCondition, options.script ?? binPath, ...args], {
    name: options.environment?.["TERM"] ?? "xterm-256color",
    cols: options.columns ?? 80,
    rows: 24,
    cwd: home,
    env: cleanEnvironment(home, options.environment),
  });
  let raw = "";
  let seen = 0;
  let hasExited = false;
  const exited = new Promise<number>((resolve) =>
    child.onExit(({ exitCode }) => {
      hasExited = true;
      resolve(exitCode);
    }),
  );
  child.onData((data) => (raw += data));
  const text = (): string => plain(raw);
  let prompts = 0;
  return {
    raw: () => raw,
    text,
    write: (keys) => child.write(keys),
    resize: (columns, rows) => child.resize(columns, rows),
    waitFor: async (wanted, timeoutMs = 60_000) => {
      const untilMs = Date.now() + timeoutMs;
      for (;;) {
        const rest = text().slice(seen);
        const match = typeof wanted === "string" ? rest.indexOf(wanted) : (wanted.exec(rest)?.index ?? -1);
        if (match >= 0) {
          const length = typeof wanted === "string" ? wanted.length : (wanted.exec(rest)?.[0].length ?? 0);
          seen += match + length;
          return;
        }
        if (Date.now() > untilMs || hasExited)
          throw new Error(
            `${String(wanted)} did not come${hasExited ? " before the end" : ""}; after what was seen: ${JSON.stringify(rest.slice(-2000))}`,
          );
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    waitForPrompt: async (timeoutMs = 60_000) => {
      const untilMs = Date.now() + timeoutMs;
      while (raw.split(endOfOutput).length - 1 <= prompts) {
        if (Date.now() > untilMs || hasExited)
          throw new Error(`No prompt${hasExited ? " before the end" : ""}: ${JSON.stringify(text().slice(-2000))}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      prompts += 1;
      seen = text().length;
    },
    exitCode: () => exited,
    kill: (signal) => child.kill(signal),
    [Symbol.asyncDispose]: async () => {
      // What the program started writes into the home too.
      if (!hasExited) await endProcessTrees([child.pid]);
      await exited;
    },
  };
}

/** The mark of the shell integration that a prompt follows. */
const endOfOutput = "\u001b]133;D\u0007";

/**
 * Without sequences, and with what a carriage return or an erase has overwritten left as it was written. What is written
 * above the cursor begins a line.
 */
// oxlint-disable-next-line no-control-regex -- sequences are what it takes out
const sequence = /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[ -/]*[0-~]/g;

// oxlint-disable-next-line no-control-regex -- the cursor goes up by a sequence
const upwards = /\r(?=\u001b\[\d+A)/g;

function plain(raw: string): string {
  return raw.replace(upwards, "\n").replace(sequence, "").replace(/\r+\n/g, "\n").replaceAll("\r", "");
}

import type { Readable, Writable } from "node:stream";

type TextStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };

/** A terminal without a known size states none or 0, so the usual width applies. */
export function columnsOf({ columns = 0 }: Pick<TextStream, "columns">, usual: number = 80): number {
  return columns > 0 ? columns : usual;
}

/** A terminal without a known size states none or 0, so 24 rows apply. */
export function rowsOf({ rows = 0 }: Pick<TextStream, "rows">): number {
  return rows > 0 ? rows : 24;
}

export interface Host {
  /** Excludes the program's name. */
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly workingDirectory: string;
  readonly userHome: string;
  /** Aborts on an interrupt or a termination request. */
  readonly signal: AbortSignal;
  /**
   * Stops the processes of this terminal's job, as Ctrl-Z does. The function runs when they continue.
   * @default the system has no jobs
   */
  readonly stopProcess?: (onContinue: () => void) => void;
  /** Does what Ctrl-C does where the terminal makes no signal of it. @default nothing */
  readonly interrupt?: () => void;
  /** Runs when the command is a service, for which an interrupt only requests a stop. */
  readonly onService?: () => void;
  /** Returns the text that starts this program here. @default throughline */
  readonly commandName?: () => string;
  /** Explains how to repair this installation. @default the remedy of the error */
  readonly reinstallRemedy?: string;
  /** Returns a name that differs between the terminals of this machine. @default one name for all */
  readonly terminalName?: () => string;
  readonly self: { readonly command: string; readonly arguments: readonly string[] };
}

import type { Readable, Writable } from "node:stream";

/** A stream that may be a terminal. */
type TextStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };

/** The columns of a terminal. One without a size states none, or 0, and gets the usual ones. */
export function columnsOf({ columns = 0 }: Pick<TextStream, "columns">, usual: number = 80): number {
  return columns > 0 ? columns : usual;
}

/** The rows of a terminal, in the same way. */
export function rowsOf({ rows = 0 }: Pick<TextStream, "rows">): number {
  return rows > 0 ? rows : 24;
}

/** The process as the command line sees it. */
export interface Host {
  /** What follows the program's name. */
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly workingDirectory: string;
  readonly userHome: string;
  /** Aborted by an interrupt from the keyboard or a request to end. */
  readonly signal: AbortSignal;
  /** Told that the command is a service, which an interrupt only asks to stop. */
  readonly onService?: () => void;
  /** What has to be typed to start this program. @default throughline */
  readonly commandName?: () => string;
  /** How this installation is repaired, as a sentence. @default the remedy of the error */
  readonly reinstallRemedy?: string;
  /** What starts this program again. */
  readonly self: { readonly command: string; readonly arguments: readonly string[] };
}

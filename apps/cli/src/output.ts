import { setImmediate as pause } from "node:timers/promises";
import { styleText } from "node:util";
import type { Writable } from "node:stream";
import type { Finding } from "@throughline/core";
import { columnsOf, type Host } from "./host.ts";
import { asciiText, shorten } from "./cells.ts";
import { jsonLine, jsonPieces, terminalSafe, terminalSafeLine, type LongText } from "./terminal-safe.ts";
import { layoutTable } from "./text-table.ts";
import { wrapText } from "./wrap-text.ts";
import type { TableColumn } from "./text-table.ts";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

type TableHeading = "terminal" | "always" | "never";

/** The text is made safe before it is styled, so a piece may hold any text. */
export type Piece = string | { readonly text: string; readonly style: Style };

interface ParagraphOptions {
  /** Precedes the lines after a break. @default none */
  readonly indent?: string;
  readonly style?: Style;
}

export interface OutputOptions {
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly color: "auto" | "never";
  /** Writes signs of ASCII to a terminal, which shows no others. @default false */
  readonly isAscii?: boolean;
  /** Rewrites commands in a text to the form that works here. @default the text itself */
  readonly asTyped?: (text: string) => string;
  /** Ends long outputs between two pieces. @default no abort */
  readonly signal?: AbortSignal;
}

/**
 * Only this code writes to the streams. stdout carries data, and stderr carries messages. Every text passes
 * `terminalSafe`; with `--json` every line of both streams is one JSON object.
 */
export interface Output {
  readonly isJson: boolean;
  readonly isTerminal: boolean;
  readonly isQuiet: boolean;
  /** Writes one object as one line. */
  object(value: { readonly kind: string; readonly [field: string]: unknown }): Promise<void>;
  /**
   * Writes an object value by value, because its JSON may exceed the maximum string length. No other write may run
   * meanwhile.
   */
  largeObject(value: { readonly kind: string; readonly [field: string]: unknown }): Promise<void>;
  /** Closes a list, so that a reader can detect a truncated one. */
  end(count: number, nextCursor?: string | null): Promise<void>;
  /** Writes a line to stdout; line feeds inside pieces stay. */
  line(...pieces: readonly Piece[]): Promise<void>;
  /** Wraps lines on a terminal and leaves them whole elsewhere. */
  paragraph(text: string, options?: ParagraphOptions): Promise<void>;
  /** Writes a text that may exceed the maximum string length, and a line feed. */
  longText(text: LongText): Promise<void>;
  /** Aligns and cuts cells to the terminal's width. Elsewhere it separates whole cells by tabs. */
  table(columns: readonly TableColumn[], rows: readonly (readonly string[])[], heading?: TableHeading): Promise<void>;
  /** Writes a piece of a streamed text at once. */
  stream(text: string): Promise<void>;
  /** Rewrites commands in a text to the form that works here. */
  asTyped(text: string): string;
  bytes(chunk: Uint8Array): Promise<void>;
  flush(): Promise<void>;
  /** Prints a message to stderr unless output is quiet. */
  note(message: string): void;
  /** Prints an event to stderr unless output is quiet: its message, or the whole event with `--json`. */
  event(event: { readonly kind: "event"; readonly message: string }): void;
  /** Prints a finding that is not the command's result to stderr. */
  finding(finding: Finding): void;
  /** Prints the current step, on a terminal only: one line that the next step overwrites. */
  progress(message: string): void;
  /** Must run before other output goes to the progress line. */
  clearProgress(): void;
  /** Whether styles may be written to stdout. */
  readonly isColored: boolean;
  /** Writes the report of an error to stderr, also when output is quiet. */
  problem(report: string): void;
  /** Sends what would be written to the terminal to this screen; null ends that. Other streams are written as before. */
  redirect(screen: TerminalScreen | null): void;
  /** Runs work that uses the terminal by itself, such as a question. A screen leaves the terminal meanwhile. */
  apart<Result>(work: () => Promise<Result>, options?: { readonly forgetsKeys: boolean }): Promise<Result>;
}

/** Keeps rows at the bottom of the terminal. */
export interface TerminalScreen {
  /** Writes the text above the rows. */
  print(text: string): void;
  /** Leaves the terminal to something else until `resume`. `forgetsKeys` drops keys that nothing has read yet. */
  suspend(options?: { readonly forgetsKeys: boolean }): void;
  resume(): void;
}

const levels = ["debug", "info", "warn", "error"];
const bufferLimit = 64 * 1024;

export function createOutput(host: Pick<Host, "stdout" | "stderr">, options: OutputOptions): Output {
  const { asTyped = (text: string): string => text } = options;
  const redirection: Redirection = { screen: null };
  const messages = createMessages(host.stderr, { ...options, asTyped }, redirection);
  const results = createResults(host.stdout, options, messages, redirection);
  const redirect: Output["redirect"] = (screen) => {
    redirection.screen = screen;
  };
  const apart: Output["apart"] = async (work, options) => {
    await results.flush();
    const { screen } = redirection;
    screen?.suspend(options);
    try {
      return await work();
    } finally {
      screen?.resume();
    }
  };
  return { isJson: options.isJson, isQuiet: options.isQuiet, asTyped, ...results, ...messages, redirect, apart };
}

type Messages = Pick<Output, "note" | "event" | "finding" | "progress" | "clearProgress" | "problem">;
type Results = Omit<Output, keyof Messages | "isJson" | "isQuiet" | "asTyped" | "redirect" | "apart">;

interface Redirection {
  screen: TerminalScreen | null;
}

/** Writes messages to stderr, and keeps the progress line apart from them. */
function createMessages(
  stderr: Host["stderr"],
  { isJson, isQuiet, logLevel, asTyped, isAscii = false }: OutputOptions & Pick<Output, "asTyped">,
  redirection: Redirection,
): Messages {
  const isShown = (level: string): boolean => !isQuiet && levels.indexOf(level) >= levels.indexOf(logLevel);
  const shownFindings = new Set<string>();
  let hasProgress = false;
  const clearProgress = (): void => {
    if (hasProgress) stderr.write("\r\u001b[K");
    hasProgress = false;
  };
  const talk = (text: string): void => {
    clearProgress();
    if (redirection.screen !== null && stderr.isTTY === true) redirection.screen.print(text);
    else stderr.write(isAscii && stderr.isTTY === true ? asciiText(text) : text);
  };
  return {
    note: (message) => {
      if (isShown("info"))
        talk(isJson ? `${jsonLine({ kind: "note", message })}\n` : `${terminalSafe(asTyped(message))}\n`);
    },
    event: (event) => {
      if (isShown("info")) talk(isJson ? `${jsonLine(event)}\n` : `${terminalSafe(event.message)}\n`);
    },
    finding: (finding) => {
      if (!isShown(finding.severity === "info" ? "info" : "warn")) return;
      // A store may report the same problem at each read of a file.
      const identity = jsonLine(finding);
      if (shownFindings.has(identity)) return;
      shownFindings.add(identity);
      talk(isJson ? `${jsonLine({ kind: "finding", ...finding })}\n` : `${findingText(finding)}\n`);
    },
    progress: (message) => {
      if (stderr.isTTY !== true || isJson || !isShown("info") || redirection.screen !== null) return;
      // The last column stays free. A character there moves the cursor to the next line, and the next message would not
      // overwrite this one.
      const cells = Math.max(1, columnsOf(stderr) - 1);
      const line = terminalSafeLine(message);
      const shown = isAscii ? shorten(asciiText(line), cells, "middle", "...") : shorten(line, cells);
      stderr.write(`\r\u001b[K${shown}`);
      hasProgress = true;
    },
    clearProgress,
    problem: talk,
  };
}

/** Writes the results of a command to stdout. */
function createResults(
  stdout: Host["stdout"],
  options: OutputOptions,
  { clearProgress }: Messages,
  redirection: Redirection,
): Results {
  const isTerminal = stdout.isTTY === true;
  const isColored = isTerminal && options.color === "auto";
  const isAscii = isTerminal && options.isAscii === true;
  const buffer = new OutputBuffer(stdout, clearProgress, { signal: options.signal, redirection });
  const write = (text: string): Promise<void> => buffer.write(text);
  const safe = (text: string): string => (isAscii ? asciiText(terminalSafe(text)) : terminalSafe(text));
  const render = (piece: Piece): string => {
    const text = safe(typeof piece === "string" ? piece : piece.text);
    return typeof piece === "string" || !isColored ? text : styleText(piece.style, text, { validateStream: false });
  };
  return {
    isTerminal,
    isColored,
    object: (value) => write(`${jsonLine(value)}\n`),
    largeObject: async (value) => {
      for (const piece of jsonPieces(value)) await write(piece);
      await write("\n");
    },
    end: (count, nextCursor = null) => write(`${jsonLine({ kind: "end", count, nextCursor })}\n`),
    line: (...pieces) => write(`${pieces.map(render).join("")}\n`),
    paragraph: async (text, { indent = "", style } = {}) => {
      const wrapped = wrapText(safe(text), isTerminal ? columnsOf(stdout) : null, indent);
      await write(`${render(style === undefined ? wrapped : { text: wrapped, style })}\n`);
    },
    longText: async ({ pieces }) => {
      for (const piece of pieces()) await write(terminalSafe(piece));
      await write("\n");
    },
    table: async (columns, rows, heading = "terminal") => {
      const width = isTerminal ? columnsOf(stdout) : null;
      if (!isTerminal && heading === "always") await write(`${columns.map(({ title }) => title).join("\t")}\n`);
      for (const { text, isHeading } of layoutTable(columns, rows, width, isAscii)) {
        if (isHeading && heading === "never") continue;
        await write(`${isHeading && isColored ? styleText("bold", text, { validateStream: false }) : text}\n`);
      }
    },
    stream: (text) => buffer.writeNow(terminalSafe(text)),
    bytes: (chunk) => buffer.bytes(chunk),
    flush: () => buffer.flush(),
  };
}

class OutputBuffer {
  readonly #stdout: Writable;
  readonly #clearProgress: () => void;
  readonly #signal: AbortSignal | undefined;
  readonly #redirection: Redirection;
  #held = "";

  constructor(
    stdout: Writable,
    clearProgress: () => void,
    { signal, redirection }: { readonly signal: AbortSignal | undefined; readonly redirection: Redirection },
  ) {
    this.#stdout = stdout;
    this.#clearProgress = clearProgress;
    this.#signal = signal;
    this.#redirection = redirection;
  }

  async write(text: string): Promise<void> {
    this.#held += text;
    if (this.#held.length < bufferLimit) return;
    await this.flush();
    await this.#goOn();
  }

  writeNow(text: string): Promise<void> {
    this.#held += text;
    return this.flush();
  }

  async bytes(chunk: Uint8Array): Promise<void> {
    await this.flush();
    await writeAll(this.#stdout, chunk);
    await this.#goOn();
  }

  async flush(): Promise<void> {
    this.#clearProgress();
    const text = this.#held;
    this.#held = "";
    if (text === "") return;
    if (this.#redirection.screen !== null) this.#redirection.screen.print(text);
    else await writeAll(this.#stdout, text);
  }

  /** Writing buffered data never yields to the event loop by itself, but an interrupt needs that. */
  async #goOn(): Promise<void> {
    await pause();
    this.#signal?.throwIfAborted();
  }
}

export function findingText(finding: Finding): string {
  const file = finding.path ?? finding.key ?? "";
  const place = [file, finding.line].filter((part) => part !== null && part !== "").join(":");
  // The path of a whole store does not tell which session is meant.
  const session = finding.path === null || finding.line !== null ? null : finding.key;
  const message = finding.repaired ? `${finding.message} (repaired)` : finding.message;
  return terminalSafeLine(
    `${place === "" ? "" : `${place}: `}${session === null ? "" : `${session}: `}${finding.severity}: ${finding.code}: ${message}`,
  );
}

/** Applies backpressure: waits while the reader is slower. */
function writeAll(stream: Writable, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    // A reader that has gone raises the stream's error event, which ends the program. This wait must end as well.
    if (stream.write(data) || stream.destroyed) resolve();
    else {
      const done = (): void => {
        stream.off("drain", done);
        stream.off("close", done);
        resolve();
      };
      stream.on("drain", done);
      stream.on("close", done);
    }
  });
}

import { setImmediate as pause } from "node:timers/promises";
import { styleText } from "node:util";
import type { Writable } from "node:stream";
import type { Finding } from "@throughline/core";
import { columnsOf, type Host } from "./host.ts";
import { shorten } from "./cells.ts";
import { jsonLine, jsonPieces, terminalSafe, terminalSafeLine, type LongText } from "./terminal-safe.ts";
import { layoutTable } from "./text-table.ts";
import { wrapText } from "./wrap-text.ts";
import type { TableColumn } from "./text-table.ts";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Where the titles of a table's columns are printed. */
type TableHeading = "terminal" | "always" | "never";

/** A piece of a line. Whatever its text holds, it is made safe before it is styled. */
export type Piece = string | { readonly text: string; readonly style: Style };

/** How a text for people is laid out. */
interface ParagraphOptions {
  /** Before the lines that follow a break. @default none */
  readonly indent?: string;
  readonly style?: Style;
}

export interface OutputOptions {
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly color: "auto" | "never";
  /** Puts commands in a text for people as they are typed here. @default the text itself */
  readonly asTyped?: (text: string) => string;
  /** Ends long outputs between two pieces. @default nothing does */
  readonly signal?: AbortSignal;
}

/**
 * The only place that writes to the streams. stdout is data, stderr is talk. Every text passes `terminalSafe`; with
 * `--json` every line of both streams is one JSON object.
 */
export interface Output {
  readonly isJson: boolean;
  readonly isTerminal: boolean;
  readonly isQuiet: boolean;
  /** One object on stdout, as one line. */
  object(value: { readonly kind: string; readonly [field: string]: unknown }): Promise<void>;
  /** One object that may be longer than a text can be: it is written value by value. Nothing else writes meanwhile. */
  largeObject(value: { readonly kind: string; readonly [field: string]: unknown }): Promise<void>;
  /** Closes a list; without this line it was cut. */
  end(count: number, nextCursor?: string | null): Promise<void>;
  /** A line of text on stdout; line feeds within pieces stay. */
  line(...pieces: readonly Piece[]): Promise<void>;
  /** A text for people on stdout: its lines are wrapped on a terminal, and whole elsewhere. */
  paragraph(text: string, options?: ParagraphOptions): Promise<void>;
  /** A text that may be longer than a string can be, and a line feed. */
  longText(text: LongText): Promise<void>;
  /** Aligned and cut to the width on a terminal, else separated by tabs and whole. */
  table(columns: readonly TableColumn[], rows: readonly (readonly string[])[], heading?: TableHeading): Promise<void>;
  /** A piece of a text that is still coming: made safe, and written at once. */
  stream(text: string): Promise<void>;
  /** A text for people, with the commands in it as they are typed here. */
  asTyped(text: string): string;
  /** Data as it is, for files and pipes. */
  bytes(chunk: Uint8Array): Promise<void>;
  /** Writes out what is held back. */
  flush(): Promise<void>;
  /** Something worth knowing, on stderr; nothing when quiet. */
  note(message: string): void;
  /** Something that happened, on stderr: its message for people, the whole of it with `--json`; nothing when quiet. */
  event(event: { readonly kind: "event"; readonly message: string }): void;
  /** A finding beside the actual result, on stderr. */
  finding(finding: Finding): void;
  /** Prints the current step, on a terminal only: one line, cut to the width, overwritten by the next. */
  progress(message: string): void;
  /** Takes the progress away, before something else is written there. */
  clearProgress(): void;
}

const levels = ["debug", "info", "warn", "error"];
const bufferLimit = 64 * 1024;

export function createOutput(host: Pick<Host, "stdout" | "stderr">, options: OutputOptions): Output {
  const { stdout, stderr } = host;
  const { asTyped = (text: string): string => text } = options;
  const isTerminal = stdout.isTTY === true;
  const isColored = isTerminal && options.color === "auto";
  const isShown = (level: string): boolean =>
    !options.isQuiet && levels.indexOf(level) >= levels.indexOf(options.logLevel);
  const shownFindings = new Set<string>();
  let held = "";
  let hasProgress = false;

  // The last column stays free: a terminal moves to the next line behind it, and the next message would leave this one.
  const progressCells = (): number => Math.max(1, columnsOf(stderr) - 1);
  const clearProgress = (): void => {
    if (hasProgress) stderr.write("\r\u001b[K");
    hasProgress = false;
  };
  const flush = async (): Promise<void> => {
    clearProgress();
    const text = held;
    held = "";
    if (text !== "") await writeAll(stdout, text);
  };
  // What is in memory and goes into a file is written without a turn for anything else; an interrupt needs one.
  const goOn = async (): Promise<void> => {
    await pause();
    options.signal?.throwIfAborted();
  };
  const write = async (text: string): Promise<void> => {
    held += text;
    if (held.length < bufferLimit) return;
    await flush();
    await goOn();
  };
  const talk = (text: string): void => {
    clearProgress();
    stderr.write(text);
  };
  const render = (piece: Piece): string => {
    const text = terminalSafe(typeof piece === "string" ? piece : piece.text);
    return typeof piece === "string" || !isColored ? text : styleText(piece.style, text, { validateStream: false });
  };

  return {
    isJson: options.isJson,
    isTerminal,
    isQuiet: options.isQuiet,
    asTyped,
    object: (value) => write(`${jsonLine(value)}\n`),
    largeObject: async (value) => {
      for (const piece of jsonPieces(value)) await write(piece);
      await write("\n");
    },
    end: (count, nextCursor = null) => write(`${jsonLine({ kind: "end", count, nextCursor })}\n`),
    line: (...pieces) => write(`${pieces.map(render).join("")}\n`),
    paragraph: async (text, { indent = "", style } = {}) => {
      const wrapped = wrapText(terminalSafe(text), isTerminal ? columnsOf(stdout) : null, indent);
      await write(`${render(style === undefined ? wrapped : { text: wrapped, style })}\n`);
    },
    longText: async ({ pieces }) => {
      for (const piece of pieces()) await write(terminalSafe(piece));
      await write("\n");
    },
    table: async (columns, rows, heading = "terminal") => {
      const width = isTerminal ? columnsOf(stdout) : null;
      if (!isTerminal && heading === "always") await write(`${columns.map(({ title }) => title).join("\t")}\n`);
      for (const { text, isHeading } of layoutTable(columns, rows, width)) {
        if (isHeading && heading === "never") continue;
        await write(`${isHeading && isColored ? styleText("bold", text, { validateStream: false }) : text}\n`);
      }
    },
    stream: (text) => {
      held += terminalSafe(text);
      return flush();
    },
    bytes: async (chunk) => {
      await flush();
      await writeAll(stdout, chunk);
      await goOn();
    },
    flush,
    note: (message) => {
      if (isShown("info"))
        talk(options.isJson ? `${jsonLine({ kind: "note", message })}\n` : `${terminalSafe(asTyped(message))}\n`);
    },
    event: (event) => {
      if (isShown("info")) talk(options.isJson ? `${jsonLine(event)}\n` : `${terminalSafe(event.message)}\n`);
    },
    finding: (finding) => {
      if (!isShown(finding.severity === "info" ? "info" : "warn")) return;
      // A store may meet the same trouble at each look at a file.
      const identity = jsonLine(finding);
      if (shownFindings.has(identity)) return;
      shownFindings.add(identity);
      talk(options.isJson ? `${jsonLine({ kind: "finding", ...finding })}\n` : `${findingText(finding)}\n`);
    },
    progress: (message) => {
      if (stderr.isTTY !== true || options.isJson || !isShown("info")) return;
      stderr.write(`\r\u001b[K${shorten(terminalSafeLine(message), progressCells())}`);
      hasProgress = true;
    },
    clearProgress,
  };
}

/** A finding as one line: where, how bad, what. */
export function findingText(finding: Finding): string {
  const file = finding.path ?? finding.key ?? "";
  const place = [file, finding.line].filter((part) => part !== null && part !== "").join(":");
  // The file of a whole store says nothing of which session it is.
  const session = finding.path === null || finding.line !== null ? null : finding.key;
  const message = finding.repaired ? `${finding.message} (repaired)` : finding.message;
  return terminalSafeLine(
    `${place === "" ? "" : `${place}: `}${session === null ? "" : `${session}: `}${finding.severity}: ${finding.code}: ${message}`,
  );
}

/** Waits when the reader is slower than we are. */
function writeAll(stream: Writable, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    // A reader that has gone is the stream's error event, which ends the program; the wait must end as well.
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

import { emitKeypressEvents } from "node:readline";
import type { ReadStream } from "node:tty";
import type { Host } from "../host.ts";
import { emptyBuffer, insertText } from "./edit-buffer.ts";
import type { EditBuffer } from "./edit-buffer.ts";
import { OpenSearch } from "./history-search.ts";
import { applyKey } from "./edit-keys.ts";
import type { Key } from "./edit-keys.ts";
import { createEditRegion, type EditRegion } from "./edit-region.ts";
import type { InputHistory } from "./input-history.ts";
import { terminalSafe } from "../terminal-safe.ts";

type Submission = { readonly kind: "text"; readonly text: string } | { readonly kind: "leave"; readonly code: number };

export interface LineEditor {
  /** Resolves with the next submission; lines typed before the call count. */
  read(): Promise<Submission>;
  /** Prints a line above the typed text, or a plain line while no read is active. */
  say(text: string): void;
  /** Handles Ctrl-C while no read is active. */
  onInterrupt(listener: (() => void) | null): void;
  /** Restores the terminal's mode. */
  close(): void;
}

export interface LineEditorOptions {
  readonly prompt: string;
  readonly history: InputHistory;
  readonly canMoveCursor: boolean;
}

/** A second Ctrl-C within this time exits. */
const leaveWithinMs = 2000;
const interruptedExitCode = 130;

/**
 * Reads lines from a terminal in raw mode. Only the rows being typed are ever redrawn, so printed output stays
 * untouched. A paste of several lines is one text and not several turns.
 */
export function createLineEditor(
  host: Pick<Host, "stdin" | "stdout" | "signal">,
  options: LineEditorOptions,
): LineEditor {
  const editor = new TerminalEditor(host.stdout, options);
  const stopListening = listenToTerminal(host, options, editor);
  return {
    read: () => editor.read(),
    say: (text) => editor.say(text),
    onInterrupt: (listener) => editor.onInterrupt(listener),
    close: stopListening,
  };
}

/** Sets the terminal to raw mode. @returns a function that restores it */
function listenToTerminal(
  { stdin, stdout, signal }: Pick<Host, "stdin" | "stdout" | "signal">,
  { canMoveCursor }: LineEditorOptions,
  editor: TerminalEditor,
): () => void {
  const onKey = (character: string | undefined, key: Key): void => editor.press(character, key);
  const onResize = (): void => editor.redraw();
  const onAbort = (): void => editor.leave(interruptedExitCode);
  emitKeypressEvents(stdin);
  (stdin as Partial<ReadStream>).setRawMode?.(true);
  stdin.on("keypress", onKey);
  stdin.on("end", onAbort);
  stdout.on("resize", onResize);
  signal.addEventListener("abort", onAbort, { once: true });
  stdin.resume();
  if (canMoveCursor) stdout.write(bracketedPaste.on);
  return () => {
    stdin.off("keypress", onKey);
    stdin.off("end", onAbort);
    stdout.off("resize", onResize);
    signal.removeEventListener("abort", onAbort);
    if (canMoveCursor) stdout.write(bracketedPaste.off);
    (stdin as Partial<ReadStream>).setRawMode?.(false);
    stdin.pause();
  };
}

/** Holds the typed text, and what a key does to it. */
class TerminalEditor {
  readonly #stdout: Host["stdout"];
  readonly #options: LineEditorOptions;
  readonly #region: EditRegion;
  #buffer: EditBuffer = emptyBuffer;
  #paste: string | null = null;
  #search: { readonly open: OpenSearch; readonly before: EditBuffer } | null = null;
  #waiting: ((submission: Submission) => void) | null = null;
  readonly #queue: Submission[] = [];
  #interrupt: (() => void) | null = null;
  #interruptedAtMs = Number.NEGATIVE_INFINITY;

  constructor(stdout: Host["stdout"], options: LineEditorOptions) {
    this.#stdout = stdout;
    this.#options = options;
    this.#region = createEditRegion(stdout, options);
  }

  read(): Promise<Submission> {
    const next = this.#queue.shift();
    if (next !== undefined) {
      if (next.kind === "text") this.#stdout.write(`${this.#options.prompt}${terminalSafe(next.text)}\n`);
      return Promise.resolve(next);
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#region.draw(this.#buffer, emptyBuffer);
    });
  }

  say(text: string): void {
    if (this.#waiting === null) this.#stdout.write(`${text}\n`);
    else this.#region.hint(this.#buffer, text);
  }

  onInterrupt(listener: (() => void) | null): void {
    this.#interrupt = listener;
  }

  redraw(): void {
    if (this.#waiting !== null) this.#region.draw(this.#buffer, this.#buffer);
  }

  leave(code: number): void {
    this.#submit({ kind: "leave", code });
  }

  press(character: string | undefined, key: Key): void {
    const { canMoveCursor, history } = this.#options;
    if (this.#paste === null && key.name !== "paste-start" && this.#isSearched(character, key)) return;
    if (key.name === "paste-start") this.#paste = "";
    else if (key.name === "paste-end") {
      this.#change(insertText(this.#buffer, cleanPaste(this.#paste ?? "")));
      this.#paste = null;
    } else if (this.#paste !== null) this.#paste += key.sequence ?? character ?? "";
    else if (key.ctrl === true && key.name === "c") this.#cancel();
    else if (key.ctrl === true && key.name === "d" && this.#buffer.text === "") this.leave(0);
    else if (key.ctrl === true && key.name === "l" && canMoveCursor) this.#region.clearScreen(this.#buffer);
    else if (isPlainEnter(key)) this.#enter();
    else {
      const next = applyKey(this.#buffer, character, key, history);
      if (next !== null && (canMoveCursor || isSimple(this.#buffer, next))) this.#change(next);
    }
  }

  #change(next: EditBuffer): void {
    const before = this.#buffer;
    this.#buffer = next;
    if (this.#waiting !== null) this.#region.draw(next, before);
  }

  #submit(submission: Submission): void {
    if (this.#waiting === null) {
      this.#queue.push(submission);
      return;
    }
    const resolve = this.#waiting;
    this.#waiting = null;
    this.#region.leave(this.#buffer);
    resolve(submission);
  }

  #enter(): void {
    const { text, caret } = this.#buffer;
    // A backslash at the end continues the line, as in a shell.
    if (text.endsWith("\\") && caret === text.length) {
      this.#change(insertText({ text: text.slice(0, -1), caret: caret - 1 }, "\n"));
      return;
    }
    this.#submit({ kind: "text", text });
    this.#buffer = emptyBuffer;
    this.#options.history.add(text);
  }

  #cancel(): void {
    const nowMs = performance.now();
    const isSecond = nowMs - this.#interruptedAtMs < leaveWithinMs && this.#buffer.text === "";
    this.#interruptedAtMs = nowMs;
    if (isSecond) this.leave(interruptedExitCode);
    else if (this.#waiting === null) this.#interrupt?.();
    else if (this.#buffer.text === "") this.#region.hint(this.#buffer, "(Ctrl-C again leaves; so does /quit)");
    else {
      this.#region.leave(this.#buffer);
      this.#buffer = emptyBuffer;
      // Discarding a line does not count as the first Ctrl-C of two.
      this.#interruptedAtMs = Number.NEGATIVE_INFINITY;
      this.#region.draw(this.#buffer, this.#buffer);
    }
  }

  /** Returns true if the search consumed the key. Any other key ends the search and keeps its usual effect. */
  #isSearched(character: string | undefined, key: Key): boolean {
    const search = this.#search;
    if (search === null) {
      const { canMoveCursor, history } = this.#options;
      if (key.ctrl !== true || key.name !== "r" || !canMoveCursor || this.#waiting === null) return false;
      this.#search = { open: new OpenSearch(history), before: this.#buffer };
      this.#showSearch();
      return true;
    }
    const { before, open } = search;
    const step = open.press(character, key);
    if (step.kind === "search") this.#search = { open: step.search, before };
    else {
      this.#search = null;
      this.#buffer = step.kind === "left" || step.text === "" ? before : { text: step.text, caret: step.text.length };
    }
    this.#showSearch();
    return step.kind !== "taken";
  }

  #showSearch(): void {
    const open = this.#search?.open ?? null;
    this.#region.setPrompt(open?.prompt ?? null);
    this.#change(open === null ? this.#buffer : { text: open.text, caret: open.text.length });
  }
}

const bracketedPaste = { on: "\u001b[?2004h", off: "\u001b[?2004l" };

/** Return with Alt or Shift, and Ctrl-J, insert a line break instead. */
function isPlainEnter({ name, meta, shift, ctrl }: Key): boolean {
  return name === "return" && meta !== true && shift !== true && ctrl !== true;
}

/** A paste has the line ends of its source and may contain control characters. */
function cleanPaste(text: string): string {
  return terminalSafe(text.replace(/\r\n?/g, "\n"));
}

/** Without cursor movement the terminal can show only text added or removed at the end. */
function isSimple(before: EditBuffer, after: EditBuffer): boolean {
  return (
    after.caret === after.text.length && (after.text.startsWith(before.text) || before.text.startsWith(after.text))
  );
}

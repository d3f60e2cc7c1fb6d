import { emitKeypressEvents } from "node:readline";
import type { ReadStream } from "node:tty";
import type { Host } from "../host.ts";
import { emptyBuffer, insertText } from "./edit-buffer.ts";
import type { EditBuffer } from "./edit-buffer.ts";
import { OpenSearch } from "./history-search.ts";
import { applyKey } from "./edit-keys.ts";
import type { Key } from "./edit-keys.ts";
import { createEditRegion } from "./edit-region.ts";
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
  const { stdin, stdout, signal } = host;
  const { history, canMoveCursor } = options;
  const region = createEditRegion(stdout, options);
  let buffer: EditBuffer = emptyBuffer;
  let paste: string | null = null;
  let search: { readonly open: OpenSearch; readonly before: EditBuffer } | null = null;
  let waiting: ((submission: Submission) => void) | null = null;
  const queue: Submission[] = [];
  let interrupt: (() => void) | null = null;
  let interruptedAtMs = Number.NEGATIVE_INFINITY;

  const change = (next: EditBuffer): void => {
    const before = buffer;
    buffer = next;
    if (waiting !== null) region.draw(next, before);
  };
  const submit = (submission: Submission): void => {
    if (waiting === null) {
      queue.push(submission);
      return;
    }
    const resolve = waiting;
    waiting = null;
    region.leave(buffer);
    resolve(submission);
  };
  const enter = (): void => {
    // A backslash at the end continues the line, as in a shell.
    if (buffer.text.endsWith("\\") && buffer.caret === buffer.text.length) {
      change(insertText({ text: buffer.text.slice(0, -1), caret: buffer.caret - 1 }, "\n"));
      return;
    }
    const { text } = buffer;
    submit({ kind: "text", text });
    buffer = emptyBuffer;
    history.add(text);
  };
  const cancel = (): void => {
    const nowMs = performance.now();
    const isSecond = nowMs - interruptedAtMs < leaveWithinMs && buffer.text === "";
    interruptedAtMs = nowMs;
    if (isSecond) submit({ kind: "leave", code: interruptedExitCode });
    else if (waiting === null) interrupt?.();
    else if (buffer.text === "") region.hint(buffer, "(Ctrl-C again leaves; so does /quit)");
    else {
      region.leave(buffer);
      buffer = emptyBuffer;
      // Discarding a line does not count as the first Ctrl-C of two.
      interruptedAtMs = Number.NEGATIVE_INFINITY;
      region.draw(buffer, buffer);
    }
  };
  const showSearch = (): void => {
    region.setPrompt(search?.open.prompt ?? null);
    const text = search?.open.text ?? buffer.text;
    change(search === null ? buffer : { text, caret: text.length });
  };
  /** Returns true if the search consumed the key. Any other key ends the search and keeps its usual effect. */
  const searched = (character: string | undefined, key: Key): boolean => {
    if (search === null) {
      if (key.ctrl !== true || key.name !== "r" || !canMoveCursor || waiting === null) return false;
      search = { open: new OpenSearch(history), before: buffer };
      showSearch();
      return true;
    }
    const { before } = search;
    const step = search.open.press(character, key);
    if (step.kind === "search") search = { open: step.search, before };
    else {
      search = null;
      buffer = step.kind === "left" || step.text === "" ? before : { text: step.text, caret: step.text.length };
    }
    showSearch();
    return step.kind !== "taken";
  };
  const onKey = (character: string | undefined, key: Key): void => {
    if (paste === null && key.name !== "paste-start" && searched(character, key)) return;
    if (key.name === "paste-start") paste = "";
    else if (key.name === "paste-end") {
      change(insertText(buffer, cleanPaste(paste ?? "")));
      paste = null;
    } else if (paste !== null) paste += key.sequence ?? character ?? "";
    else if (key.ctrl === true && key.name === "c") cancel();
    else if (key.ctrl === true && key.name === "d" && buffer.text === "") submit({ kind: "leave", code: 0 });
    else if (key.ctrl === true && key.name === "l" && canMoveCursor) region.clearScreen(buffer);
    else if (isPlainEnter(key)) enter();
    else {
      const next = applyKey(buffer, character, key, history);
      if (next !== null && (canMoveCursor || isSimple(buffer, next))) change(next);
    }
  };
  const onResize = (): void => {
    if (waiting !== null) region.draw(buffer, buffer);
  };
  const onAbort = (): void => submit({ kind: "leave", code: interruptedExitCode });

  emitKeypressEvents(stdin);
  (stdin as Partial<ReadStream>).setRawMode?.(true);
  stdin.on("keypress", onKey);
  stdin.on("end", onAbort);
  stdout.on("resize", onResize);
  signal.addEventListener("abort", onAbort, { once: true });
  stdin.resume();
  if (canMoveCursor) stdout.write(bracketedPaste.on);

  return {
    read: () => {
      const next = queue.shift();
      if (next !== undefined) {
        if (next.kind === "text") stdout.write(`${options.prompt}${terminalSafe(next.text)}\n`);
        return Promise.resolve(next);
      }
      return new Promise((resolve) => {
        waiting = resolve;
        region.draw(buffer, emptyBuffer);
      });
    },
    say: (text) => {
      if (waiting === null) stdout.write(`${text}\n`);
      else region.hint(buffer, text);
    },
    onInterrupt: (listener) => (interrupt = listener),
    close: () => {
      stdin.off("keypress", onKey);
      stdin.off("end", onAbort);
      stdout.off("resize", onResize);
      signal.removeEventListener("abort", onAbort);
      if (canMoveCursor) stdout.write(bracketedPaste.off);
      (stdin as Partial<ReadStream>).setRawMode?.(false);
      stdin.pause();
    },
  };
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

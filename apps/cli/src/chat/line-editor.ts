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

/** What a person gave. */
type Submission = { readonly kind: "text"; readonly text: string } | { readonly kind: "leave"; readonly code: number };

export interface LineEditor {
  /** The next thing a person submits. What was typed meanwhile counts. */
  read(): Promise<Submission>;
  /** A line above what is being typed; while nothing is read, a line of its own. */
  say(text: string): void;
  /** Ctrl-C while nothing is read. */
  onInterrupt(listener: (() => void) | null): void;
  /** Gives the terminal back as it was. */
  close(): void;
}

export interface LineEditorOptions {
  readonly prompt: string;
  readonly history: InputHistory;
  /** False on a terminal that cannot move its cursor. */
  readonly canMoveCursor: boolean;
}

/** A second Ctrl-C within this time leaves. */
const leaveWithinMs = 2000;
const interruptedExitCode = 130;

/**
 * Reads lines from a terminal in raw mode. Only the rows of what is being typed are ever written again: what has been
 * printed is the terminal's. A paste of several lines is one text, not several turns.
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
    // A backslash at the end means that the line goes on, as in a shell.
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
      // A line that was thrown away is not yet a wish to leave.
      interruptedAtMs = Number.NEGATIVE_INFINITY;
      region.draw(buffer, buffer);
    }
  };
  const showSearch = (): void => {
    region.setPrompt(search?.open.prompt ?? null);
    const text = search?.open.text ?? buffer.text;
    change(search === null ? buffer : { text, caret: text.length });
  };
  /** True when the key was for the search; the others end it and mean what they always mean. */
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

/** Return alone. With Alt or Shift, or as Ctrl-J, it makes a line. */
function isPlainEnter({ name, meta, shift, ctrl }: Key): boolean {
  return name === "return" && meta !== true && shift !== true && ctrl !== true;
}

/** A paste brings the line ends of its source, and perhaps more than text. */
function cleanPaste(text: string): string {
  return terminalSafe(text.replace(/\r\n?/g, "\n"));
}

/** What a terminal without a movable cursor can show: something added or removed at the end. */
function isSimple(before: EditBuffer, after: EditBuffer): boolean {
  return (
    after.caret === after.text.length && (after.text.startsWith(before.text) || before.text.startsWith(after.text))
  );
}

// The only file that knows the library of the editor. It is loaded on use, behind the first prompt.
import { Editor } from "@earendil-works/pi-tui/dist/components/editor.js";
import { decodePrintableKey, parseKey } from "@earendil-works/pi-tui/dist/keys.js";
import { StdinBuffer } from "@earendil-works/pi-tui/dist/stdin-buffer.js";
import type { TUI } from "@earendil-works/pi-tui/dist/tui.js";
import { styledWidth } from "../../cells.ts";
import { terminalSafe } from "../../terminal-safe.ts";
import type { Region } from "./screen.ts";

/** One key as the terminal sent it. */
export interface TypedKey {
  readonly sequence: string;
  /** Names the key, for example `ctrl+c` or `alt+enter`; empty for an unknown key, null for a character. */
  readonly name: string | null;
  /** Holds the character of a key that types one; else null. */
  readonly character: string | null;
}

export interface KeyReader {
  take(chunk: string): void;
  close(): void;
}

/** A key with Alt is two bytes, and a slow connection may bring them apart. */
const escapeTimeoutMs = 50;

/** Splits what the terminal sends into keys and pastes, wherever it was cut. */
export function createKeyReader(onKey: (key: TypedKey) => void, onPaste: (text: string) => void): KeyReader {
  const buffer = new StdinBuffer({ escapeTimeout: escapeTimeoutMs });
  buffer.on("data", (sequence) => onKey(typedKey(sequence)));
  buffer.on("paste", (text) => onPaste(cleanPaste(text)));
  return { take: (chunk) => buffer.process(chunk), close: () => buffer.destroy() };
}

function typedKey(sequence: string): TypedKey {
  const decoded = decodePrintableKey(sequence) ?? sequence;
  const isCharacter = decoded.length <= 2 && terminalSafe(decoded) === decoded && !/[\t\n]/.test(decoded);
  return { sequence, name: isCharacter ? null : (parseKey(sequence) ?? ""), character: isCharacter ? decoded : null };
}

/** The text that is being typed, its undo and its kill ring. */
export interface TypedText {
  /** Returns the whole text, with long pastes in full. */
  readonly text: string;
  /** Returns the text as it is shown: a long paste as `[paste #1 +200 lines]`. */
  readonly shown: string;
  /** Returns the part of the caret's line before the caret. */
  readonly beforeCaret: string;
  press(key: TypedKey): void;
  paste(text: string): void;
  /** Replaces the end of `beforeCaret`. */
  complete(replaced: string, text: string): void;
  setText(text: string): void;
  /** Returns false where a backslash at the end made a line break of Enter, and empties the text otherwise. */
  submit(): boolean;
  render(columns: number): TextRows;
}

interface TextRows extends Region {
  /** Whether the caret is in the first row of the text, and in its last. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The library calls itself without end below this width. */
const narrowest = 8;
/** A paste above these sizes is shown by its size. The editor has the same. */
const mostPasteLines = 10;
const mostPasteCharacters = 1000;
/** The editor makes spaces of tabs. These code points stand for no character, so that a tab can be one of them inside. */
const insideTab = "\ufdd1";

export function createTypedText(rows: () => number): TypedText {
  const self = (text: string): string => text;
  const theme = {
    borderColor: self,
    selectList: { selectedPrefix: self, selectedText: self, description: self, scrollInfo: self, noMatch: self },
  };
  const screen = {
    terminal: {
      get rows() {
        return rows();
      },
      columns: 80,
    },
    requestRender: () => {},
  };
  // The editor asks the screen of its library for these two only.
  const editor = new Editor(screen as unknown as TUI, theme);
  editor.focused = true;
  let isSubmitted = false;
  editor.onSubmit = () => (isSubmitted = true);
  return {
    get text() {
      return outside(editor.getExpandedText());
    },
    get shown() {
      return outside(editor.getText());
    },
    get beforeCaret() {
      const { line, col } = editor.getCursor();
      return outside((editor.getLines()[line] ?? "").slice(0, col));
    },
    complete: (replaced, text) => {
      const isLonger = text.startsWith(replaced);
      // The editor deletes whole characters as a person sees them.
      if (!isLonger) for (const _ of new Intl.Segmenter().segment(replaced)) editor.handleInput("\u007f");
      editor.insertTextAtCursor(inside(isLonger ? text.slice(replaced.length) : text));
    },
    press: ({ sequence, name }) => {
      // Direction marks and unknown sequences have an empty name.
      if (name !== "") editor.handleInput(sequence);
    },
    paste: (text) => {
      const whole = inside(text);
      // The editor puts a space before a pasted path, and names a long paste by its size.
      const isLong = whole.length > mostPasteCharacters || text.split("\n").length > mostPasteLines;
      if (isLong) editor.handleInput(`\u001b[200~${whole}\u001b[201~`);
      else editor.insertTextAtCursor(whole);
    },
    setText: (text) => editor.setText(inside(text)),
    submit: () => {
      isSubmitted = false;
      editor.handleInput("\r");
      return isSubmitted;
    },
    render: (columns) => textRows(editor.render(Math.max(narrowest, columns))),
  };
}

function inside(text: string): string {
  return text.replaceAll(insideTab, "").replaceAll("\t", insideTab);
}

function outside(text: string): string {
  return text.replaceAll(insideTab, "\t");
}

/** A paste has the line ends of its source, and may hold control characters. Some terminals send those as keys. */
function cleanPaste(text: string): string {
  const decoded = text
    .replaceAll("\u001b[106;5u", "\n")
    .replaceAll("\u001b[109;5u", "\n")
    .replaceAll("\u001b[105;5u", "\t");
  return terminalSafe(decoded.replace(/\r\n?/g, "\n"));
}

const caretMark = "\u001b_pi:c\u0007";
const drawnCaret = { from: "\u001b_pi:fc\u0007", to: "\u001b_pi:/fc\u0007" };

/** The editor draws a border above and below, with the number of hidden rows, and its own caret. */
function textRows(drawn: readonly string[]): TextRows {
  const [top = "", ...rest] = drawn;
  const bottom = rest.at(-1) ?? "";
  const rows = rest.slice(0, -1);
  const row = Math.max(
    0,
    rows.findIndex((each) => each.includes(caretMark)),
  );
  const column = styledWidth((rows[row] ?? "").split(caretMark, 1)[0] ?? "");
  const plain = rows.map((each) =>
    each
      .replace(caretMark, "")
      .replace(drawnCaret.from, "")
      .replace(drawnCaret.to, "")
      .replaceAll(insideTab, " ")
      .trimEnd(),
  );
  return {
    rows: plain,
    caret: { row, column },
    isFirst: row === 0 && !top.includes("↑"),
    isLast: row === rows.length - 1 && !bottom.includes("↓"),
  };
}

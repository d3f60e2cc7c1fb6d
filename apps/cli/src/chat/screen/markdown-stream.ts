import { isPlainProse, openFence, isClosingFence, type OpenFence } from "@throughline/transcript-view/internal";
import { Lexer, type Token, Tokenizer, type Tokens } from "marked";
import { terminalSafe } from "../../terminal-safe.ts";
import { codeRowsFrom } from "./code-rows.ts";
import { inlineText, type MarkdownOptions } from "./markdown-inline.ts";
import { blockRows, itemRows, listMark } from "./markdown-rows.ts";
import { paragraphCut } from "./paragraph-cut.ts";
import { proseWidth, wrapRows } from "./wrap-rows.ts";

export interface StreamRoom {
  readonly columns: number;
  /** The most rows that may stay open. */
  readonly mostRows: number;
}

export interface MarkdownStep {
  /** Rows that are final. */
  readonly finished: readonly string[];
  /** Rows that the next text may change. */
  readonly open: readonly string[];
}

/** Text is taken in pieces of this length, so that no step of the lexer takes longer than a few milliseconds. */
const pieceCharacters = 4096;
/** A sequence of a terminal may arrive in parts; it is looked at when it is whole. */
const longestSequence = 256;
/** These rows of open code may still change. */
const openCodeLines = 2;

/**
 * Turns Markdown into rows while it arrives. Whatever pieces the text comes in, the finished rows are those of the whole
 * text, as long as no paragraph is higher than the screen.
 */
export class MarkdownStream {
  readonly #options: MarkdownOptions;
  /** Holds the text that has made no row yet. */
  #tail = "";
  #waiting = "";
  #fence: { readonly opened: OpenFence; readonly lines: string[]; shown: number } | null = null;
  /** The number of the next item, where earlier items of the list are finished. */
  #listNext: number | null = null;
  #hasRows = false;
  /** Whether the next rows continue the block above them. */
  #isContinued = false;

  constructor(options: MarkdownOptions) {
    this.#options = options;
  }

  push(text: string): void {
    this.#waiting += text;
  }

  /** Returns what is finished by now. `isEnd` finishes everything. */
  take(room: StreamRoom, isEnd = false): MarkdownStep {
    const finished: string[] = [];
    const held = isEnd ? 0 : heldLength(this.#waiting);
    const fresh = terminalSafe(this.#waiting.slice(0, this.#waiting.length - held));
    this.#waiting = this.#waiting.slice(this.#waiting.length - held);
    let open: readonly string[] = [];
    for (let at = 0; at < fresh.length || at === 0; at += pieceCharacters) {
      this.#tail += fresh.slice(at, at + pieceCharacters);
      open = this.#step(finished, room, isEnd && at + pieceCharacters >= fresh.length);
    }
    return { finished, open };
  }

  /** Takes finished blocks off the tail. @returns the rows of the rest */
  #step(finished: string[], room: StreamRoom, isEnd: boolean): readonly string[] {
    for (;;) {
      if (this.#fence !== null) {
        const open = this.#takeCode(finished, isEnd);
        if (open !== null) return open;
        continue;
      }
      const fenceAt = findFence(this.#tail, isEnd);
      if (fenceAt === null) return this.#takeProse(this.#tail, finished, room, isEnd);
      const { index, opened } = fenceAt;
      const rest = this.#tail.slice(index);
      const open = this.#takeProse(this.#tail.slice(0, index), finished, room, opened !== null);
      // The line may become a fence, or go on as text.
      if (opened === null) return [...open, ...(index === 0 ? this.#apart([rest]) : [rest])];
      this.#tail = rest;
      this.#openFence(opened);
    }
  }

  #openFence(opened: OpenFence): void {
    const lineEnd = this.#tail.indexOf("\n");
    this.#tail = lineEnd === -1 ? "" : this.#tail.slice(lineEnd + 1);
    this.#fence = { opened, lines: [], shown: 0 };
    this.#listNext = null;
    // Lines that arrive before the grammar is loaded have no colors.
    void this.#options.highlighter.load(opened.language);
  }

  /** Finishes lines of open code; null when the fence is closed. */
  #takeCode(finished: string[], isEnd: boolean): readonly string[] | null {
    const fence = this.#fence;
    if (fence === null) return null;
    const { opened, lines } = fence;
    const look = { language: opened.language, options: this.#options };
    const finish = (end: number): void => {
      if (end <= fence.shown) return;
      this.#add(finished, codeRowsFrom(lines, fence.shown, end, look), fence.shown > 0);
      fence.shown = end;
    };
    for (;;) {
      const lineEnd = this.#tail.indexOf("\n");
      if (lineEnd === -1 && !(isEnd && this.#tail !== "")) break;
      const line = lineEnd === -1 ? this.#tail : this.#tail.slice(0, lineEnd);
      this.#tail = lineEnd === -1 ? "" : this.#tail.slice(lineEnd + 1);
      if (isClosingFence(line, opened)) {
        finish(lines.length);
        this.#fence = null;
        return null;
      }
      lines.push(line);
    }
    if (isEnd) {
      finish(lines.length);
      this.#fence = null;
      return null;
    }
    finish(lines.length - openCodeLines);
    const shown = isClosingFence(this.#tail, { ...opened, length: 1 }) ? lines : [...lines, this.#tail];
    const rows = codeRowsFrom(shown, fence.shown, shown.length, look);
    return fence.shown === 0 && this.#hasRows ? ["", ...rows] : rows;
  }

  /** Finishes the blocks of prose that nothing can change any more. */
  #takeProse(prose: string, finished: string[], room: StreamRoom, isEnd: boolean): readonly string[] {
    if (prose === "") return [];
    if (isPlainProse(prose)) return this.#takePlain(prose, finished, room, isEnd);
    const tokens = new ProseLexer().lex(prose);
    const end = isEnd ? tokens.length : closedCount(tokens);
    let cut = 0;
    for (const token of tokens.slice(0, end)) {
      this.#finishBlock(token, finished, room);
      cut += token.raw.length;
    }
    this.#tail = this.#tail.slice(cut);
    const last = tokens.slice(end).find(({ type }) => type !== "space");
    if (last === undefined) return [];
    if (last.type === "list") return this.#openList(last as Tokens.List, finished, room);
    if (last.type === "paragraph") return this.#openParagraph(last, finished, room);
    return this.#apart(blockRows(last, this.#options, roomOf(room)));
  }

  #finishBlock(token: Token, finished: string[], room: StreamRoom): void {
    if (token.type === "space") return;
    const number = token.type === "list" ? this.#listNext : null;
    const isContinued = number !== null || this.#isContinued;
    this.#listNext = null;
    this.#isContinued = false;
    const block = number === null ? token : ({ ...token, start: number } as Tokens.List);
    this.#add(finished, blockRows(block, this.#options, roomOf(room)), isContinued);
  }

  /** All items but the last are finished. */
  #openList(list: Tokens.List, finished: string[], room: StreamRoom): readonly string[] {
    const { items, ordered } = list;
    const start = this.#listNext ?? (list.start === "" ? 1 : list.start);
    const done = items.slice(0, -1);
    const raw = done.map((item) => item.raw).join("");
    const isWhole = list.raw.startsWith(raw) && this.#tail.startsWith(raw);
    const shown = isWhole ? done.length : 0;
    const rowsOf = (item: Tokens.ListItem, index: number): readonly string[] =>
      itemRows(item, listMark({ ordered, start }, item, index, this.#options), this.#options, roomOf(room));
    const isFirst = this.#listNext === null;
    if (shown > 0) {
      this.#add(finished, done.flatMap(rowsOf), !isFirst);
      this.#tail = this.#tail.slice(raw.length);
      this.#listNext = start + shown;
    }
    const open = items.slice(shown).flatMap((item, index) => rowsOf(item, shown + index));
    return isFirst && shown === 0 ? this.#apart(open) : open;
  }

  /** A paragraph higher than the screen gives away its rows but the last four. */
  #openParagraph(token: Token, finished: string[], room: StreamRoom): readonly string[] {
    const width = proseWidth(room.columns);
    const rowsOf = (raw: string): readonly string[] =>
      wrapRows(inlineText(new ProseLexer().inlineTokens(raw.trim()), this.#options), width);
    const rows = rowsOf(token.raw);
    const cut = rows.length <= room.mostRows ? null : paragraphCut(token.raw, rowsOf, rows, 2 * room.mostRows);
    if (cut === null) return this.#isContinued ? rows : this.#apart(rows);
    this.#add(finished, rowsOf(token.raw.slice(0, cut)), this.#isContinued);
    this.#isContinued = true;
    this.#tail = this.#tail.slice(this.#tail.indexOf(token.raw) + cut);
    return rowsOf(token.raw.slice(cut));
  }

  /** Text that the lexer would take too long for is shown as it is written, line by line. */
  #takePlain(prose: string, finished: string[], room: StreamRoom, isEnd: boolean): readonly string[] {
    const width = proseWidth(room.columns);
    const end = isEnd || prose.length > 2 * pieceCharacters ? prose.length : prose.lastIndexOf("\n") + 1;
    this.#tail = this.#tail.slice(end);
    const lines = prose.slice(0, end).replace(/\n$/, "").split("\n");
    if (end > 0)
      this.#add(
        finished,
        lines.flatMap((line) => wrapRows(line, width)),
        this.#isContinued,
      );
    this.#isContinued = end > 0 && !isEnd;
    return end === prose.length ? [] : wrapRows(prose.slice(end), width);
  }

  #apart(rows: readonly string[]): readonly string[] {
    return this.#hasRows && rows.length > 0 ? ["", ...rows] : rows;
  }

  /** An empty row stands between two blocks. */
  #add(finished: string[], rows: readonly string[], isContinued: boolean): void {
    if (rows.length === 0) return;
    for (const row of isContinued ? rows : this.#apart(rows)) finished.push(row);
    this.#hasRows = true;
  }
}

/** A definition of a link may come after its use, when that is on the screen already. Both stay as they are written. */
class NoDefinitions extends Tokenizer {
  override def(): undefined {
    return undefined;
  }
}

class ProseLexer extends Lexer {
  constructor() {
    super({ gfm: true, tokenizer: new NoDefinitions() });
  }
}

function roomOf({ columns }: StreamRoom): { readonly width: number; readonly level: number } {
  return { width: proseWidth(columns), level: 0 };
}

/** The last block may go on. Behind an empty line only a list and indented code do. */
function closedCount(tokens: readonly Token[]): number {
  const last = tokens.length - 1;
  const before = tokens[last - 1];
  const mayGoOn =
    before?.type === "list" || (before?.type === "code" && (before as Tokens.Code).codeBlockStyle === "indented");
  return tokens[last]?.type === "space" && mayGoOn ? last - 1 : last;
}

/** Finds the next fence that begins a line; `opened` is null while its line is not whole. */
function findFence(text: string, isEnd: boolean): { readonly index: number; readonly opened: OpenFence | null } | null {
  for (let index = 0; index < text.length;) {
    const next = text.indexOf("\n", index);
    const isWhole = next !== -1 || isEnd;
    const line = text.slice(index, next === -1 ? undefined : next);
    const opened = openFence(line);
    if (opened !== null && isWhole) return { index, opened };
    if (!isWhole) return mayBecomeFence(line) ? { index, opened: null } : null;
    if (next === -1) return null;
    index = next + 1;
  }
  return null;
}

function mayBecomeFence(line: string): boolean {
  return /^(?:`{1,64}|~{1,64})$/.test(line) || openFence(line) !== null;
}

/** The length of the end that waits for the text behind it: half a character, or a sequence that is not whole. */
function heldLength(text: string): number {
  const escape = Math.max(text.lastIndexOf("\u001b"), text.lastIndexOf("\u009b"), text.lastIndexOf("\u009d"));
  if (escape !== -1 && text.length - escape < longestSequence) return text.length - escape;
  return /[\ud800-\udbff]$/.test(text) ? 1 : 0;
}

import { asciiRow } from "./signs.ts";
import { styledWidth } from "../../cells.ts";
import { columnsOf, type Host, rowsOf } from "../../host.ts";

/** The rows at the bottom of the screen that change, and where the cursor stands in them. */
export interface Region {
  readonly rows: readonly string[];
  readonly caret: { readonly row: number; readonly column: number };
}

/** One frame: the region, and rows above it that are finished with it. */
export interface Frame extends Region {
  readonly finished?: readonly string[];
}

export interface ScreenOptions {
  /** Returns the region as it is now. Runs once for each frame. */
  readonly draw: () => Frame;
  /** True where the terminal shows no signs beyond ASCII. @default false */
  readonly isAscii?: boolean;
  /** Shortest time between two frames. @default 33 */
  readonly frameMs?: number;
}

/** The region leaves these rows free, so that it never scrolls text out of the screen and paints it again. */
const spareRows = 2;

/**
 * Writes to the terminal's main screen. Finished rows are written once and belong to the terminal from then on; only the
 * region below them is ever painted again. No sequence scrolls, saves the cursor or erases what is above the region.
 */
export class Screen {
  readonly #stdout: Host["stdout"];
  readonly #draw: () => Frame;
  readonly #frameMs: number;
  readonly #isAscii: boolean;
  #painted: Region = emptyRegion;
  #columns: number;
  #finished: string[] = [];
  #timer: NodeJS.Timeout | null = null;
  #lastFrameMs = Number.NEGATIVE_INFINITY;
  #isSuspended = false;

  constructor(stdout: Host["stdout"], { draw, frameMs = 33, isAscii = false }: ScreenOptions) {
    this.#isAscii = isAscii;
    this.#stdout = stdout;
    this.#draw = draw;
    this.#frameMs = frameMs;
    this.#columns = columnsOf(stdout);
  }

  get columns(): number {
    return columnsOf(this.#stdout);
  }

  /** The most rows that a region may have. */
  get mostRows(): number {
    return Math.max(1, rowsOf(this.#stdout) - spareRows);
  }

  /** Puts finished rows above the region with the next frame. */
  commit(rows: readonly string[]): void {
    for (const row of rows) this.#finished.push(row);
    this.invalidate();
  }

  /** Paints the region soon: at once after a pause, else at most 30 times a second. */
  invalidate(): void {
    if (this.#timer !== null || this.#isSuspended) return;
    const waitMs = Math.max(0, this.#lastFrameMs + this.#frameMs - performance.now());
    this.#timer = setTimeout(() => this.flush(), waitMs);
  }

  /** Writes what has changed, now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#isSuspended) return;
    this.#lastFrameMs = performance.now();
    const moved = this.columns === this.#columns ? "" : this.#forget();
    const frame = this.#draw();
    for (const row of frame.finished ?? []) this.#finished.push(row);
    const region = this.#shown(fitted(frame, this.mostRows, this.columns - 1));
    const written = moved + (this.#finished.length > 0 ? this.#paintBelow(region) : this.#paintChanged(region));
    if (written !== "") this.#stdout.write(`\u001b[?2026h${written}\u001b[?2026l`);
  }

  /** Erases the whole screen at a person's wish. The text that has scrolled out stays. */
  clear(): void {
    this.#painted = emptyRegion;
    this.#stdout.write("\u001b[H\u001b[2J");
    this.flush();
  }

  /** Erases the region, so that something else may write; nothing is written until `resume`. */
  suspend(): void {
    this.flush();
    this.#isSuspended = true;
    const { caret } = this.#painted;
    this.#stdout.write(`\r${up(caret.row)}\u001b[J`);
    this.#painted = emptyRegion;
  }

  resume(): void {
    this.#isSuspended = false;
    this.#columns = this.columns;
    this.flush();
  }

  #shown(region: Region): Region {
    if (!this.#isAscii) return region;
    return { ...region, rows: region.rows.map((row) => asciiRow(row, this.columns - 1)) };
  }

  /** Finished rows over the region, and the region below them. */
  #paintBelow(region: Region): string {
    const { rows } = this.#shown({ rows: this.#finished, caret: region.caret });
    this.#finished = [];
    const { columns } = this;
    const text = rows.map((row) =>
      // At the right margin an erase would take the last character, and a wrapped row stands on rows of the old region.
      styledWidth(row) < columns ? `${row}\u001b[K\r\n` : `\u001b[J${row}\r\n`,
    );
    const painted = region.rows.map((row) => `${row}\u001b[K`).join("\r\n");
    const start = `\r${up(this.#painted.caret.row)}`;
    this.#painted = region;
    return `${start}${text.join("")}${wrapping.off}${painted}${wrapping.on}\u001b[J${toCaret(region, region.rows.length - 1)}`;
  }

  #paintChanged(region: Region): string {
    const before = this.#painted;
    const most = Math.max(before.rows.length, region.rows.length);
    let text = "";
    let row = before.caret.row;
    for (let index = 0; index < most; index++) {
      const fresh = region.rows[index];
      const old = before.rows[index];
      if (fresh === old) continue;
      const isNew = index >= before.rows.length && index > 0;
      // A line feed makes a row at the bottom of the screen; moving down does not.
      text += isNew ? `${moved(row, index - 1)}\r\n` : `\r${moved(row, index)}`;
      row = index;
      if (fresh === undefined) {
        text += "\u001b[J";
        break;
      }
      text += old === undefined || !isGrown(old, fresh) ? `${fresh}\u001b[K` : grown(old, fresh);
    }
    this.#painted = region;
    const isCaretMoved = before.caret.row !== region.caret.row || before.caret.column !== region.caret.column;
    if (text === "") return isCaretMoved ? toCaret(region, row) : "";
    return `${wrapping.off}${text}${wrapping.on}${toCaret(region, row)}`;
  }

  /**
   * Erases the region after a change of width. The terminal has wrapped its rows again, so their height is counted at the
   * new width.
   */
  #forget(): string {
    const { rows, caret } = this.#painted;
    const { columns } = this;
    const above = rows.slice(0, caret.row).reduce((sum, row) => sum + heightOf(styledWidth(row), columns), 0);
    const height = above + Math.floor(caret.column / columns);
    this.#painted = emptyRegion;
    this.#columns = columns;
    return `\r${up(height)}\u001b[J`;
  }
}

const emptyRegion: Region = { rows: [], caret: { row: 0, column: 0 } };

const wrapping = { off: "\u001b[?7l", on: "\u001b[?7h" };

function heightOf(cells: number, columns: number): number {
  return Math.max(1, Math.ceil(cells / columns));
}

/** The region with at most this many rows, those around the cursor. Too long rows are cut by the terminal. */
function fitted({ rows, caret }: Region, mostRows: number, mostColumns: number): Region {
  const column = Math.max(0, Math.min(caret.column, mostColumns - 1));
  if (rows.length <= mostRows) return { rows, caret: { row: caret.row, column } };
  const first = Math.max(0, Math.min(rows.length - mostRows, caret.row));
  return { rows: rows.slice(first, first + mostRows), caret: { row: caret.row - first, column } };
}

function up(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : "";
}

function moved(from: number, to: number): string {
  return to > from ? `\u001b[${to - from}B` : up(from - to);
}

function toCaret({ caret }: Region, row: number): string {
  return `\r${moved(row, caret.row)}${caret.column > 0 ? `\u001b[${caret.column}C` : ""}`;
}

/** Whether only text without sequences was added at the end, so that the rest need not be written again. */
function isGrown(old: string, fresh: string): boolean {
  return old !== "" && fresh.startsWith(old) && !fresh.includes("\u001b");
}

function grown(old: string, fresh: string): string {
  return `\u001b[${styledWidth(old)}C${fresh.slice(old.length)}`;
}

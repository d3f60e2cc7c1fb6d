import stringWidth from "fast-string-width";
import { columnsOf, rowsOf, type Host } from "../host.ts";
import type { EditBuffer } from "./edit-buffer.ts";
import { layoutEdit } from "./edit-layout.ts";
import type { EditLayout } from "./edit-layout.ts";

/** Draws the rows at the bottom of the screen where the user types. No other row is ever rewritten. */
export interface EditRegion {
  /** `before` is the text shown earlier, which matters if the cursor cannot move. */
  draw(buffer: EditBuffer, before: EditBuffer): void;
  /** Leaves the whole text on the screen and moves the cursor below it. */
  leave(buffer: EditBuffer): void;
  hint(buffer: EditBuffer, text: string): void;
  clearScreen(buffer: EditBuffer): void;
  /** Changes the prompt from the next drawing on; null restores the usual prompt. */
  setPrompt(prompt: string | null): void;
}

/** The region leaves these rows free, so that it never scrolls text out of the screen and redraws it. */
const spareRows = 2;

export function createEditRegion(
  stdout: Host["stdout"],
  { prompt, canMoveCursor }: { readonly prompt: string; readonly canMoveCursor: boolean },
): EditRegion {
  if (!canMoveCursor) return plainRegion(stdout, prompt);
  let shown: EditLayout | null = null;
  let shownColumns = 0;
  let promptNow = prompt;
  const columnsNow = (): number => columnsOf(stdout);
  const layoutOf = (buffer: EditBuffer, mostRows: number): EditLayout =>
    layoutEdit(buffer, { prompt: promptNow, columns: columnsNow(), mostRows });
  /**
   * Erases from the first shown row. After a change of width the terminal has wrapped the rows again, so their height
   * is recomputed.
   */
  const erase = (): string => {
    if (shown === null) return "";
    const columns = columnsNow();
    const above = shown.rows.slice(0, shown.caretRow);
    const heights = above.map((row) => (columns < shownColumns ? Math.max(1, Math.ceil(row.length / columns)) : 1));
    const up = heights.reduce((sum, height) => sum + height, 0) + Math.floor(shown.caretColumn / columns);
    return `\r${up > 0 ? `\u001b[${up}A` : ""}\u001b[J`;
  };
  const paint = (layout: EditLayout): string => {
    const below = layout.rows.length - 1 - layout.caretRow;
    const up = below > 0 ? `\u001b[${below}A` : "";
    return `${layout.rows.join("\r\n")}\r${up}${layout.caretColumn > 0 ? `\u001b[${layout.caretColumn}C` : ""}`;
  };
  const draw = (buffer: EditBuffer): void => {
    const layout = layoutOf(buffer, Math.max(1, rowsOf(stdout) - spareRows));
    const added = shown === null || shownColumns !== columnsNow() ? null : addedAtEnd(shown, layout);
    stdout.write(added ?? erase() + paint(layout));
    shown = layout;
    shownColumns = columnsNow();
  };
  return {
    draw,
    leave: (buffer) => {
      const whole = layoutOf(buffer, Number.MAX_SAFE_INTEGER);
      const isShown = shown !== null && shownColumns === columnsNow() && shown.rows.length === whole.rows.length;
      const down = isShown ? whole.rows.length - 1 - whole.caretRow : 0;
      const below = `${down > 0 ? `\u001b[${down}B` : ""}\r\n`;
      stdout.write(isShown ? below : `${erase()}${whole.rows.join("\r\n")}\r\n`);
      shown = null;
    },
    hint: (buffer, text) => {
      stdout.write(`${erase()}${text}\r\n`);
      shown = null;
      draw(buffer);
    },
    clearScreen: (buffer) => {
      stdout.write("\u001b[H\u001b[2J");
      shown = null;
      draw(buffer);
    },
    setPrompt: (text) => (promptNow = text ?? prompt),
  };
}

/** Returns the text added at the end if nothing else changed, so that no row must be redrawn. */
function addedAtEnd(before: EditLayout, after: EditLayout): string | null {
  const last = before.rows.length - 1;
  const isSameAbove =
    after.rows.length === before.rows.length &&
    before.rows.every((row, index) => index === last || row === after.rows[index]);
  const [old = "", fresh = ""] = [before.rows[last], after.rows[last]];
  const isAtEnd = before.caretRow === last && after.caretRow === last && !hasTextAfter(before) && !hasTextAfter(after);
  return isSameAbove && isAtEnd && fresh.startsWith(old) ? fresh.slice(old.length) : null;
}

function hasTextAfter({ rows, caretColumn, caretRow }: EditLayout): boolean {
  return stringWidth(rows[caretRow] ?? "") !== caretColumn;
}

/** Serves a terminal without cursor movement: it writes added characters and steps back over removed ones. */
function plainRegion(stdout: Host["stdout"], prompt: string): EditRegion {
  let isOpen = false;
  const draw = (buffer: EditBuffer, before: EditBuffer): void => {
    if (!isOpen) {
      stdout.write(prompt + buffer.text);
      isOpen = true;
    } else if (buffer.text.startsWith(before.text)) stdout.write(buffer.text.slice(before.text.length));
    else stdout.write("\b \b".repeat(Array.from(before.text).length - Array.from(buffer.text).length));
  };
  return {
    draw,
    leave: () => {
      stdout.write("\n");
      isOpen = false;
    },
    hint: (buffer, text) => {
      stdout.write(`\n${text}\n`);
      isOpen = false;
      draw(buffer, buffer);
    },
    clearScreen: () => {},
    // The search needs cursor movement, so no other prompt ever appears here.
    setPrompt: () => {},
  };
}

import type { Styles } from "./styles.ts";
import { terminalSafe } from "../../terminal-safe.ts";
import type { OpenSearch } from "../history-search.ts";
import type { InputHistory } from "../input-history.ts";
import type { Region } from "./screen.ts";
import type { TypedText } from "./typed-text.ts";

/** Stands before the text that a person types. */
export const prompt = "> ";

interface PromptTexts {
  /** Is null until the editor is loaded. */
  readonly typed: TypedText | null;
  readonly search: OpenSearch | null;
}

/** Returns the rows of the typed text behind a label, or those of a search in earlier inputs. */
export function promptRows(label: string, { typed, search }: PromptTexts, columns: number): Region {
  if (search !== null) {
    const row = terminalSafe(`${search.prompt}${search.text}`).replaceAll("\n", " ");
    return { rows: [row], caret: { row: 0, column: row.length } };
  }
  if (typed === null) return { rows: [label], caret: { row: 0, column: label.length } };
  const { rows, caret } = typed.render(columns - 1 - label.length);
  const indent = " ".repeat(label.length);
  return {
    rows: rows.map((row, index) => `${index === 0 ? label : indent}${row}`),
    caret: { row: caret.row, column: caret.column + label.length },
  };
}

/** Returns the earlier or later input that an arrow recalls; null where the arrow moves the caret, and at the end. */
export function recalledText(
  direction: "up" | "down",
  typed: TypedText | null,
  history: InputHistory,
  columns: number,
): string | null {
  if (typed === null) return null;
  const { isFirst, isLast } = typed.render(columns - 1);
  if (direction === "up") return isFirst ? history.older(typed.text) : null;
  return isLast ? history.newer() : null;
}

/** Returns a submitted text as it stands above the reply. */
export function submittedRows(text: string, styles: Styles): readonly string[] {
  const lines = terminalSafe(text).split("\n");
  return lines.map((line, at) => styles.cyan(`${at === 0 ? prompt : " ".repeat(prompt.length)}${line}`));
}

import { shorten } from "../../cells.ts";
import { terminalSafeLine } from "../../terminal-safe.ts";
import type { ChatStatus } from "../chat-view.ts";
import type { Signs } from "./signs.ts";

/** Parts are left out below these widths, in columns. */
const needed = { folder: 72, cost: 60, title: 48, bar: 36, model: 24 };
const barCells = 5;
const mostTitleCells = 40;

/** Returns the line below the typed text. States are never left out; they stand in the place of the title. */
export function statusLine(status: ChatStatus, states: readonly string[], columns: number, signs: Signs): string {
  const { title, model, percent, cost, folder } = status;
  const cells = columns - 1;
  const has = (part: keyof typeof needed): boolean => columns >= needed[part];
  const parts = [
    ...(states.length > 0 ? states : has("title") ? [shorten(terminalSafeLine(title), mostTitleCells, "end")] : []),
    ...(has("model") ? [terminalSafeLine(model)] : []),
    ...(percent === null ? [] : [`${has("bar") ? `${bar(percent, signs)} ` : ""}${Math.round(percent)} %`]),
    ...(cost !== null && has("cost") ? [cost] : []),
    ...(has("folder") ? [terminalSafeLine(folder)] : []),
  ];
  return shorten(parts.filter((part) => part !== "").join(` ${signs.dot} `), cells, "end");
}

function bar(percent: number, { full, empty }: Signs): string {
  const filled = Math.max(0, Math.min(barCells, Math.round((percent / 100) * barCells)));
  return `${full.repeat(filled)}${empty.repeat(barCells - filled)}`;
}

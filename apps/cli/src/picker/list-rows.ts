import { cellWidth, shorten } from "../cells.ts";
import type { Region } from "../chat/screen/screen.ts";
import type { Signs } from "../chat/screen/signs.ts";
import type { Styles } from "../chat/screen/styles.ts";
import { counted, grouped } from "../counted.ts";
import { flatSnippet, snippetPieces } from "../search/show-group.ts";
import { terminalSafe } from "../terminal-safe.ts";
import { ageText } from "../time-text.ts";
import { type ListedSession, type Scope, scopes } from "./listed-session.ts";
import type { PickerItem, PickerList } from "./picker-list.ts";

export interface ListFacts {
  readonly folder: string;
  readonly scope: Scope;
  readonly filter: string;
  /** Counts the sessions of the scope by program, the most first. */
  readonly programs: readonly (readonly [program: string, count: number])[];
  /** Counts the sessions that the scope leaves out. */
  readonly hiddenCount: number;
  /** Null when all sessions are read; else what is still to come. */
  readonly reading: string | null;
  /** States what Esc does with an empty filter. */
  readonly escape: string;
  readonly nameOf: (session: ListedSession) => string;
  readonly isActive: (session: ListedSession) => boolean;
  readonly nowMs: number;
}

export interface RowParts {
  readonly styles: Styles;
  readonly signs: Signs;
  readonly columns: number;
}

const searchLabel = " search: ";
const heading = "in the texts";
/** Columns are left out below these widths of the terminal. */
const needed = { folder: 72, count: 60, program: 44, age: 28 };
const cells = { program: 11, age: 6, count: 8 };
const gap = 2;
/** A name has this share of the terminal before the folder has any. */
const nameShare = 0.36;
const folderCells = { least: 8, most: 32 };
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Draws the list in at most `mostRows` rows, none of them wider than the terminal. */
export function listRows(list: PickerList, facts: ListFacts, mostRows: number, parts: RowParts): Region {
  const { styles, columns } = parts;
  const head = [headRow(facts, parts), searchRow(facts, parts)];
  const room = Math.max(1, mostRows - head.length - 1);
  const rows: string[] = [];
  const heightOf = (index: number): number => itemHeight(list, index);
  const widths = columnWidths(facts, list, columns);
  for (let index = list.topFor(room, heightOf); index < list.count; index++) {
    const item = list.at(index);
    if (item === null || rows.length + heightOf(index) > room) break;
    if (index === list.firstText) rows.push(styles.dim(shorten(`   ── ${heading} ──`, columns - 1, "end")));
    for (const row of itemRows(item, { isChosen: item.id === list.chosen.id, widths }, facts, parts)) rows.push(row);
  }
  const last = styles.dim(shorten(` ${lastText(list, facts, parts)}`, columns - 1, "end"));
  const column = Math.min(columns - 2, cellWidth(searchLabel) + cellWidth(facts.filter));
  return { rows: [...head, ...rows, last], caret: { row: 1, column } };
}

interface ColumnWidths {
  readonly state: number;
  readonly folder: number;
}

/** The folder has what the name and the short columns leave. */
function columnWidths({ scope }: ListFacts, { hits }: PickerList, columns: number): ColumnWidths {
  const state = scope === "all" ? "archived".length : hits.sessions.length > 0 ? 4 : 1;
  const short = cells.program + cells.age + cells.count + state + 4 * gap;
  const free = columns - 4 - short - Math.floor(columns * nameShare) - gap;
  const folder = columns < needed.folder || free < folderCells.least ? 0 : Math.min(folderCells.most, free);
  return { state, folder };
}

function itemHeight(list: PickerList, index: number): number {
  return (index >= list.firstText ? 2 : 1) + (index === list.firstText ? 1 : 0);
}

function headRow({ folder, programs, scope }: ListFacts, parts: RowParts): string {
  const total = programs.reduce((sum, [, count]) => sum + count, 0);
  const shown = programs.slice(0, 4).map(([program, count]) => `${program} ${grouped(count)}`);
  const rest = programs.length > 4 ? `, ${programs.length - 4} more` : "";
  const of = shown.length === 0 ? "" : `: ${shown.join(", ")}${rest}`;
  const where = scope === "folder" ? folder : scope === "agent" ? "all folders" : "all agents and archives";
  return bothEnds(` ${where}`, `${grouped(total)} session${total === 1 ? "" : "s"}${of}`, parts, parts.styles.bold);
}

function searchRow({ filter, scope }: ListFacts, parts: RowParts): string {
  const others = scopes.filter((each) => each !== scope);
  const { columns, styles } = parts;
  const right = `${scope}  (Tab: ${others.join(", ")})`;
  const room = columns - 1 - cellWidth(searchLabel);
  // The end of a long filter is what is being typed.
  const typed = shorten(filter, Math.max(1, room - 1), "start");
  const free = room - cellWidth(typed) - cellWidth(right);
  return `${styles.dim(searchLabel)}${typed}${free > 1 ? `${" ".repeat(free)}${styles.dim(right)}` : ""}`;
}

function bothEnds(left: string, right: string, { columns }: RowParts, style: (text: string) => string): string {
  const room = columns - 1;
  const shown = shorten(left, Math.max(1, Math.floor(room / 2)), "start");
  const free = room - cellWidth(shown);
  const end = shorten(right, Math.max(1, free - 2), "end");
  return free < 8 ? style(shown) : `${style(shown)}${" ".repeat(free - cellWidth(end))}${end}`;
}

interface ItemLook {
  readonly isChosen: boolean;
  readonly widths: ColumnWidths;
}

function itemRows(item: PickerItem, look: ItemLook, facts: ListFacts, parts: RowParts): readonly string[] {
  const { signs, styles, columns } = parts;
  const { isChosen } = look;
  const mark = isChosen ? ` ${styles.cyan(signs.choice)} ` : "   ";
  if (item.kind === "new") {
    const text = shorten("New session here", Math.max(1, columns - 4), "end");
    return [`${mark}${isChosen ? styles.bold(text) : text}`];
  }
  if (item.kind === "name") {
    const { session, positions } = item.match;
    return [`${mark}${sessionRow(session, { ...look, positions, more: 0 }, facts, parts)}`];
  }
  const { session, found } = item;
  const first = sessionRow(session, { ...look, positions: new Set(), more: found.more }, facts, parts);
  return [`${mark}${first}`, snippetRow(item, parts)];
}

function snippetRow({ found }: Extract<PickerItem, { kind: "text" }>, { styles, columns }: RowParts): string {
  const { role, snippet, highlights } = found.hit;
  const place = `     ${role ?? "record"}: `;
  const flat = flatSnippet(snippet, highlights);
  const pieces = snippetPieces(flat.snippet, flat.highlights, Math.max(1, columns - 1 - place.length));
  const text = pieces.map((piece) =>
    typeof piece === "string" ? styles.dim(terminalSafe(piece)) : styles.bold(terminalSafe(piece.text)),
  );
  return columns - 1 <= place.length + 2 ? "" : `${styles.dim(place)}${text.join("")}`;
}

interface RowLook extends ItemLook {
  readonly positions: ReadonlySet<number>;
  readonly more: number;
}

function sessionRow(session: ListedSession, look: RowLook, facts: ListFacts, parts: RowParts): string {
  const { columns, signs, styles } = parts;
  const has = (part: keyof typeof needed): boolean => columns >= needed[part];
  const isActive = facts.isActive(session);
  const state = look.more > 0 ? `+${look.more}` : session.isArchived ? "archived" : isActive ? signs.tool : "";
  const { folder, state: stateCells } = look.widths;
  const ends = [
    ...(has("program") ? [padded(session.program, cells.program)] : []),
    ...(folder > 0 ? [padded(session.folder, folder, "start")] : []),
    ...(has("age") ? [ageText(session.updatedAtMs, facts.nowMs).padStart(cells.age)] : []),
    ...(has("count") ? [`${grouped(session.messageCount)} msg`.padStart(cells.count)] : []),
    ...(has("age") ? [padded(state, stateCells)] : []),
  ];
  const end = ends.map((cell) => `${" ".repeat(gap)}${cell}`).join("");
  const room = Math.max(1, columns - 4 - cellWidth(end));
  const name = shorten(facts.nameOf(session), room, "end");
  const shown = withMatches(name, look, styles);
  return `${shown}${" ".repeat(Math.max(0, room - cellWidth(name)))}${styles.dim(end)}`.trimEnd();
}

function padded(text: string, width: number, cut: "end" | "start" = "end"): string {
  const shown = shorten(text, width, cut);
  return `${shown}${" ".repeat(Math.max(0, width - cellWidth(shown)))}`;
}

/** Underlines the typed characters, each as a whole: a style inside of one would take it apart. The places count code points. */
function withMatches(name: string, { positions, isChosen }: RowLook, { underline, bold }: Styles): string {
  if (positions.size === 0) return isChosen ? bold(name) : name;
  let at = 0;
  const text = Array.from(graphemes.segment(name), ({ segment }) => {
    const places = Array.from(segment, () => at++);
    return places.some((place) => positions.has(place)) ? underline(segment) : segment;
  }).join("");
  return isChosen ? bold(text) : text;
}

/** Says how many are shown, what is left out, and what the keys do. */
function lastText(list: PickerList, facts: ListFacts, { signs }: RowParts): string {
  const { filter, programs, hiddenCount, reading, escape } = facts;
  const total = programs.reduce((sum, [, count]) => sum + count, 0);
  const { sessions, hitCount, isCut } = list.hits;
  const texts = `${isCut ? "more than " : ""}${counted(hitCount, "hit")} in ${counted(sessions.length, "session")}`;
  const parts = [
    ...(filter === "" ? [] : [`${grouped(list.nameCount)} of ${grouped(total)} by name`]),
    ...(filter === "" || hitCount === 0 ? [] : [texts]),
    ...(hiddenCount === 0 ? [] : [`${grouped(hiddenCount)} more in other scopes`]),
    ...(reading === null ? [] : [reading]),
    filter === "" ? "Enter opens, Space shows" : "Enter opens",
    filter === "" ? `Esc ${escape}` : "Esc clears",
  ];
  return parts.join(` ${signs.dot} `);
}

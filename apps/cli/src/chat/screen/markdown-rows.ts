import type { Token, Tokens } from "marked";
import { codeRows } from "./code-rows.ts";
import { inlineText, type MarkdownOptions } from "./markdown-inline.ts";
import { tableRows } from "./markdown-table.ts";
import { wrapRows } from "./wrap-rows.ts";

/** The room for a block: prose is wrapped, code is not. */
export interface BlockRoom {
  readonly width: number;
  readonly level: number;
}

const narrowest = 8;
const mostLevels = 16;

/** Returns a block of Markdown as rows, without an empty row before or behind it. */
export function blockRows(token: Token, options: MarkdownOptions, room: BlockRoom): readonly string[] {
  const { styles, signs } = options;
  if (room.level > mostLevels) return wrapRows(token.raw.trim(), room.width);
  switch (token.type) {
    case "space":
    case "checkbox":
      return [];
    case "heading":
      return wrapRows(styles.bold(inlineText(token.tokens ?? [], options)), room.width);
    case "code":
      return codeRows(
        (token as Tokens.Code).text.split("\n"),
        ((token as Tokens.Code).lang ?? "").split(/\s/, 1)[0] ?? "",
        options,
      );
    case "blockquote":
      return blocksRows(token.tokens ?? [], options, inner(room, 2)).map((row) => `${styles.dim(signs.bar)} ${row}`);
    case "list":
      return (token as Tokens.List).items.flatMap((item, index) =>
        itemRows(item, listMark(token as Tokens.List, item, index, options), options, room),
      );
    case "hr":
      return [styles.dim(signs.line.repeat(Math.min(room.width, 40)))];
    case "table":
      return tableRows(token as Tokens.Table, options, room.width);
    case "paragraph":
    case "text":
      return wrapRows(token.tokens === undefined ? token.raw.trim() : inlineText(token.tokens, options), room.width);
    default:
      return token.raw.trim() === "" ? [] : wrapRows(token.raw.trim(), room.width);
  }
}

/** Returns blocks one below the other; inside of a list or quotation only code stands apart. */
function blocksRows(tokens: readonly Token[], options: MarkdownOptions, room: BlockRoom): readonly string[] {
  const rows: string[] = [];
  for (const token of tokens) {
    const own = blockRows(token, options, room);
    if (own.length > 0 && rows.length > 0 && token.type === "paragraph") rows.push("");
    for (const row of own) rows.push(row);
  }
  return rows;
}

export function listMark(
  { ordered, start }: Pick<Tokens.List, "ordered" | "start">,
  { task, checked }: Tokens.ListItem,
  index: number,
  { signs }: MarkdownOptions,
): string {
  if (task) return `${checked === true ? signs.checked : signs.unchecked} `;
  return ordered ? `${(start === "" ? 1 : start) + index}. ` : `${signs.bullet} `;
}

export function itemRows(
  { tokens }: Tokens.ListItem,
  mark: string,
  options: MarkdownOptions,
  room: BlockRoom,
): readonly string[] {
  const rows = blocksRows(tokens, options, inner(room, mark.length));
  const indent = " ".repeat(mark.length);
  return rows.length === 0 ? [mark.trimEnd()] : rows.map((row, index) => `${index === 0 ? mark : indent}${row}`);
}

function inner({ width, level }: BlockRoom, cells: number): BlockRoom {
  return { width: Math.max(narrowest, width - cells), level: level + 1 };
}

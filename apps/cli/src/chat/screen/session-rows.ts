import type { StoredRecord } from "@throughline/core";
import { messageRole, recordText } from "@throughline/core/internal";
import { terminalSafe, terminalSafeLine } from "../../terminal-safe.ts";
import { createToolLines } from "../tool-line.ts";
import type { MarkdownOptions } from "./markdown-inline.ts";
import { MarkdownStream } from "./markdown-stream.ts";

/** A longer message is not shown whole; `/history` and `throughline show` print it. */
const mostCharacters = 20_000;

/** Returns the end of a session as it stood on the screen: its messages, and one row for each tool. */
export function sessionRows(
  records: readonly StoredRecord[],
  options: MarkdownOptions,
  columns: number,
): readonly string[] {
  const tools = createToolLines();
  const rows: string[] = [];
  for (const stored of records) for (const row of recordRows(stored, tools, options, columns)) rows.push(row);
  return rows;
}

function recordRows(
  stored: StoredRecord,
  tools: ReturnType<typeof createToolLines>,
  options: MarkdownOptions,
  columns: number,
): readonly string[] {
  const { styles, signs } = options;
  const { record } = stored;
  const tool = tools.take(stored, 0);
  if (tool !== null) {
    const target = tool.target === "" ? "" : ` ${tool.target}`;
    return [styles.dim(terminalSafeLine(`${signs.tool} ${tool.name}${target}${tool.isError ? " (failed)" : ""}`))];
  }
  const text = recordText(record).slice(0, mostCharacters).toWellFormed().trim();
  if (text === "") return [];
  if (messageRole(record) === "user")
    return [
      "",
      ...terminalSafe(text)
        .split("\n")
        .map((line, at) => styles.cyan(`${at === 0 ? ">" : " "} ${line}`)),
    ];
  const stream = new MarkdownStream(options);
  stream.push(text);
  const { recovered } = (record["message"] ?? {}) as { readonly recovered?: unknown };
  const note = recovered === true ? [styles.dim("(cut off)")] : [];
  return ["", ...stream.take({ columns, mostRows: Infinity }, true).finished, ...note];
}

import { type Fields, isFields, pathArgumentNames, type Steps, writtenPaths } from "@throughline/core/internal";
import { blocksOf, cutBlock, cutNote, outputNodes, textOf } from "./block-nodes.ts";
import { changedLines, diffBlock, diffLines } from "./diff-lines.ts";
import { fileChangeOf, structuredPatchOf } from "./file-change.ts";
import type { RowOptions } from "./row-options.ts";
import { plainBlock, sizeText } from "./text-blocks.ts";
import type { RowBadge, RowContent } from "./transcript-row.ts";
import { element, type ViewNode } from "./view-tree.ts";
import { visibleText } from "./visible-text.ts";

/** A call of a tool, and its result once that was read. */
export interface ToolUse {
  readonly name: string;
  readonly args: unknown;
  /** Holds the message of the result; null for a call without one. */
  result: Fields | null;
  resultMs: number | null;
  resultSeq: number | null;
}

const mostDetailCharacters = 160;
const changeLines = 40;

/** Returns what a row of a call shows. @param startMs when the model made the call */
export function* toolRow(use: ToolUse, startMs: number | null, options: RowOptions): Steps<RowContent> {
  const { name, args, result } = use;
  const badges: RowBadge[] = [];
  const tree: ViewNode[] = [];
  const lines = yield* changeOf(use);
  if (lines === null) tree.push(...(yield* argumentNodes(args, options)));
  else {
    const { added, removed } = changedLines(lines);
    if (added > 0) badges.push({ text: `+${added}`, tone: "added" });
    if (removed > 0) badges.push({ text: `−${removed}`, tone: "removed" });
    tree.push(...(yield* changeNodes(lines, options)));
  }
  const isFailed = result?.["isError"] === true;
  if (isFailed) badges.push({ text: "failed", tone: "error" });
  const blocks = blocksOf(result?.["content"]);
  const output = yield* outputNodes(blocks, options);
  if (tree.length > 0 && output.length > 0) tree.push(element("div", ["Result"], { class: "label" }));
  tree.push(...output);
  if (result === null) badges.push({ text: "no result", tone: "warning" });
  else badges.push(...sizeBadges(blocks, options.resultBytes?.(result) ?? null, startMs, use.resultMs));
  const paths = writtenPaths(name, args).map((path) => withoutFolder(path, options));
  const detail = paths.length > 0 ? shortText([...new Set(paths)].join(", ")) : withoutFolder(detailOf(args), options);
  return { kind: "tool", title: name, detail, badges, fold: lines === null || isFailed ? "closed" : "open", tree };
}

function sizeBadges(
  blocks: readonly Fields[],
  bytes: number | null,
  startMs: number | null,
  endMs: number | null,
): readonly RowBadge[] {
  const characters = bytes ?? blocks.reduce((sum, { text }) => sum + textOf(text).length, 0);
  const ms = startMs === null || endMs === null ? 0 : endMs - startMs;
  return [
    ...(characters > 0 ? [{ text: sizeText(characters), tone: "plain" as const }] : []),
    ...(ms >= 1000 ? [{ text: durationText(ms), tone: "plain" as const }] : []),
  ];
}

function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** Returns null for a call that writes no file, or whose change is not known. */
function* changeOf({ name, args, result }: ToolUse): Steps<readonly string[] | null> {
  if (writtenPaths(name, args).length === 0) return null;
  const patch = structuredPatchOf(result?.["details"]);
  if (patch !== null) return patch;
  const change = fileChangeOf(args);
  if (change === null) return null;
  const lines = yield* diffLines(change);
  return lines.length > 0 ? lines : null;
}

function* changeNodes(lines: readonly string[], { level }: RowOptions): Steps<readonly ViewNode[]> {
  if (level === "full" || lines.length <= changeLines) return [yield* diffBlock(lines)];
  const rest = lines.slice(changeLines);
  const characters = rest.reduce((sum, line) => sum + line.length, 0);
  return [yield* diffBlock(lines.slice(0, changeLines)), cutNote(rest.length, characters)];
}

/** A single text, such as a command, stands for itself; other arguments have their names. */
function* argumentNodes(args: unknown, options: RowOptions): Steps<readonly ViewNode[]> {
  if (typeof args === "string") return yield* cutBlock(args, options);
  const fields = isFields(args) ? Object.entries(args) : [];
  if (fields.length === 0) return [];
  const [[, first] = []] = fields;
  if (fields.length === 1 && typeof first === "string")
    return first.length > mostDetailCharacters || first.includes("\n") ? yield* cutBlock(first, options) : [];
  return yield* cutBlock(fields.map(([name, value]) => `${name}: ${valueText(value)}`).join("\n"), options);
}

function valueText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 1) ?? "";
  return value.includes("\n") ? `\n${value}` : value;
}

const firstNames: readonly string[] = [
  ...pathArgumentNames,
  "target_file",
  "absolute_path",
  "command",
  "cmd",
  "pattern",
  "query",
  "url",
  "description",
  "prompt",
];

/** Returns the most important argument of a call: the path, the command or the first short text. */
function detailOf(args: unknown): string {
  if (typeof args === "string") return shortText(args);
  if (!isFields(args)) return "";
  const named = firstNames.map((name) => args[name]).find((value) => typeof value === "string" || Array.isArray(value));
  const value = named ?? Object.values(args).find((each) => typeof each === "string");
  const parts: readonly unknown[] = Array.isArray(value) ? value : [value];
  return shortText(parts.filter((part) => typeof part === "string").join(" "));
}

/** Most paths of a session are below its folder, and their ends tell them apart. */
function withoutFolder(text: string, { folder }: RowOptions): string {
  return folder !== null && folder !== "" && text.startsWith(`${folder}/`) ? text.slice(folder.length + 1) : text;
}

export function shortText(text: string, most: number = mostDetailCharacters): string {
  const line =
    text
      .slice(0, most * 4)
      .trim()
      .split("\n", 1)[0] ?? "";
  return line.length < text.trim().length || line.length > most
    ? `${line.slice(0, most).toWellFormed().trimEnd()}…`
    : line;
}

/** A command that a person ran has its output like a tool. */
export function* commandRow(message: Fields, options: RowOptions): Steps<RowContent> {
  const { command, output, exitCode, cancelled } = message;
  const badges: RowBadge[] = [];
  if (typeof exitCode === "number" && exitCode !== 0) badges.push({ text: `exit code ${exitCode}`, tone: "error" });
  if (cancelled === true) badges.push({ text: "canceled", tone: "warning" });
  const text = textOf(command);
  const tree: ViewNode[] = text.includes("\n") ? [yield* plainBlock(text)] : [];
  if (textOf(output).trim() !== "") tree.push(...(yield* cutBlock(textOf(output), options)));
  return { kind: "command", title: "Command", detail: shortText(text), badges, fold: "closed", tree };
}

/** Returns the content with signs in place of invisible characters in its titles. */
export function visibleContent(content: RowContent): RowContent {
  return { ...content, title: visibleText(content.title), detail: visibleText(content.detail) };
}

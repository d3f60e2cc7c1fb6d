import type { Steps } from "@throughline/core/internal";
import { structuredPatch } from "diff/lib/patch/create.js";
import type { FileChange } from "./file-change.ts";
import { element, type ViewElement, type ViewNode } from "./view-tree.ts";
import { visibleText } from "./visible-text.ts";

/** A comparison that takes longer ends, and the texts are shown one behind the other. It must not hold up a server. */
const timeoutMs = 20;
/** Above this the comparison splits the texts for too long before its timeout counts. */
const mostCharacters = 1024 * 1024;
const contextLines = 3;

/** Returns the change as lines of a diff, each with its sign. @param timeout of each comparison, in milliseconds */
export function* diffLines({ edits, patch }: FileChange, timeout: number = timeoutMs): Steps<readonly string[]> {
  if (patch !== null) return patch.split("\n");
  const lines: string[] = [];
  for (const { before, after } of edits) {
    if (lines.length > 0) lines.push("@@");
    // A long text would not fit into the arguments of one push.
    for (const line of compared(before, after, timeout)) lines.push(line);
    yield;
  }
  return lines;
}

function compared(before: string, after: string, timeout: number): readonly string[] {
  if (before === "") return signed("+", after);
  if (after === "") return signed("-", before);
  const hunks = diffHunks(before, after, timeout);
  if (hunks === null) return [...signed("-", before), ...signed("+", after)];
  return hunks.flatMap(({ lines }, index) => (index === 0 ? lines : ["@@", ...lines]));
}

/** Holds lines that differ, with those around them. */
export interface DiffHunk {
  /** Number the first line in the text before and in the text after, from 1. */
  readonly beforeLine: number;
  readonly afterLine: number;
  /** Each begins with its sign: `+`, `-` or a space. */
  readonly lines: readonly string[];
}

/**
 * Returns the places where two texts differ. Null for texts that would be compared for too long.
 *
 * @param timeout limits the comparison, in milliseconds
 */
export function diffHunks(before: string, after: string, timeout: number = timeoutMs): readonly DiffHunk[] | null {
  if (before.length + after.length >= mostCharacters) return null;
  const options = { context: contextLines, timeout };
  const patch = structuredPatch("", "", before, after, "", "", options);
  if (patch === undefined) return null;
  return patch.hunks.map(({ oldStart, newStart, lines }) => ({
    beforeLine: oldStart,
    afterLine: newStart,
    lines: lines.filter(isOfText),
  }));
}

/** The remark on a missing line end says nothing about a part of a file. */
function isOfText(line: string): boolean {
  return !line.startsWith("\\ No newline");
}

function signed(sign: string, text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n").map((line) => sign + line);
}

export function changedLines(lines: readonly string[]): { readonly added: number; readonly removed: number } {
  let added = 0;
  let removed = 0;
  for (const line of lines) {
    if (line.startsWith("+") && !line.startsWith("+++ ")) added += 1;
    else if (line.startsWith("-") && !line.startsWith("--- ")) removed += 1;
  }
  return { added, removed };
}

const classes: Readonly<Record<string, string>> = { "+": "add", "-": "cut", "@": "at", "*": "at" };
const linesOfStep = 500;

/** Neighboring lines with the same sign are one element, so that a diff is hardly larger than its text. */
export function* diffBlock(lines: readonly string[]): Steps<ViewElement> {
  const children: ViewNode[] = [];
  let run: string[] = [];
  let sign = "";
  const end = (): void => {
    if (run.length === 0) return;
    const text = `${run.join("\n")}\n`;
    const name = classes[sign];
    children.push(name === undefined ? text : element("span", [text], { class: name }));
    run = [];
  };
  for (const [index, line] of lines.entries()) {
    const own = line.charAt(0) in classes ? line.charAt(0) : " ";
    if (own !== sign || run.length >= linesOfStep) end();
    sign = own;
    run.push(visibleText(line));
    if (index % linesOfStep === 0) yield;
  }
  end();
  return element("pre", children, { class: "diff" });
}

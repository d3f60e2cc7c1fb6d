import type { ChangeQuestion } from "@throughline/agent/internal";
import { diffHunks, visibleText } from "@throughline/transcript-view/internal";
import { counted, grouped, sizeText } from "../../counted.ts";

/** Limits the comparison of the file before and after, which holds the event loop. */
const compareMs = 45;

/** One line of a change. The numbers are null where the text has no such line. */
export interface ChangeLine {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly before: number | null;
  readonly after: number | null;
  readonly text: string;
}

export interface ShownChange {
  /** For example `+3 -1`, `new file, 12 lines` or `replaces 5,000 lines`. */
  readonly summary: string;
  readonly lines: readonly ChangeLine[];
}

/** Returns what a change does to the lines of its file. Signs stand for invisible characters. */
export function changeLines({ before, after, beforeBytes }: ChangeQuestion): ShownChange {
  if (beforeBytes === null) {
    const lines = linesOf(after);
    return { summary: `new file, ${linesText(lines.length)}`, lines: whole("added", lines) };
  }
  if (before === null)
    return { summary: `replaces ${sizeText(beforeBytes)} that are not shown`, lines: whole("added", linesOf(after)) };
  const hunks = diffHunks(before, after, compareMs);
  if (hunks === null) {
    const lines = linesOf(after);
    const summary = `replaces ${linesText(linesOf(before).length)} by ${linesText(lines.length)}`;
    return { summary, lines: whole("added", lines) };
  }
  const lines: ChangeLine[] = [];
  for (const hunk of hunks) {
    if (lines.length > 0) lines.push({ kind: "gap", before: null, after: null, text: "" });
    let { beforeLine, afterLine } = hunk;
    for (const line of hunk.lines) {
      const text = visibleText(line.slice(1));
      const sign = line.charAt(0);
      if (sign === "+") lines.push({ kind: "added", before: null, after: afterLine++, text });
      else if (sign === "-") lines.push({ kind: "removed", before: beforeLine++, after: null, text });
      else lines.push({ kind: "same", before: beforeLine++, after: afterLine++, text });
    }
  }
  return { summary: countsOf(lines, before, after), lines };
}

/** A diff of two texts without a changed line says what differs. */
function countsOf(lines: readonly ChangeLine[], before: string, after: string): string {
  const count = (kind: ChangeLine["kind"]): number => lines.filter((line) => line.kind === kind).length;
  const [added, removed] = [count("added"), count("removed")];
  if (added + removed > 0) return `+${grouped(added)} -${grouped(removed)}`;
  return before === after ? "changes nothing" : "changes the end of the last line";
}

function whole(kind: "added", lines: readonly string[]): readonly ChangeLine[] {
  return lines.map((line, at) => ({ kind, before: null, after: at + 1, text: visibleText(line) }));
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

function linesText(count: number): string {
  return count === 1 ? counted(count, "line") : `${grouped(count)} lines`;
}

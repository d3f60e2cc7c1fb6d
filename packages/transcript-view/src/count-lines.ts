import type { Steps } from "@throughline/core/internal";
import { changedLines, diffLines } from "./diff-lines.ts";

interface LineCount {
  readonly added: number;
  readonly removed: number;
}

/** Limits the table of a comparison, which then takes about a millisecond. */
const mostCells = 500_000;

/** Counts what the diff of two texts adds and removes. It makes no diff, so that a whole session is counted quickly. */
export function* countLines(before: string, after: string): Steps<LineCount> {
  const [one, other] = [linesOf(before), linesOf(after)];
  let start = 0;
  let [end, otherEnd] = [one.length, other.length];
  while (start < end && start < otherEnd && one[start] === other[start]) start++;
  while (end > start && otherEnd > start && one[end - 1] === other[otherEnd - 1]) {
    end--;
    otherEnd--;
  }
  const [left, right] = [one.slice(start, end), other.slice(start, otherEnd)];
  if (left.length * right.length > mostCells)
    return changedLines(yield* diffLines({ edits: [{ before, after }], patch: null, isWhole: false }));
  const same = commonLines(left, right);
  return { added: right.length - same, removed: left.length - same };
}

/** Returns the length of the longest common subsequence. */
function commonLines(one: readonly string[], other: readonly string[]): number {
  if (one.length === 0 || other.length === 0) return 0;
  const numbers = new Map<string, number>();
  // Numbers are compared many times faster than lines.
  const wanted = Uint32Array.from(other, (line) => numberOf(line, numbers));
  let row = new Uint32Array(other.length + 1);
  let next = new Uint32Array(other.length + 1);
  for (const line of one) {
    const own = numbers.get(line) ?? 0;
    for (let at = 1; at <= wanted.length; at++)
      next[at] = own === wanted[at - 1] ? (row[at - 1] ?? 0) + 1 : Math.max(row[at] ?? 0, next[at - 1] ?? 0);
    [row, next] = [next, row];
  }
  return row[other.length] ?? 0;
}

/** Numbers the lines from 1. */
function numberOf(line: string, numbers: Map<string, number>): number {
  const found = numbers.get(line) ?? numbers.size + 1;
  numbers.set(line, found);
  return found;
}

/** A last line without a line feed is another line than one with it, so it gets a mark that no line has. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  if (last !== "") lines.push(`${last}\n`);
  return lines;
}

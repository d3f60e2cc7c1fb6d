const openRows = 4;
const mostTries = 12;

/**
 * Returns where the source of a paragraph is cut, behind a space; null while no such place is known. The rows of both parts
 * are those of the whole. The last four rows stay open, and no mark such as `**` is open at the cut. Above
 * `mostRows` rows any place between two words will do.
 */
export function paragraphCut(
  raw: string,
  rowsOf: (raw: string) => readonly string[],
  rows: readonly string[],
  mostRows: number,
): number | null {
  const ends = wordEnds(raw);
  const last = rows.length - openRows;
  for (let count = last; count > Math.max(0, last - mostTries); count--) {
    const cut = cutBehind(count, ends, (end) => rowsOf(raw.slice(0, end)).length);
    if (cut === null || !isBalanced(raw.slice(0, cut))) continue;
    const both = [...rowsOf(raw.slice(0, cut)), ...rowsOf(raw.slice(cut))];
    if (both.length === rows.length && both.every((row, at) => row === rows[at])) return cut;
  }
  return rows.length > mostRows ? cutBehind(last, ends, (end) => rowsOf(raw.slice(0, end)).length) : null;
}

/** Finds the last end of a word before which at most `count` rows are filled. */
function cutBehind(count: number, ends: readonly number[], rowsBefore: (end: number) => number): number | null {
  let low = 0;
  let high = ends.length - 1;
  let best: number | null = null;
  while (low <= high) {
    const middle = Math.floor((low + high) / 2);
    const end = ends[middle] ?? 0;
    if (rowsBefore(end) <= count) {
      best = end;
      low = middle + 1;
    } else high = middle - 1;
  }
  return best;
}

function wordEnds(raw: string): readonly number[] {
  const ends: number[] = [];
  for (let at = 1; at < raw.length; at++)
    if (" \n".includes(raw.charAt(at - 1)) && !" \n".includes(raw.charAt(at))) ends.push(at);
  return ends;
}

/** Whether every mark and bracket that was opened is closed, as far as counting shows. */
function isBalanced(raw: string): boolean {
  const counts = new Map<string, number>();
  for (const character of raw) counts.set(character, (counts.get(character) ?? 0) + 1);
  const count = (character: string): number => counts.get(character) ?? 0;
  const areEven = ["`", "*", "~"].every((mark) => count(mark) % 2 === 0);
  return areEven && count("[") === count("]") && count("(") === count(")");
}

/** Holds a part of a text that is found and shown as a whole. */
export interface TextPassage {
  readonly text: string;
  /** Counts lines from 1. */
  readonly firstLine: number;
  readonly lastLine: number;
}

/** A model needs about this much text to judge a hit, in UTF-16 units. */
const usualLength = 700;

/**
 * Splits a text into passages of whole lines. A line that is longer than a passage is cut, so that no passage exceeds
 * the limit. Blank lines at the ends are left out. A heading starts a new passage once the current one has a quarter of
 * the length.
 */
export function splitPassages(text: string, mostLength: number = usualLength): readonly TextPassage[] {
  const passages: TextPassage[] = [];
  let lines: string[] = [];
  let length = 0;
  let firstLine = 1;
  const end = (lastLine: number): void => {
    const kept = trimBlank(lines, firstLine);
    if (kept !== null) passages.push({ ...kept, lastLine: Math.min(lastLine, kept.lastLine) });
    lines = [];
    length = 0;
  };
  for (const [index, whole] of text.split("\n").entries()) {
    const number = index + 1;
    for (const line of piecesOf(whole, mostLength)) {
      const isHeading = /^#{1,6} /.test(line) && length > mostLength / 4;
      if (length > 0 && (isHeading || length + line.length + 1 > mostLength)) end(number);
      if (length === 0 && lines.length === 0) firstLine = number;
      lines.push(line);
      length += line.length + 1;
    }
  }
  end(Number.POSITIVE_INFINITY);
  return passages;
}

function trimBlank(lines: readonly string[], firstLine: number): TextPassage | null {
  const from = lines.findIndex((line) => line.trim() !== "");
  if (from < 0) return null;
  const to = lines.findLastIndex((line) => line.trim() !== "");
  return { text: lines.slice(from, to + 1).join("\n"), firstLine: firstLine + from, lastLine: firstLine + to };
}

function piecesOf(line: string, mostLength: number): readonly string[] {
  if (line.length <= mostLength) return [line];
  const pieces: string[] = [];
  for (let at = 0; at < line.length;) {
    const isSplitPair = isHighSurrogate(line.charCodeAt(at + mostLength - 1));
    const end = Math.min(line.length, at + mostLength - (isSplitPair ? 1 : 0));
    pieces.push(line.slice(at, end));
    at = end;
  }
  return pieces;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

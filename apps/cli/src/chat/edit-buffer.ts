/** Holds the typed text and the caret. The caret never stands inside a grapheme, which may have several code units. */
export interface EditBuffer {
  readonly text: string;
  /** Counts UTF-16 units from the beginning. */
  readonly caret: number;
}

export const emptyBuffer: EditBuffer = { text: "", caret: 0 };

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const words = new Intl.Segmenter(undefined, { granularity: "word" });

export function insertText({ text, caret }: EditBuffer, inserted: string): EditBuffer {
  return { text: text.slice(0, caret) + inserted + text.slice(caret), caret: caret + inserted.length };
}

export function moveLeft({ text, caret }: EditBuffer): EditBuffer {
  return { text, caret: caret - lastLength(graphemes, text.slice(0, caret)) };
}

export function moveRight({ text, caret }: EditBuffer): EditBuffer {
  const [next] = graphemes.segment(text.slice(caret));
  return { text, caret: caret + (next?.segment.length ?? 0) };
}

export function moveWordLeft({ text, caret }: EditBuffer): EditBuffer {
  let before = text.slice(0, caret);
  for (const segment of [...words.segment(before)].toReversed()) {
    before = before.slice(0, -segment.segment.length);
    if (segment.isWordLike === true) break;
  }
  return { text, caret: before.length };
}

export function moveWordRight({ text, caret }: EditBuffer): EditBuffer {
  let at = caret;
  for (const segment of words.segment(text.slice(caret))) {
    at += segment.segment.length;
    if (segment.isWordLike === true) break;
  }
  return { text, caret: at };
}

/** Moves within the current line, not to the start of the whole text. */
export function moveHome({ text, caret }: EditBuffer): EditBuffer {
  return { text, caret: caret === 0 ? 0 : text.lastIndexOf("\n", caret - 1) + 1 };
}

export function moveEnd({ text, caret }: EditBuffer): EditBuffer {
  const end = text.indexOf("\n", caret);
  return { text, caret: end < 0 ? text.length : end };
}

/** Keeps the column if the line above is long enough; null in the first line. */
export function moveUp(buffer: EditBuffer): EditBuffer | null {
  const home = moveHome(buffer).caret;
  if (home === 0) return null;
  const above = moveHome({ text: buffer.text, caret: home - 1 }).caret;
  return { text: buffer.text, caret: columnIn(buffer.text, above, home - 1, buffer.caret - home) };
}

export function moveDown(buffer: EditBuffer): EditBuffer | null {
  const end = moveEnd(buffer).caret;
  if (end === buffer.text.length) return null;
  const column = buffer.caret - moveHome(buffer).caret;
  return {
    text: buffer.text,
    caret: columnIn(buffer.text, end + 1, moveEnd({ text: buffer.text, caret: end + 1 }).caret, column),
  };
}

export function eraseTo(buffer: EditBuffer, move: (from: EditBuffer) => EditBuffer): EditBuffer {
  const { caret } = move(buffer);
  const [from, to] = caret < buffer.caret ? [caret, buffer.caret] : [buffer.caret, caret];
  return { text: buffer.text.slice(0, from) + buffer.text.slice(to), caret: from };
}

/** Rounds down to a grapheme boundary, so that the caret never splits a character. */
function columnIn(text: string, start: number, end: number, column: number): number {
  let at = start;
  for (const { segment } of graphemes.segment(text.slice(start, end))) {
    if (at + segment.length > start + column) break;
    at += segment.length;
  }
  return at;
}

function lastLength(segmenter: Intl.Segmenter, text: string): number {
  return [...segmenter.segment(text)].at(-1)?.segment.length ?? 0;
}

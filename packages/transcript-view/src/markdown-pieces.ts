/** A part of a Markdown text that is read alone. */
export interface MarkdownPiece {
  /** `plain` text would take the lexer too long, or its recursion too deep. */
  readonly kind: "markdown" | "code" | "plain";
  readonly text: string;
  /** Names the language of a `code` piece; else empty. */
  readonly language: string;
}

/** A piece ends at the first empty line behind this length, so that reading one takes a few milliseconds. */
const usualCharacters = 4096;
const mostCharacters = 16 * 1024;
/** The time of the lexer grows with the square of these. 800 of them take 9 ms. */
const mostMarks = 800;
const mostNesting = 24;
const mostIndentation = 96;

/** Cuts a text into fenced code and the Markdown between it. */
export function* markdownPieces(text: string): Generator<MarkdownPiece, void, void> {
  let lines: string[] = [];
  let length = 0;
  let fence: OpenFence | null = null;
  const end = function* (): Generator<MarkdownPiece, void, void> {
    if (lines.length > 0) yield fence === null ? prose(lines.join("\n")) : code(lines.join("\n"), fence.language);
    lines = [];
    length = 0;
  };
  for (const line of text.replaceAll("\r\n", "\n").split("\n")) {
    if (fence !== null && isClosingFence(line, fence)) {
      if (lines.length === 0) lines.push("");
      yield* end();
      fence = null;
      continue;
    }
    const opened: OpenFence | null = fence === null ? openFence(line) : null;
    if (opened !== null) {
      yield* end();
      fence = opened;
      continue;
    }
    const isBorder = fence === null && line.trim() === "" && length > usualCharacters;
    if (isBorder) yield* end();
    else lines.push(line);
    length += line.length + 1;
  }
  yield* end();
}

export interface OpenFence {
  readonly mark: string;
  readonly length: number;
  readonly language: string;
}

/** Returns the fence that a line opens; null for another line. A fence inside of a list is indented, and stays with the list. */
export function openFence(line: string): OpenFence | null {
  const [, marks = "", info = ""] = /^(`{3,64}|~{3,64})([^`]{0,200})$/.exec(line) ?? [];
  if (marks === "") return null;
  return { mark: marks.charAt(0), length: marks.length, language: info.trim().split(/\s/, 1)[0] ?? "" };
}

export function isClosingFence(line: string, { mark, length }: OpenFence): boolean {
  const marks = line.trimEnd();
  return marks.length >= length && marks === mark.repeat(marks.length);
}

function code(text: string, language: string): MarkdownPiece {
  return { kind: "code", text, language };
}

function prose(text: string): MarkdownPiece {
  return { kind: isPlainProse(text) ? "plain" : "markdown", text, language: "" };
}

/** Whether the lexer would take too long for a text, or call itself too deep. */
export function isPlainProse(text: string): boolean {
  return text.length > mostCharacters || hasManyMarks(text) || text.split("\n").some(isDeep);
}

function hasManyMarks(text: string): boolean {
  let count = 0;
  for (let at = 0; at < text.length; at++) if ("*_~[".includes(text.charAt(at))) count += 1;
  return count > mostMarks;
}

/** Quotations and lists in each other make the lexer call itself. */
function isDeep(line: string): boolean {
  let nesting = 0;
  let spaces = 0;
  for (let at = 0; at < line.length; at++) {
    const character = line.charAt(at);
    if (character === " ") spaces += 1;
    else if (character === "\t") spaces += 4;
    else if (character === ">") nesting += 1;
    else if ("-*+.)".includes(character)) nesting += " \t".includes(line.charAt(at + 1)) ? 1 : 0;
    else if (character < "0" || character > "9") break;
  }
  return nesting > mostNesting || spaces > mostIndentation;
}

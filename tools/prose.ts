import { langOf } from "./find-files.ts";
import { parseSync, type ParseResult } from "oxc-parser";
import { isSyntaxNode, lineCounter, walkSyntax } from "./syntax-tree.ts";

/** A piece of text that a person reads: a paragraph, a list item, a cell of a table, a message, a docstring. */
export interface ProsePiece {
  readonly kind: "paragraph" | "cell" | "message" | "docstring";
  /** The line on which it begins, from 1. */
  readonly line: number;
  /** Without marks: code and links to code count as one word. */
  readonly text: string;
}

/** A TypeScript file with its syntax tree and its comments. */
export interface ParsedSource extends Pick<ParseResult, "program" | "comments"> {
  readonly text: string;
}

/** Stands for code, a value or a link target, so that a sentence keeps its length. */
const placeholder = "Code";

function plainText(markdown: string): string {
  return markdown
    .replaceAll(/`[^`]*`/g, placeholder)
    .replaceAll(/!\[[^\]]*\]\([^)]*\)/g, placeholder)
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/\*\*|__/g, "")
    .replaceAll(/<[^>\s]+>/g, placeholder)
    .replaceAll(/\s+/g, " ")
    .trim();
}

function cellsOf(line: string): readonly string[] {
  // A bar inside a code span or after a backslash does not end a cell.
  return plainText(line.replaceAll("\\|", " "))
    .split("|")
    .map((cell) => cell.trim())
    .filter((cell) => cell !== "");
}

/** The paragraphs, list items, headings and table cells of a Markdown file. Fences and HTML comments are left out. */
export function proseOfMarkdown(text: string): readonly ProsePiece[] {
  const pieces: ProsePiece[] = [];
  let open: { line: number; parts: string[] } | null = null;
  let fence: string | null = null;
  const close = (): void => {
    if (open !== null) pieces.push({ kind: "paragraph", line: open.line, text: plainText(open.parts.join(" ")) });
    open = null;
  };
  for (const [index, textLine] of text.split("\n").entries()) {
    const line = textLine.trim();
    const mark = /^(`{3,}|~{3,})/.exec(line)?.[1] ?? null;
    if (fence !== null) {
      if (mark !== null && line === mark && mark.startsWith(fence)) fence = null;
      continue;
    }
    if (mark !== null) {
      close();
      fence = mark;
    } else if (line.startsWith("|")) {
      close();
      if (!/^\|[\s:|-]+\|$/.test(line))
        for (const cell of cellsOf(line)) pieces.push({ kind: "cell", line: index + 1, text: cell });
    } else if (line === "" || line.startsWith("<!--")) close();
    else {
      const starts = /^(?:#{1,6}\s|[-*+]\s|\d+\.\s|>\s?)/.exec(line)?.[0] ?? null;
      if (starts !== null) close();
      open ??= { line: index + 1, parts: [] };
      open.parts.push(line.slice(starts?.length ?? 0));
      if (starts?.startsWith("#") === true) close();
    }
  }
  close();
  return pieces;
}

/** Text of at least this many words is a message for people, not a name or a key. */
const fewestWords = 4;

function isProse(text: string): boolean {
  // Statements in SQL, scripts of a shell and regular expressions hold no sentence.
  if (/^\s*(?:[A-Z]{3,}\s|--|\/\/|\{|<|--?[a-z])/.test(text)) return false;
  if (
    /\b(?:SELECT|CASE\s+(?:\S+\s+)?WHEN|END IF|RETURNS|COALESCE|coalesce|DROP)\b|\b[a-z]\.[a-z_]+ =|\(\) \{|\(\?[:!<=]/.test(
      text,
    )
  )
    return false;
  return text.split(/\s+/).filter((word) => /[A-Za-z]{2}/.test(word)).length >= fewestWords;
}

function literalText(node: Readonly<Record<string, unknown>>): string | null {
  if (node["type"] === "Literal") return typeof node["value"] === "string" ? node["value"] : null;
  if (node["type"] !== "TemplateLiteral") return null;
  const quasis = node["quasis"] as readonly { readonly value: { readonly cooked: string | null } }[];
  return quasis.map(({ value }) => value.cooked ?? "").join(` ${placeholder} `);
}

/** Parses a TypeScript file, once for all questions about its texts. */
export function parseSource(path: string, text: string): ParsedSource {
  const { program, comments } = parseSync(path, text, { lang: langOf(path), sourceType: "module" });
  return { text, program, comments };
}

/** The messages and docstrings of a TypeScript file. Statements in SQL and examples in docstrings are left out. */
export function proseOfSource({ text, program, comments }: ParsedSource): readonly ProsePiece[] {
  const lineOf = lineCounter(text);
  const pieces: ProsePiece[] = comments
    .filter(({ type, value }) => type === "Block" && value.startsWith("*"))
    .flatMap(({ value, start }) => docstringPieces(value, lineOf(start)));
  walkSyntax(program, (node) => {
    if (!isSyntaxNode(node)) return;
    const literal = literalText(node as Readonly<Record<string, unknown>>);
    if (literal === null || !isProse(literal)) return;
    const line = lineOf(node.start);
    // A message with a table is a page of its own.
    if (/^\s*\|/m.test(literal))
      pieces.push(...proseOfMarkdown(literal).map((piece) => ({ ...piece, line: line + piece.line - 1 })));
    else pieces.push({ kind: "message", line, text: plainText(literal) });
  });
  return pieces;
}

/** Returns each line of each comment of a TypeScript file, without its marks. */
export function commentLines({
  text,
  comments,
}: ParsedSource): readonly { readonly line: number; readonly text: string }[] {
  const lineOf = lineCounter(text);
  return comments.flatMap(({ value, start }) =>
    value
      .split("\n")
      .map((each, index) => ({ line: lineOf(start) + index, text: each.replace(/^[\s*]*/, "").trim() }))
      .filter((each) => each.text !== ""),
  );
}

/** A docstring in pieces: the summary, then each tag by itself; examples are code. */
function docstringPieces(comment: string, line: number): readonly ProsePiece[] {
  const lines = comment.split("\n").map((each) => each.replace(/^\s*\*\s?/, ""));
  const blocks: { line: number; parts: string[]; isExample: boolean }[] = [{ line, parts: [], isExample: false }];
  for (const [index, each] of lines.entries()) {
    if (/^\s*@\w/.test(each) || each.trim() === "" || /^\s*-\s/.test(each))
      blocks.push({ line: line + index, parts: [], isExample: /^\s*@example/.test(each) });
    blocks.at(-1)?.parts.push(each.replace(/^\s*(?:@\w+(?:\s+\{[^}]*\})?|-)\s*/, ""));
  }
  return blocks
    .filter(({ isExample, parts }) => !isExample && parts.join("").trim() !== "")
    .map(({ line: start, parts }) => ({ kind: "docstring", line: start, text: plainText(parts.join(" ")) }));
}

/** The sentences of a piece, without what stands in brackets behind a sentence end. */
export function sentencesOf(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?])["')\]]*\s+(?=[A-Z0-9"'([])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "");
}

/** How many words a sentence has; a word holds a letter or a digit. */
export function wordCount(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

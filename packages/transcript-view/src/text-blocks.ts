import type { Steps } from "@throughline/core/internal";
import { element, type ViewElement, type ViewNode } from "./view-tree.ts";
import { visibleText } from "./visible-text.ts";

const pieceCharacters = 32 * 1024;

/** Returns the text as it is written, in pieces that each take well under a millisecond to print. */
export function* textPieces(text: string): Steps<readonly string[]> {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = pieceEnd(text, at);
    pieces.push(visibleText(text.slice(at, end)));
    at = end;
    yield;
  }
  return pieces;
}

/** A surrogate pair and the two characters of a line end stay together. */
function pieceEnd(text: string, at: number): number {
  const end = at + pieceCharacters;
  if (end >= text.length) return text.length;
  const code = text.charCodeAt(end - 1);
  return code === 0x0d || (code >= 0xd800 && code <= 0xdbff) ? end + 1 : end;
}

export function* plainBlock(text: string, className: string = ""): Steps<ViewElement> {
  const children: readonly ViewNode[] = yield* textPieces(text);
  return element("pre", children, className === "" ? {} : { class: className });
}

/** States the first lines of a text, and what was cut. */
interface CutText {
  readonly text: string;
  readonly leftLines: number;
  readonly leftCharacters: number;
}

const mostCharacters = 8000;

/** Keeps the first lines. Lines without end are cut as well, because one line may be a whole file. */
export function firstLines(text: string, most: number): CutText {
  let end = -1;
  for (let line = 0; line < most; line++) {
    const next = text.indexOf("\n", end + 1);
    if (next === -1) {
      end = text.length;
      break;
    }
    end = next;
  }
  const kept = Math.min(end, mostCharacters);
  if (kept >= text.trimEnd().length) return { text, leftLines: 0, leftCharacters: 0 };
  const cut = text.slice(0, kept).toWellFormed();
  return { text: cut, leftLines: lineCount(text, kept), leftCharacters: text.length - kept };
}

function lineCount(text: string, from: number): number {
  const end = text.endsWith("\n") ? text.length - 1 : text.length;
  let count = 0;
  for (let at = text.indexOf("\n", from); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

import { endOfString } from "./scan-json.ts";

/**
 * Describes a text as pieces of a base text. A string stands for itself; a pair names a position and a number of
 * characters in the base.
 */
export type Template = readonly (string | readonly [from: number, length: number])[];

/** A shorter string is written out, because a pair of numbers would be as long. */
const leastCopied = 12;

/**
 * Describes a text by the pieces that it shares with a base. Both texts are JSON. Each string that occurs in both is an
 * anchor, which is extended in both directions while the texts are equal.
 */
export function templateOf(text: string, base: string): Template {
  if (text === base) return [[0, base.length]];
  const places = stringsOf(base);
  const pieces: (string | readonly [number, number])[] = [];
  let done = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
    const end = endOfString(text, at);
    if (end === -1) break;
    const known = end - at < leastCopied ? undefined : places.get(text.slice(at, end));
    if (known === undefined) {
      at = end;
      continue;
    }
    let before = 0;
    while (at - before > done && known > before && text[at - before - 1] === base[known - before - 1]) before++;
    let length = end - at;
    while (at + length < text.length && known + length < base.length && text[at + length] === base[known + length])
      length++;
    if (at - before > done) pieces.push(text.slice(done, at - before));
    pieces.push([known - before, before + length]);
    done = at + length;
    at = nextOutside(text, end, done);
  }
  if (done < text.length) pieces.push(text.slice(done));
  return pieces;
}

/** An extended match may end inside a string, so the search continues after that string. */
function nextOutside(text: string, from: number, done: number): number {
  let at = from;
  while (at < done) {
    const next = text.indexOf('"', at);
    if (next === -1 || next >= done) return done;
    const end = endOfString(text, next);
    if (end === -1) return text.length;
    at = end;
  }
  return at;
}

export function applyTemplate(template: Template, base: string): string {
  return template
    .map((piece) => (typeof piece === "string" ? piece : base.slice(piece[0], piece[0] + piece[1])))
    .join("");
}

function stringsOf(base: string): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (let at = base.indexOf('"'); at !== -1;) {
    const end = endOfString(base, at);
    if (end === -1) break;
    if (end - at >= leastCopied) places.set(base.slice(at, end), at);
    at = base.indexOf('"', end);
  }
  return places;
}

/** Describes a text as a base text whose middle is replaced. */
export type Patch = readonly [keepStart: number, keepEnd: number, insert: string];

export function patchOf(text: string, base: string): Patch {
  const most = Math.min(text.length, base.length);
  let start = 0;
  while (start < most && text.charCodeAt(start) === base.charCodeAt(start)) start++;
  let end = 0;
  while (end < most - start && text.charCodeAt(text.length - 1 - end) === base.charCodeAt(base.length - 1 - end)) end++;
  return [start, end, text.slice(start, text.length - end)];
}

export function applyPatch([start, end, insert]: Patch, base: string): string {
  return base.slice(0, start) + insert + base.slice(base.length - end);
}

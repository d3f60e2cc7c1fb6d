import { endOfString } from "./scan-json.ts";

/**
 * A text as pieces of another one: a text stands for itself, a pair for a number of characters of the other text from a place on.
 */
export type Template = readonly (string | readonly [from: number, length: number])[];

/** Shorter strings are written out: a pair of numbers takes as much. */
const leastCopied = 12;

/**
 * Says a text by what it shares with a base. Both are JSON. A string that both have is an
 * anchor, and what stands around it is taken along as far as it is the same.
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

/** Text that was taken along may end inside of a string: the search goes on behind that string. */
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

/** The text that a template stands for. */
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

/** A text as another one with something put in place of its middle. */
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

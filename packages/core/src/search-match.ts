import type { SearchClause, SearchPlan } from "./search-plan.ts";
import { stemOf } from "./search-stems.ts";
import { searchWords, type SearchWords } from "./search-words.ts";

interface SearchMatches {
  /**
   * The ranges are in order and apart from each other, in UTF-16 units. `clauses` are the indexes of the clauses that
   * match there.
   */
  readonly ranges: readonly { readonly start: number; readonly end: number; readonly clauses: readonly number[] }[];
}

/**
 * Finds every match of a plan. Returns null when the plan has no clause, when no clause matches, and when a clause of a
 * plan that needs all has no match.
 */
export function findMatches(plan: SearchPlan, text: string): SearchMatches | null {
  const words = searchWords(text);
  const stems = plan.clauses.some(({ isStem }) => isStem) ? words.words.map(({ word }) => stemOf(word)) : [];
  const found = plan.clauses.map((clause) => rangesOf(clause, words, stems));
  const matching = found.filter((ranges) => ranges.length > 0).length;
  if (matching === 0 || (plan.needs === "all" && matching < found.length)) return null;
  const all = found
    .flatMap((ranges, clause) => ranges.map(([start, end]) => ({ start, end, clauses: [clause] })))
    .toSorted((one, other) => one.start - other.start);
  const merged: { start: number; end: number; clauses: number[] }[] = [];
  for (const range of all) {
    const last = merged.at(-1);
    if (last === undefined || range.start >= last.end) merged.push({ ...range });
    else {
      last.end = Math.max(last.end, range.end);
      last.clauses.push(...range.clauses);
    }
  }
  return { ranges: merged };
}

/** `stems` holds the stem of each word where the clause is a stem. */
function rangesOf(
  clause: SearchClause,
  { words, names }: SearchWords,
  stems: readonly string[],
): [start: number, end: number][] {
  const ranges: [number, number][] = [];
  if (clause.isStem) {
    for (const [index, { word, kind, start, end }] of words.entries())
      if (kind !== "last" && (word === clause.name || stems[index] === clause.words[0])) ranges.push([start, end]);
    for (const { name, start, end } of names) if (name === clause.name) ranges.push([start, end]);
    return ranges;
  }
  const wanted = clause.words;
  const last = wanted.length - 1;
  const fits = (word: string, at: number): boolean =>
    at === last && clause.isPrefix ? word.startsWith(wanted[at] ?? "") : word === wanted[at];
  for (let from = 0; from + last < words.length; from++) {
    if (!wanted.every((_, at) => fits(words[from + at]?.word ?? "", at))) continue;
    const [first, end] = [words[from], words[from + last]];
    if (first === undefined || end === undefined) continue;
    // A pair that was found by its first character highlights only that character.
    const isOneOfPair = clause.isPrefix && end.kind === "pair" && last === 0;
    ranges.push([first.start, isOneOfPair ? first.start + (wanted[0] ?? "").length : end.end]);
  }
  for (const { name, start, end } of names)
    if (name === clause.name || (last === 0 && fits(name, 0))) ranges.push([start, end]);
  for (const { word, start, end } of words) if (word === clause.name) ranges.push([start, end]);
  return ranges;
}

interface SearchSnippet {
  /** Holds the text around the first matches, with `…` where it was cut. */
  readonly snippet: string;
  /** Holds the start and the end of each match in the snippet, in UTF-16 units. */
  readonly highlights: readonly (readonly [number, number])[];
}

/** The snippet shows this many UTF-16 units around the best match. */
const snippetLength = 160;
const leadLength = 40;

/**
 * Returns a line of the text around the point where most clauses match close together. Control characters become
 * spaces. A text without matches yields its beginning without highlights. Callers that already have the matches pass
 * them, because finding them is most of the work for a long text.
 */
export function searchSnippet(
  plan: SearchPlan,
  text: string,
  matches: SearchMatches | null = findMatches(plan, text),
): SearchSnippet {
  const ranges = matches?.ranges ?? [];
  const best = bestPlace(ranges);
  const start = wordStart(text, Math.max(0, best - leadLength), best);
  const end = wordEnd(text, start + snippetLength);
  const before = start > 0 ? "…" : "";
  const shown = text.slice(start, end).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (each) => " ".repeat(each.length));
  const shift = before.length - start;
  const highlights = ranges
    .filter((range) => range.start >= start && range.end <= end)
    .map((range) => [range.start + shift, range.end + shift] as const);
  return { snippet: `${before}${shown}${end < text.length ? "…" : ""}`, highlights };
}

function bestPlace(ranges: SearchMatches["ranges"]): number {
  let best = { at: ranges[0]?.start ?? 0, clauses: 0 };
  for (const [index, { start }] of ranges.entries()) {
    const near = new Set<number>();
    for (let at = index; at < ranges.length; at++) {
      const range = ranges[at];
      if (range === undefined || range.end > start + snippetLength - leadLength) break;
      for (const clause of range.clauses) near.add(clause);
    }
    if (near.size > best.clauses) best = { at: start, clauses: near.size };
  }
  return best.at;
}

/** Returns the start of a word at or after `from`, but not after `latest`. */
function wordStart(text: string, from: number, latest: number): number {
  if (from === 0) return 0;
  const space = text.slice(from, latest).search(/\s/);
  if (space >= 0) return from + space + 1;
  return isLowSurrogate(text, from) ? from + 1 : from;
}

function wordEnd(text: string, at: number): number {
  if (at >= text.length) return text.length;
  return isLowSurrogate(text, at) ? at - 1 : at;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

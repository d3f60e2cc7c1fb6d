import { stemOf } from "./search-stems.ts";

/** A run holds letters and digits up to any other character: `parse_sessionKey` has two runs. */
const runs = /[\p{L}\p{N}\p{M}]+/uy;

/** These scripts put no spaces between words, so their text is searched by pairs of characters. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u3005-\u3007\u30fc]/u;

const unspacedParts = new RegExp(
  `${unspaced.source}[${unspaced.source.slice(1, -1)}\\p{M}]*|[^${unspaced.source.slice(1, -1)}]+`,
  "gu",
);

/** The expression splits `parseHTMLPage2` into parse, HTML and Page2. */
const camelParts = /[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+/g;

const asciiOnly = /^[\x20-\x7e]*$/;
const onePart = /^(?:[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*)$/;

/** A longer run of letters is data, a key or an encoded image, not a word. */
const maxRunLength = 128;

/** The word has the form in which words are compared; its offsets in the text count UTF-16 units. */
interface SearchWord {
  readonly word: string;
  readonly start: number;
  readonly end: number;
  /**
   * A `word` stands by itself. A `pair` is two characters of an unspaced script. The `last` is the last character of
   * such a run.
   */
  readonly kind: "word" | "pair" | "last";
}

/** An identifier is also kept in one piece, in addition to its parts, so that both forms are found. */
interface SearchName {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

export interface SearchWords {
  readonly words: readonly SearchWord[];
  readonly names: readonly SearchName[];
}

/** Receives the words of a text in their order. */
export interface WordSink {
  word(word: string, start: number, end: number, kind: SearchWord["kind"]): void;
  name(name: string, start: number, end: number): void;
}

/**
 * Returns the words of a text in lower case and without accents. Identifiers and paths are split into parts, scripts
 * without spaces into overlapping pairs. Indexed texts and search texts both pass through here, so that their words
 * agree.
 */
export function searchWords(text: string): SearchWords {
  const words: SearchWord[] = [];
  const names: SearchName[] = [];
  scanWords(text, {
    word: (word, start, end, kind) => words.push({ word, start, end, kind }),
    name: (name, start, end) => names.push({ name, start, end }),
  });
  return { words, names };
}

interface SearchIndexText {
  /** Holds the words in their order. */
  readonly words: string;
  /** Holds each identifier of several parts once, in one piece. */
  readonly names: string;
  /** Holds the stem of each word that differs from its stem, in their order. Other words are their own stems. */
  readonly stems: string;
}

export function searchIndexText(text: string): SearchIndexText {
  const names = new Set<string>();
  let words = "";
  let stems = "";
  scanWords(text, {
    word: (word) => {
      words += `${word} `;
      const stem = stemOf(word);
      if (stem !== word) stems += `${stem} `;
    },
    name: (name) => names.add(name),
  });
  return { words: words.trimEnd(), names: [...names].join(" "), stems: stems.trimEnd() };
}

/**
 * Splits a text as `searchWords` does, without a list of its words. Nearly all text is ASCII letters and digits, mostly in
 * lower case, so these take the fast path.
 */
export function scanWords(text: string, sink: WordSink): void {
  for (let at = 0; at < text.length;) {
    let end = at;
    let hasUpperCase = false;
    let unit = text.charCodeAt(end);
    for (; isAsciiWord(unit); unit = text.charCodeAt(++end)) hasUpperCase ||= unit >= 65 && unit <= 90;
    if (unit >= 0x80) at = scanRun(text, at, sink);
    else if (end === at) at++;
    else {
      if (end - at <= maxRunLength) {
        const run = text.slice(at, end);
        if (hasUpperCase) scanIdentifier(run, at, sink);
        else sink.word(run, at, end, "word");
      }
      at = end;
    }
  }
}

function isAsciiWord(unit: number): boolean {
  return (unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90);
}

/** Reads the run at or after `at`, in any script, and returns its end. */
function scanRun(text: string, at: number, sink: WordSink): number {
  runs.lastIndex = at;
  const match = runs.exec(text);
  if (match === null) return at + 1;
  const { 0: run, index } = match;
  if (run.length <= maxRunLength || unspaced.test(run)) {
    for (const { 0: part, index: offset } of run.matchAll(unspacedParts)) {
      const start = index + offset;
      if (unspaced.test(part)) scanPairs(part, start, sink);
      else if (part.length > maxRunLength) continue;
      else if (asciiOnly.test(part)) scanIdentifier(part, start, sink);
      else sink.word(plain(part), start, start + part.length, "word");
    }
  }
  return index + run.length;
}

/** Names of one tool may differ in case and separators, so both are unified. */
export function toolWord(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "_");
}

function scanIdentifier(run: string, at: number, sink: WordSink): void {
  const parts = onePart.test(run) ? null : [...run.matchAll(camelParts)];
  if (parts === null) sink.word(run.toLowerCase(), at, at + run.length, "word");
  for (const { 0: part, index } of parts ?? [])
    sink.word(part.toLowerCase(), at + index, at + index + part.length, "word");
  if (parts !== null) sink.name(run.toLowerCase(), at, at + run.length);
}

/**
 * The pairs overlap. The last character also stands by itself, so that one character is found as the beginning of a
 * word.
 */
function scanPairs(run: string, at: number, sink: WordSink): void {
  let before: { readonly text: string; readonly start: number; readonly end: number } | null = null;
  for (const { 0: text, index } of run.matchAll(/\P{M}\p{M}*|\p{M}+/gu)) {
    const here = { text: text.normalize("NFKC"), start: at + index, end: at + index + text.length };
    if (before !== null) sink.word(before.text + here.text, before.start, here.end, "pair");
    before = here;
  }
  if (before !== null) sink.word(before.text, before.start, before.end, "last");
}

/** The form is lower case without accents, so that `Ä` and `ａ` are found as `a`. */
function plain(word: string): string {
  return word.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
}

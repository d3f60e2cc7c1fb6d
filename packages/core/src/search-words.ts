/** Letters and digits of one word, up to any other character: `parse_sessionKey` has two. */
const runs = /[\p{L}\p{N}\p{M}]+/uy;

/** Scripts that put no spaces between words; their text is searched by pairs of characters. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u3005-\u3007\u30fc]/u;

const unspacedParts = new RegExp(
  `${unspaced.source}[${unspaced.source.slice(1, -1)}\\p{M}]*|[^${unspaced.source.slice(1, -1)}]+`,
  "gu",
);

/** `parseHTMLPage2` is parse, HTML, Page2. */
const camelParts = /[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+/g;

const asciiOnly = /^[\x20-\x7e]*$/;
const onePart = /^(?:[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*)$/;

/** A longer run of letters is data, a key or an encoded image, and no word. */
const maxRunLength = 128;

/** A word as it is compared, with its place in the text in UTF-16 units. */
interface SearchWord {
  readonly word: string;
  readonly start: number;
  readonly end: number;
  /** `word`: stands by itself. `pair`: two characters of an unspaced script. `last`: the last one of such a run. */
  readonly kind: "word" | "pair" | "last";
}

/** The words of a run that is not split: all of an identifier in one, beside its parts. */
interface SearchName {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

export interface SearchWords {
  readonly words: readonly SearchWord[];
  /** Identifiers of several parts, in one piece: `parsesessionkey`. */
  readonly names: readonly SearchName[];
}

/** Receives the words of a text, in their order. */
interface WordSink {
  word(word: string, start: number, end: number, kind: SearchWord["kind"]): void;
  name(name: string, start: number, end: number): void;
}

/**
 * The words of a text: in lower case, without accents, identifiers and paths in their parts, scripts without spaces in
 * overlapping pairs. What is indexed and what is looked for go through here, so that both are the same.
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

/** What an index keeps of a text: two lists of words, a space between them. */
interface SearchIndexText {
  readonly words: string;
  readonly names: string;
}

/** The words of a text as a search index keeps them. */
export function searchIndexText(text: string): SearchIndexText {
  const names = new Set<string>();
  let words = "";
  scanWords(text, { word: (word) => (words += `${word} `), name: (name) => names.add(name) });
  return { words: words.trimEnd(), names: [...names].join(" ") };
}

/** Nearly everything is letters and digits of ASCII, of which most are lower case: those are looked at once. */
function scanWords(text: string, sink: WordSink): void {
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

/** The run at or behind `at`, of whatever script; gives where it ends. */
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

/** The name of a tool as one word. */
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

/** Pairs that overlap, and the last character by itself, so that one character can be found as the beginning of a word. */
function scanPairs(run: string, at: number, sink: WordSink): void {
  let before: { readonly text: string; readonly start: number; readonly end: number } | null = null;
  for (const { 0: text, index } of run.matchAll(/\P{M}\p{M}*|\p{M}+/gu)) {
    const here = { text: text.normalize("NFKC"), start: at + index, end: at + index + text.length };
    if (before !== null) sink.word(before.text + here.text, before.start, here.end, "pair");
    before = here;
  }
  if (before !== null) sink.word(before.text, before.start, before.end, "last");
}

/** Lower case, without accents: `Ä` and `ａ` are found as `a`. */
function plain(word: string): string {
  return word.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
}

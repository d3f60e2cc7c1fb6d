import {
  roleToken,
  type SearchClause,
  searchIndexText,
  type SearchPlan,
  type SearchScope,
  type SearchText,
  type SearchToken,
  toolWord,
} from "@throughline/core/internal";

/** These are the limits of a tsvector: positions of one word, the last position, and bytes of all words. */
const mostPositions = 256;
const lastPosition = 16_383;
const mostBytes = 1_048_575;

/**
 * Returns the tsvector of a record: its words with positions, whole identifiers, and the names of tools behind `tool/`
 * and stems behind `stem/`, which no word contains. A stem that is a word of the text is not repeated. Words at the end
 * of a text that exceeds the limit of a tsvector are left out. Under a codec each word is a token, and so is the role.
 */
export function searchVector({ text, toolNames, role }: SearchText, token: SearchToken | null): string {
  const { words, names, stems } = searchIndexText(text);
  const kept = token ?? ((word: string): string => word);
  const vector = new Vector();
  for (const name of toolNames) vector.add(toolLexeme(toolWord(name), token));
  if (token !== null && role !== null) vector.add(roleLexeme(role, token));
  let place = 0;
  for (const word of listOf(words)) {
    place = Math.min(place + 1, lastPosition);
    vector.add(kept(word), place);
  }
  for (const name of listOf(names)) if (!vector.has(kept(name))) vector.add(kept(name), lastPosition);
  for (const stem of new Set(listOf(stems))) vector.add(stemLexeme(kept(stem)));
  return vector.text();
}

/** Collects the words of a tsvector, and counts their bytes as PostgreSQL does. */
class Vector {
  readonly #places = new Map<string, number[]>();
  #bytes = 0;

  has(word: string): boolean {
    return this.#places.has(word);
  }

  /** Adds a word, or a further position of it. A word without a position filters and is not ranked. */
  add(word: string, place: number | null = null): void {
    const known = this.#places.get(word);
    // A word with positions starts at an even byte and has a count of two bytes.
    const added = known === undefined ? Buffer.byteLength(word) + (place === null ? 0 : 5) : 2;
    if (this.#bytes + added > mostBytes) return;
    const places = known ?? [];
    if (known === undefined) this.#places.set(word, places);
    else if (places.length >= mostPositions || places.at(-1) === place) return;
    if (place !== null) places.push(place);
    this.#bytes += added;
  }

  text(): string {
    return [...this.#places]
      .map(([word, places]) => (places.length === 0 ? quoted(word) : `${quoted(word)}:${places.join(",")}`))
      .join(" ");
  }
}

function listOf(words: string): readonly string[] {
  return words === "" ? [] : words.split(" ");
}

function toolLexeme(word: string, token: SearchToken | null): string {
  return `tool/${token === null ? word.slice(0, 256) : token(word)}`;
}

function roleLexeme(role: string, token: SearchToken): string {
  return `role/${roleToken(role, token)}`;
}

function stemLexeme(stem: string): string {
  return `stem/${stem}`;
}

/** Quotes a word for the text form of tsvector and tsquery, so that no character in it is an operator. */
function quoted(word: string): string {
  return `'${word.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

/** Returns the tsquery for the records that hold every clause. */
export function queryOfAll({ clauses }: SearchPlan): string {
  return clauses.map(queryOf).join(" & ");
}

/** Returns the tsquery for the records that hold the clause. A stem is a word too, when words are their own stems. */
export function queryOf({ words, isStem, isPrefix, name }: SearchClause): string {
  const each = words.map((word, index) => `${quoted(word)}${isPrefix && index === words.length - 1 ? ":*" : ""}`);
  const others = [...(isStem ? words.map(stemLexeme) : []), ...(name === null || name === words[0] ? [] : [name])];
  return `(${[each.join(" & "), ...others.map(quoted)].join(" | ")})`;
}

/** Returns the tsqueries for what a search asks beside words: the tool, and under a codec the role. */
export function queriesOfLabels({ toolWord: tool, role }: SearchScope, token: SearchToken | null): readonly string[] {
  return [
    ...(tool === null ? [] : [quoted(toolLexeme(tool, token))]),
    ...(role === null || token === null ? [] : [quoted(roleLexeme(role, token))]),
  ];
}

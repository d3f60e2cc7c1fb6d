import { refused } from "./refused.ts";
import { stemOf } from "./search-stems.ts";
import { searchWords, toolWord } from "./search-words.ts";
import type { SearchQuery } from "./store-facets.ts";
import { assertStoreOptions } from "./store-option-tables.ts";

/** Holds words that must follow each other, or one stem. */
export interface SearchClause {
  /** Holds the words in the form that an index has; of a stem, the stem alone. */
  readonly words: readonly string[];
  /** States whether the clause is a stem, which every word with this stem matches. */
  readonly isStem: boolean;
  /** States whether words that start with the last word match too. */
  readonly isPrefix: boolean;
  /** Holds the words as one identifier, which may occur in their place; null when they form no identifier. */
  readonly name: string | null;
}

/** Describes the words of a search. */
export interface SearchPlan {
  /** Holds the clauses of the query, in its order. */
  readonly clauses: readonly SearchClause[];
  /** States whether a record must match every clause or at least one. */
  readonly needs: "all" | "any";
}

/** Holds the filters of a query, checked and with their defaults. */
export interface SearchScope {
  /** Holds the clauses that the search looks for. */
  readonly plan: SearchPlan;
  /** Names the namespace that is searched. */
  readonly namespace: string;
  /** States whether current sessions, archived sessions or both are searched. */
  readonly state: "active" | "archived" | "any";
  /** Limits the number of hits. */
  readonly limit: number;
  /** Holds the name of the tool as one word; null for any tool. */
  readonly toolWord: string | null;
  /** Names the role of the messages; null for any record. */
  readonly role: string | null;
}

/**
 * Refuses a query with a wrong option, and one without exactly one of `text` and `anyOf`.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertSearchQuery(query: SearchQuery): void {
  assertStoreOptions("search", query);
  const { text, anyOf } = query;
  if ((text === undefined) === (anyOf === undefined))
    throw refused("INPUT_INVALID", "A search takes either text or anyOf.", { text, anyOf });
}

/**
 * Converts a query to the form in which a store answers it.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function readSearchQuery(query: SearchQuery): SearchScope {
  assertSearchQuery(query);
  const { text, anyOf, namespace = "", state = "any", limit = 20, tool, role = null } = query;
  const plan = anyOf === undefined ? parseSearch(text ?? "") : parseAnyOf(anyOf);
  return { plan, namespace, state, limit, toolWord: tool === undefined ? null : toolWord(tool), role };
}

/**
 * Converts words to their stems, each once. An identifier of several parts gives the stems of its parts, and matches in
 * one piece too.
 */
export function parseAnyOf(words: readonly string[]): SearchPlan {
  const clauses = new Map<string, SearchClause>();
  const add = (text: string, name: string): void => {
    if (!clauses.has(text)) clauses.set(text, { words: [text], isStem: true, isPrefix: false, name });
  };
  for (const given of words) {
    const found = searchWords(given);
    for (const { word, kind } of found.words) if (kind !== "last") add(stemOf(word), word);
    for (const { name } of found.names) add(name, name);
  }
  return { clauses: [...clauses.values()], needs: "any" };
}

/**
 * Parses the search text of a person: words that must all occur, `"words that stand together"`, `beginn*`. Any other
 * text only separates words, whatever it means elsewhere. The parts of an identifier or a path are searched in their
 * order.
 */
export function parseSearch(text: string): SearchPlan {
  const clauses: SearchClause[] = [];
  for (const [piece, quoted] of text.matchAll(/"([^"]*)"?|[^\s"]+/g)) {
    const isWordStart = quoted === undefined && piece.endsWith("*");
    clauses.push(...clausesOf(quoted ?? piece, isWordStart));
  }
  return { clauses, needs: "all" };
}

function clausesOf(text: string, isWordStart: boolean): SearchClause[] {
  const { words, names } = searchWords(text);
  // An unspaced run ends in a single character, and no word can follow the run, so it is a separate clause.
  const groups: { readonly words: string[]; readonly isUnspaced: boolean; isSingle: boolean }[] = [];
  for (const { word, kind } of words) {
    const isUnspaced = kind !== "word";
    let group = groups.at(-1);
    if (group === undefined || group.isUnspaced !== isUnspaced) {
      group = { words: [], isUnspaced, isSingle: kind === "last" };
      groups.push(group);
    }
    if (kind !== "last" || group.isSingle) group.words.push(word);
    if (kind === "last") groups.push({ words: [], isUnspaced: !isUnspaced, isSingle: false });
  }
  const filled = groups.filter((group) => group.words.length > 0);
  // A single identifier of several parts may also occur in one piece.
  const name = filled.length === 1 && filled[0]?.words.join("") === names[0]?.name ? (names[0]?.name ?? null) : null;
  return filled.map((group, index) => ({
    words: group.words,
    isStem: false,
    isPrefix: group.isSingle || (isWordStart && index === filled.length - 1),
    name,
  }));
}

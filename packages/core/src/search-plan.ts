import { searchWords, toolWord } from "./search-words.ts";
import type { SearchQuery } from "./store-facets.ts";
import { assertStoreOptions } from "./store-option-tables.ts";

/** Words that must stand one behind the other. */
export interface SearchClause {
  /** The words, in the form in which an index has them. */
  readonly words: readonly string[];
  /** True when words that begin with the last one count as well. */
  readonly isPrefix: boolean;
  /** The words in one piece, which may stand in their place; null when they are no identifier. */
  readonly name: string | null;
}

/** What is looked for: every clause must be met. */
export interface SearchPlan {
  /** The clauses of the query, in its order. */
  readonly clauses: readonly SearchClause[];
}

/** The filters of a query, checked and with their defaults. */
export interface SearchScope {
  /** What is looked for. */
  readonly plan: SearchPlan;
  /** The namespace that is searched. */
  readonly namespace: string;
  /** Whether current sessions, archived ones or both are searched. */
  readonly state: "active" | "archived" | "any";
  /** The most hits. */
  readonly limit: number;
  /** The tool as one word; null: any. */
  readonly toolWord: string | null;
}

/**
 * A query as a store answers it.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function readSearchQuery(query: SearchQuery): SearchScope {
  assertStoreOptions("search", query);
  const { text, namespace = "", state = "any", limit = 20, tool } = query;
  return { plan: parseSearch(text), namespace, state, limit, toolWord: tool === undefined ? null : toolWord(tool) };
}

/**
 * What a person asks for: words that must all occur, `"words that stand together"`, `beginn*`. Everything else in the
 * text only separates words, whatever it means elsewhere. An identifier or a path is looked for by its parts in order.
 */
export function parseSearch(text: string): SearchPlan {
  const clauses: SearchClause[] = [];
  for (const [piece, quoted] of text.matchAll(/"([^"]*)"?|[^\s"]+/g)) {
    const isWordStart = quoted === undefined && piece.endsWith("*");
    clauses.push(...clausesOf(quoted ?? piece, isWordStart));
  }
  return { clauses };
}

function clausesOf(text: string, isWordStart: boolean): SearchClause[] {
  const { words, names } = searchWords(text);
  // An unspaced run ends in a character of its own, behind which nothing can follow: it is a clause of its own.
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
  // A single identifier of several parts may also stand somewhere in one piece.
  const name = filled.length === 1 && filled[0]?.words.join("") === names[0]?.name ? (names[0]?.name ?? null) : null;
  return filled.map((group, index) => ({
    words: group.words,
    isPrefix: group.isSingle || (isWordStart && index === filled.length - 1),
    name,
  }));
}

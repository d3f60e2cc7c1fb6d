import type { SearchClause, SearchPlan } from "./search-plan.ts";

/** Returns what an index has in place of a word. */
export type SearchToken = (word: string) => string;

/** Returns the tokens of words that spaces separate, in their order. */
export function tokenList(words: string, token: SearchToken): string {
  return words === "" ? "" : words.split(" ").map(token).join(" ");
}

/** Returns the token of a role, which is the token of no word, because no word contains a space. */
export function roleToken(role: string, token: SearchToken): string {
  return token(`role ${role}`);
}

/**
 * Returns a plan for an index of tokens. A token does not show the beginning of its word, so a prefix is left out, and
 * `isWhole` is false. The caller then looks for the prefix in the texts that the rest of the plan finds.
 */
export function tokenPlan(
  { clauses, needs }: SearchPlan,
  token: SearchToken,
): { readonly plan: SearchPlan; readonly isWhole: boolean } {
  return {
    plan: { clauses: clauses.flatMap((clause) => tokenClause(clause, token)), needs },
    isWhole: !clauses.some(({ isPrefix }) => isPrefix),
  };
}

function tokenClause(clause: SearchClause, token: SearchToken): readonly SearchClause[] {
  const { isPrefix, name } = clause;
  // An identifier in one piece may stand for all words of the clause, and its beginning is not in the index either.
  if (isPrefix && name !== null) return [];
  const words = isPrefix ? clause.words.slice(0, -1) : clause.words;
  if (words.length === 0) return [];
  return [{ ...clause, words: words.map(token), isPrefix: false, name: name === null ? null : token(name) }];
}

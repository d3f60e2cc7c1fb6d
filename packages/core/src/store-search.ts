// What a full-text search looks for and shows, the same in every store. For implementers, not for users.
export { maxQueryLength, parseSearch, readSearchQuery } from "./search-plan.ts";
export type { SearchClause, SearchPlan, SearchScope } from "./search-plan.ts";
export { findMatches, searchSnippet } from "./search-match.ts";
export type { SearchMatches, SearchSnippet } from "./search-match.ts";
export { maxSearchTextLength, searchText } from "./search-text.ts";
export type { SearchText } from "./search-text.ts";
export { searchIndexText, toolWord } from "./search-words.ts";
export type { SearchIndexText } from "./search-words.ts";

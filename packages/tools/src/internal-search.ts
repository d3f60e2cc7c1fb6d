// The ranking of past sessions, for whatever searches them. It may change in any release and is not public.
export { bestOf, findHits, isExactSearch } from "./search/find-hits.ts";
export type { RankedHits } from "./search/find-hits.ts";
export type { EpisodePart } from "./search/episodes.ts";
export type { MeaningSearch } from "./search/meaning-search.ts";
export { rankHits } from "./search/rank-hits.ts";
export { wordsToLookUp } from "./search/words-to-look-up.ts";

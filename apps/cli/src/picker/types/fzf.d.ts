/** The part of the library that is used here. Its own types import files without an extension, which our compiler does not find. */
export interface FzfResultItem<Item> {
  readonly item: Item;
  readonly score: number;
  readonly positions: ReadonlySet<number>;
}

interface FzfOptions<Item> {
  readonly selector: (item: Item) => string;
  readonly match: unknown;
  readonly fuzzy: "v1" | "v2" | false;
  readonly sort: boolean;
}

export declare class Fzf<Item> {
  constructor(list: readonly Item[], options: FzfOptions<Item>);
  find(query: string): readonly FzfResultItem<Item>[];
}

/** Takes the words of a query as separate patterns, all of which have to match. */
export declare const extendedMatch: unknown;

/** Holds a text that can be ranked. */
export interface RankablePassage {
  /** Holds the whole text of the passage. */
  readonly text: string;
  /** Holds the pieces of the passage when they have different weights. @default the whole text, with weight 1 */
  readonly pieces?: readonly { readonly text: string; readonly weight: number }[];
  /** States where the passage stands. @default by itself */
  readonly place?: PassagePlace;
}

/** States which passages stand beside each other. */
export interface PassagePlace {
  /** Names the session or the file of the passage. */
  readonly within: string;
  /** Holds the first position of the passage: a seq or a line. */
  readonly first: number;
  readonly last: number;
  /** States the time of the passage; null when the time is unknown. */
  readonly tsMs: number | null;
}

import type { Fields } from "@throughline/core/internal";
import type { TranscriptLevel } from "./transcript-row.ts";

/** Sets what the rows of a session hold. */
export interface RowOptions {
  readonly level: TranscriptLevel;
  /** Puts images into the rows; without it their type and size. */
  readonly hasImages: boolean;
  /** Names the folder of the session, which paths in titles leave out; null without one. */
  readonly folder: string | null;
  /** Returns the words of the user in a message, without what programs put around them; empty without any. */
  readonly promptText: (message: string) => string;
  /** Returns the size of a result of which only the start is at hand, in bytes; null for a whole one. @default whole */
  readonly resultBytes?: (message: Fields) => number | null;
  /** Returns the size of an image whose data is not at hand, in bytes; null for any other one. @default at hand */
  readonly imageBytes?: (block: Fields) => number | null;
}

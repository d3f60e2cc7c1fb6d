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
}

import type { TranscriptRow } from "./transcript-row.ts";

/** Writes the rows of one file in order, in small pieces. */
export interface TranscriptPrinter {
  head(): Generator<string, void, void>;
  row(row: TranscriptRow): Generator<string, void, void>;
  foot(): Generator<string, void, void>;
}

import type { TranscriptRow } from "./transcript-row.ts";

/** Names the session of the rows between the start and the end of a sub-agent. Each text is free of secrets. */
export interface PrintedAgent {
  readonly name: string;
  readonly key: string;
  readonly messages: number;
  /** Counts the records that the file leaves out. */
  readonly left: number;
}

/** Writes the rows of one file in order, in small pieces. */
export interface TranscriptPrinter {
  head(): Generator<string, void, void>;
  row(row: TranscriptRow): Generator<string, void, void>;
  /** Starts the rows of a sub-agent, under the row of the call that started it. */
  startAgent(agent: PrintedAgent): Generator<string, void, void>;
  endAgent(agent: PrintedAgent): Generator<string, void, void>;
  foot(): Generator<string, void, void>;
}

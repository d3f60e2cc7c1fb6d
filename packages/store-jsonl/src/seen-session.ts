import type { SessionHead } from "@throughline/core";
import type { SessionRow } from "./session-row.ts";

/** Up to where in the entries log the index knows everything. */
export interface LogPlace {
  readonly identity: string;
  readonly endBytes: number;
  readonly lineCount: number;
  /** The last bytes before the end, to tell a log that grew from another one. */
  readonly anchor: { readonly from: number; readonly crc: number };
  /** Purges that may be unfinished. */
  readonly removed: readonly string[];
}

/** What listing needs of a transcript. */
export interface TranscriptDigest {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  /** Where the line of the window's first record begins; absent where nobody knows. */
  readonly windowAt?: number | undefined;
}

/** What is known of a session whose transcript was read. */
export interface SeenSession {
  readonly row: SessionRow;
  /** The row with the entry changes that lie in the transcript. */
  readonly folded: SessionRow;
  readonly digest: TranscriptDigest;
  /** Identity, size and time of the transcript all this was read from. */
  readonly seen: string;
}

import type { SessionHead } from "@throughline/core";
import type { FlushedRecords } from "./flushed-seqs.ts";
import type { SessionRow } from "./session-row.ts";

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
  /** What this process has put on the disk of it. @default nothing that is known */
  readonly flushed?: FlushedRecords;
}

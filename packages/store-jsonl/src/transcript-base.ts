import type { SessionHead } from "@throughline/core";

/** A place in a transcript and what everything before it adds up to: reading can begin there. */
export interface TranscriptBase {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  /** Entry patches up to this revision lie before the place. */
  readonly revision: number;
  readonly endBytes: number;
  /** Where the line of the window's first record begins, where that is known. Whoever reads there looks at its seq. */
  readonly windowAt?: number | undefined;
}

import type { ReadPayload, RecordFor } from "@throughline/core";
import type { Transcript } from "./transcript.ts";

export interface PageSpan {
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface PageBounds {
  readonly afterSeq: number;
  readonly beforeSeq: number;
  readonly left: number;
  readonly step: 1 | -1;
  readonly pageRecords: number;
  readonly pageBytes: number;
}

export interface Page<Payload extends ReadPayload> {
  readonly records: RecordFor<Payload>[];
  readonly span: PageSpan;
  readonly lastSeq: number;
  /** For the page after it. */
  readonly cursor: PageCursor | null;
}

/** Where the line of a record begins that nobody knows the place of but who read the one before it. */
export interface PageCursor {
  readonly transcript: Transcript;
  readonly seq: number;
  readonly byteOffset: number;
}

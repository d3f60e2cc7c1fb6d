import type { SessionHead, SessionRef } from "@throughline/core";
import type { SessionRow } from "./session-row.ts";
import type { LineOwner } from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";
import type { Transcript } from "./transcript.ts";

/** Holds an open session. It is up to date only while the session's lock is held. */
export interface OpenTranscript {
  readonly row: SessionRow;
  readonly ref: SessionRef;
  readonly owner: LineOwner;
  readonly file: TranscriptFile;
  readonly path: string;
  readonly transcript: Transcript;
}

/** Copies a head, so that a caller cannot change the cached one. */
export function ownHead(head: SessionHead): SessionHead {
  return { ...head, turn: head.turn === null ? null : { ...head.turn } };
}

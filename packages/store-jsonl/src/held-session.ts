import type { SessionHead, SessionRef } from "@throughline/core";
import type { SessionRow } from "./session-row.ts";
import type { LineOwner } from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";
import type { Transcript } from "./transcript.ts";

/** A session as it stands under its lock. */
export interface HeldSession {
  /** With every change that lies in the transcript. */
  readonly row: SessionRow;
  readonly ref: SessionRef;
  readonly owner: LineOwner;
  readonly file: TranscriptFile;
  readonly path: string;
  readonly transcript: Transcript;
}

/** A head of the caller's own. */
export function ownHead(head: SessionHead): SessionHead {
  return { ...head, turn: head.turn === null ? null : { ...head.turn } };
}

import type { OpenTurn, SessionHead } from "@throughline/core";
import type { LineEnvelope } from "@throughline/openclaw-format";

/** The line envelope with the members this store adds; `docs/formats/records.md` describes them all. */
export interface StoreEnvelope extends LineEnvelope {
  /** The entry's revision after the append; with `entry`, `unset`, `entryEnc` or `idem`. */
  readonly revision?: number;
  /** The activity time the patch claimed, where it claimed one. */
  readonly updated?: number;
  /** In the header of a fork: whose records it begins with, as its entry and its line in the entries log say it. */
  readonly forkedFrom?: ForkSource;
  readonly origins?: readonly (readonly [sessionId: string, seq: number])[];
  /** With `window`: what the session adds up to after this line, so that nobody has to read what lies before. */
  readonly mark?: WindowMark;
  /** Under a codec: the entry's patch, coded. */
  readonly entryEnc?: string;
  /** Under a codec: what can no longer be seen in the line. */
  readonly side?: boolean;
  readonly bytes?: number;
  /** Under a codec: `sourceBase64` holds coded text rather than coded bytes. */
  readonly isSourceText?: boolean;
}

/** Where a fork comes from. */
export interface ForkSource {
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  /** The last record it shares. */
  readonly atSeq: number;
}

/** A session's state at a line, beside what the line's own envelope says. */
export interface WindowMark {
  readonly messages: number;
  readonly head: string | null;
  readonly fence: number;
  readonly turn: OpenTurn | null;
  readonly updated: number;
  /** The entry's. */
  readonly revision: number;
}

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

/** A change of the entry that traveled with records. */
export interface EntryPatch {
  readonly revision: number;
  readonly envelope: StoreEnvelope;
  readonly atMs: number;
}

/** A line without its envelope, as `detachEnvelope` gives it. */
export interface OwnLine {
  readonly text: string;
  readonly envelope: StoreEnvelope;
  /** As many bytes as characters. Not said of every line. */
  readonly isAscii: boolean;
}

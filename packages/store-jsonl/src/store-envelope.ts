import type { OpenTurn } from "@throughline/core";
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

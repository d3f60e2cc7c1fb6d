import { crc32 } from "node:zlib";
import type { OpenTranscript } from "./open-transcript.ts";
import type { Transcript } from "./transcript.ts";

/**
 * Records what a watch has delivered or skipped, to distinguish a transcript that grew from one that another program
 * truncated. It costs one number per record, and one comparison per refresh while the file's image is the same.
 */
export class DeliveredRecords {
  /** Holds digests of record ids by seq. Records before the loaded part of the file have none. */
  readonly #digests: number[] = [];
  #image: Transcript | null = null;

  /** Call it first: records up to `afterSeq` count as delivered. */
  begin({ transcript }: OpenTranscript, afterSeq: number): void {
    this.#image = transcript;
    const to = Math.min(afterSeq, transcript.head.lastSeq);
    for (let seq = 1; seq <= to; seq++) {
      const digest = transcript.seqById.sumOf(seq);
      if (digest !== undefined) this.#digests[seq] = digest;
    }
  }

  give(records: readonly { readonly seq: number; readonly id: string }[]): void {
    for (const { seq, id } of records) this.#digests[seq] = digestOf(id);
  }

  /**
   * Returns the last seq up to which the session is unchanged; null when no delivered record is gone. `whole` opens the
   * session with every record, and is called only when the file was read again.
   */
  cutAfter({ transcript }: OpenTranscript, nextSeq: number, whole: () => OpenTranscript | null): number | null {
    if (transcript === this.#image) return null;
    this.#image = transcript;
    const last = Math.min(nextSeq, this.#digests.length) - 1;
    if (transcript.head.lastSeq >= last && this.#isSame(transcript, last)) return null;
    const now = whole()?.transcript;
    if (now === undefined) return null;
    this.#image = now;
    if (now.head.lastSeq >= last && this.#isSame(now, last)) return null;
    let kept = Math.min(last, now.head.lastSeq);
    while (kept > 0 && this.#digests[kept] !== undefined && this.#digests[kept] !== now.seqById.sumOf(kept)) kept--;
    this.#digests.length = kept + 1;
    return kept;
  }

  /** Treats a record before the loaded part of the file as unchanged, because it has no digest to compare. */
  #isSame(transcript: Transcript, seq: number): boolean {
    const digest = this.#digests[seq];
    if (seq <= 0 || digest === undefined) return true;
    return transcript.seqById.sumOf(seq) === digest;
  }
}

function digestOf(id: string): number {
  return crc32(id);
}

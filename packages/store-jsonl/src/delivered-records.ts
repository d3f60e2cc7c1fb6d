import { crc32 } from "node:zlib";
import type { HeldSession } from "./held-session.ts";
import type { Transcript } from "./transcript.ts";

/**
 * What a watch has delivered or skipped, to distinguish a transcript that grew from one that another program cut. It
 * costs a number per record, and one comparison per look while the image of the file is the same.
 */
export class DeliveredRecords {
  /** Of the id of each record, by seq; of those that lie before what was read of the file nothing is known. */
  readonly #digests: number[] = [];
  #image: Transcript | null = null;

  /** Before anything is given: the records up to a seq are passed over. */
  begin({ transcript }: HeldSession, afterSeq: number): void {
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
   * The last seq up to which the session is what it was; null when nothing that was given is gone. `whole`: the session
   * with every record of it, asked for only when the image of the file was built again.
   */
  cutAfter({ transcript }: HeldSession, nextSeq: number, whole: () => HeldSession | null): number | null {
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

  /** A record before the part of the file that was read is unknown. */
  #isSame(transcript: Transcript, seq: number): boolean {
    const digest = this.#digests[seq];
    if (seq <= 0 || digest === undefined) return true;
    return transcript.seqById.sumOf(seq) === digest;
  }
}

function digestOf(id: string): number {
  return crc32(id);
}

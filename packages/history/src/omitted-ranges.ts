/**
 * States why records are not in a context. `summarized`: they lie before a compaction's kept part. `reset`: they lie
 * before a reset. `edited`: an edit drops them. `excluded`: their writer keeps them from models. `invalid`: they are
 * unreadable. `other-branch`: they are not on the path to the head. `window`: a limit drops them.
 */
export type OmitReason = "summarized" | "reset" | "edited" | "excluded" | "invalid" | "other-branch" | "window";

/** Describes consecutive records that are omitted for one reason. No record of the context lies between them. */
export interface OmittedRange {
  /** States the seq of the first record of the range. */
  readonly fromSeq: number;
  /** States the seq of the last record of the range. */
  readonly toSeq: number;
  /** States why the records are not in the context. */
  readonly reason: OmitReason;
}

/** States whether a record is in the context, is omitted for a reason, or never adds a message (undefined). */
export type RecordFate = "included" | OmitReason | undefined;

export class OmittedRanges {
  private readonly closed: OmittedRange[] = [];
  private open: OmittedRange | null = null;

  add(seq: number, fate: RecordFate): void {
    if (fate === undefined) return;
    if (fate === "included") {
      this.close();
    } else if (this.open?.reason === fate) {
      this.open = { ...this.open, toSeq: seq };
    } else {
      this.close();
      this.open = { fromSeq: seq, toSeq: seq, reason: fate };
    }
  }

  private close(): void {
    if (this.open !== null) this.closed.push(this.open);
    this.open = null;
  }

  ranges(): readonly OmittedRange[] {
    return this.open === null ? [...this.closed] : [...this.closed, this.open];
  }
}

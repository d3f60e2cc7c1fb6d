/**
 * Why records are not in a context. `summarized`: before a compaction's kept part. `reset`: before a reset.
 * `edited`: an edit leaves them out. `excluded`: their writer keeps them from models. `invalid`: they cannot be read.
 * `other-branch`: they are not on the way to the head. `window`: a limit leaves them out.
 */
export type OmitReason = "summarized" | "reset" | "edited" | "excluded" | "invalid" | "other-branch" | "window";

/** Records that are left out for one reason, with nothing of the context between them. */
export interface OmittedRange {
  /** The seq of the first record of the range. */
  readonly fromSeq: number;
  /** The seq of the last record of the range. */
  readonly toSeq: number;
  /** Why the records are not in the context. */
  readonly reason: OmitReason;
}

/** What became of each record, by its place: in the context, left out for a reason, or without anything to say. */
export type RecordFate = "included" | OmitReason | undefined;

/** Gathers ranges record by record, in order of seq. */
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

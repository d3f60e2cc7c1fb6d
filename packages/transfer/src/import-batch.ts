import type { AppendDraft, AppendOptions, RecordDraft, SessionRecord } from "@throughline/core";
import type { AppendOnceOptions, StoreLimits } from "@throughline/core/internal";
import { bulkBatchOf, isSideRecord } from "@throughline/core/internal";
import { isBoundary } from "./context-window.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import type { ImportOptions } from "./import-types.ts";
import type { SourceLine } from "./source-reader.ts";

export interface BatchPlace {
  readonly headBefore: string | null;
  readonly headAfter: string | null;
  readonly receipt: ImportReceipt;
  /** Holds the receipt that the batch continues. */
  readonly storedReceipt: ImportReceipt;
  /** Holds the session's last seq when the receipt counts more records than the session holds; null otherwise. */
  readonly heldSeq: number | null;
  /** Sets the activity time in the entry; 0 sets none. */
  readonly updatedAtMs: number;
  /** True if seq numbers equal the source's, so that the source's window stays valid. */
  readonly isSeqKept: boolean;
  /** True if the session already states where its context starts. */
  readonly hasWindow: boolean;
  readonly patch: Readonly<Record<string, unknown>>;
}

/** Collects the lines of one append, and the entry fields that they state. */
export class ImportBatch {
  drafts: AppendDraft[] = [];
  lineCount = 0;
  /** Holds the drafts that have no line in the source. */
  notes: readonly RecordDraft[] = [];
  /** True once a line of another program, in any batch, may have moved the start of the context. */
  movesWindow = false;
  private readonly limits: StoreLimits;
  /** Entry changes up to this revision are already in the source's entry. */
  private readonly entryRevision: number;
  private sizeBytes = 0;
  private isHeaderFirst = false;
  private firstParentId: string | null = null;
  private lastMainId: string | null = null;
  private isInLine = true;
  private windowSeq: number | null = null;
  private entryPatch: Record<string, unknown> = {};

  constructor(limits: StoreLimits, entryRevision: number) {
    this.limits = limits;
    this.entryRevision = entryRevision;
  }

  get isFull(): boolean {
    const most = bulkBatchOf(this.limits);
    return this.drafts.length >= most.records || this.sizeBytes >= most.bytes;
  }

  /** Notes stand behind the header, because a store in files keeps the file's header first. */
  get notesIndex(): number {
    return this.isHeaderFirst ? 1 : 0;
  }

  /** Adds records that have no line in the source. Must be called before the first line is added. */
  addNotes(notes: readonly RecordDraft[]): void {
    this.notes = notes;
    this.drafts.push(...notes);
    this.sizeBytes += Buffer.byteLength(JSON.stringify(notes));
  }

  /** @param withheld drafts that replace the line's records; null stores the records themselves */
  add(line: SourceLine, sizeBytes: number, withheld: readonly RecordDraft[] | null = null): void {
    const sourced = line.isSourceCanonical ? { source: line.source } : { source: line.source, record: line.record };
    const derived = line.derived ?? [];
    const [draft = sourced, ...others] = withheld ?? [sourced, ...derived];
    const isFirst = this.drafts.length === this.notes.length && !this.isHeaderFirst;
    if (isFirst && line.record.type === "session") {
      this.drafts.unshift(draft);
      this.isHeaderFirst = true;
    } else this.drafts.push(draft);
    this.drafts.push(...others);
    this.lineCount++;
    this.sizeBytes += sizeBytes;
    if (!line.side) this.addMain(line.record);
    for (const record of derived) this.addDerived(record);
    if (line.envelope === null) {
      const { record, side } = line;
      this.movesWindow ||= isBoundary({ type: record.type, record, side });
      return;
    }
    this.windowSeq = line.envelope.window ?? this.windowSeq;
    this.addEntryPatch(line.envelope);
  }

  appendOptions(place: BatchPlace, { durability, signal }: ImportOptions): AppendOnceOptions {
    const { headBefore, headAfter, receipt, storedReceipt, updatedAtMs, patch } = place;
    const { lineCount, sizeBytes, sha256 } = storedReceipt;
    const again = place.heldSeq === null ? "" : ` behind ${place.heldSeq}`;
    const updatedAt = updatedAtMs > 0 ? { updatedAt: updatedAtMs } : {};
    return {
      entry: { ...this.entryPatch, ...patch, ...updatedAt, importedFrom: receipt },
      expect: { head: headBefore },
      // The key names the receipt that the batch continues. A retry after an unknown outcome uses the same key.
      // If two imports run at once, the key lets only one continue from this receipt. The head cannot tell them apart
      // after a batch that leaves it in place, such as a header.
      idempotencyKey: `import ${lineCount} ${sizeBytes} ${sha256}${again}`,
      ...(headAfter === (this.lastMainId ?? headBefore) ? {} : { rewindTo: headAfter }),
      ...this.window(place),
      ...(durability === undefined ? {} : { durability }),
      ...(signal === undefined ? {} : { signal }),
    };
  }

  clear(): void {
    this.drafts = [];
    this.lineCount = 0;
    this.notes = [];
    this.isHeaderFirst = false;
    this.sizeBytes = 0;
    this.lastMainId = null;
    this.isInLine = true;
    this.windowSeq = null;
    this.entryPatch = {};
  }

  private addDerived(record: SessionRecord): void {
    const side = isSideRecord(record);
    if (!side) this.addMain(record);
    this.movesWindow ||= isBoundary({ type: record.type, record, side });
  }

  private addMain({ id, parentId }: SessionRecord): void {
    if (this.lastMainId === null) this.firstParentId = parentId;
    else this.isInLine &&= parentId === this.lastMainId;
    this.lastMainId = id;
  }

  /** If the head moved other than forwards, it may need records that the stated window leaves out. */
  private window({ headBefore, headAfter, isSeqKept, hasWindow }: BatchPlace): Pick<AppendOptions, "windowFromSeq"> {
    if (this.windowSeq !== null) return isSeqKept ? { windowFromSeq: this.windowSeq } : {};
    const { lastMainId, firstParentId, isInLine } = this;
    const isForwards = isInLine && headAfter === (lastMainId ?? headBefore);
    if (!hasWindow || (isForwards && (lastMainId === null || firstParentId === headBefore))) return {};
    this.movesWindow = true;
    return { windowFromSeq: 1 };
  }

  /** Collects entry fields that later appends wrote after the entries log last held the entry. */
  private addEntryPatch(envelope: NonNullable<SourceLine["envelope"]> & { readonly revision?: unknown }): void {
    if (typeof envelope.revision === "number" && envelope.revision <= this.entryRevision) return;
    for (const [field, value] of Object.entries(envelope.entry ?? {})) {
      if (field !== "sessionId" && field !== "importedFrom") this.entryPatch[field] = value;
    }
    for (const field of envelope.unset ?? []) this.entryPatch[field] = undefined;
  }
}

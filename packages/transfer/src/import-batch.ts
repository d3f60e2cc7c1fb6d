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
  /** The receipt the batch goes on from. */
  readonly storedReceipt: ImportReceipt;
  /** The last seq of the session, where the receipt counts more than it holds; null otherwise. */
  readonly heldSeq: number | null;
  /** The activity time to state; 0: none is known. */
  readonly updatedAtMs: number;
  /** Whether the source's window still means the same records. */
  readonly isSeqKept: boolean;
  /** Whether the session says already from where its context is. */
  readonly hasWindow: boolean;
  /** What the entry gets beside what the lines say. */
  readonly patch: Readonly<Record<string, unknown>>;
}

/** The lines of one append, and what they say beside their records. */
export class ImportBatch {
  drafts: AppendDraft[] = [];
  /** How many lines they stand for. */
  lineCount = 0;
  /** Those of them that are no lines. */
  notes: readonly RecordDraft[] = [];
  /** Whether lines of another program, of any batch, may have moved the beginning of the context. */
  movesWindow = false;
  private readonly limits: StoreLimits;
  /** The revision up to which the source's entry is known. */
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

  /** Where the notes stand: behind the header, so that a store in files has the file's own at its beginning. */
  get notesIndex(): number {
    return this.isHeaderFirst ? 1 : 0;
  }

  /** Records that no line stands for; before the first line is added. */
  addNotes(notes: readonly RecordDraft[]): void {
    this.notes = notes;
    this.drafts.push(...notes);
    this.sizeBytes += Buffer.byteLength(JSON.stringify(notes));
  }

  /** @param withheld what is written in the place of the line's records; null: they are */
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
      // The receipt that the batch continues. An attempt of unknown outcome is repeated with it, and of two imports at once
      // only one continues there: the head does not tell them apart where a batch leaves it, as a header does.
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

  /** A head that moved elsewhere than forwards may need what the window stated before leaves out. */
  private window({ headBefore, headAfter, isSeqKept, hasWindow }: BatchPlace): Pick<AppendOptions, "windowFromSeq"> {
    if (this.windowSeq !== null) return isSeqKept ? { windowFromSeq: this.windowSeq } : {};
    const { lastMainId, firstParentId, isInLine } = this;
    const isForwards = isInLine && headAfter === (lastMainId ?? headBefore);
    if (!hasWindow || (isForwards && (lastMainId === null || firstParentId === headBefore))) return {};
    this.movesWindow = true;
    return { windowFromSeq: 1 };
  }

  /** What appends of ours wrote into the entry after the entries log had it last. */
  private addEntryPatch(envelope: NonNullable<SourceLine["envelope"]> & { readonly revision?: unknown }): void {
    if (typeof envelope.revision === "number" && envelope.revision <= this.entryRevision) return;
    for (const [field, value] of Object.entries(envelope.entry ?? {})) {
      if (field !== "sessionId" && field !== "importedFrom") this.entryPatch[field] = value;
    }
    for (const field of envelope.unset ?? []) this.entryPatch[field] = undefined;
  }
}

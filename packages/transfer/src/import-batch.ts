import type { AppendDraft, RecordDraft, SessionRecord } from "@throughline/core";
import { type StoreLimits, bulkBatchOf, isSideRecord } from "@throughline/core/internal";
import { isBoundary } from "./context-window.ts";
import type { SourceLine } from "./source-reader.ts";

/** Holds the lines of one append, as drafts. */
export interface BatchLines {
  readonly drafts: readonly AppendDraft[];
  /** Counts the drafts without a line in the source, and locates the first of them in `drafts`. */
  readonly notes: { readonly count: number; readonly index: number };
  /** Counts the lines that have a record. */
  readonly lineCount: number;
  /** Holds the entry changes that lines of a Throughline store state. */
  readonly entryPatch: Readonly<Record<string, unknown>>;
  /** Names the last record of the conversation; null without one. */
  readonly lastMainId: string | null;
  /** Holds the window that a line of a Throughline store states; null without one. */
  readonly windowSeq: number | null;
  /** Names the parent of the first record of the conversation; null without one. */
  readonly firstParentId: string | null;
  /** True if each record of the conversation follows the one before it. */
  readonly isInLine: boolean;
  /** True if a line of another program may have moved the start of the context. */
  readonly movesWindow: boolean;
}

/** Collects the lines of one append, and the entry fields that they state. */
export class ImportBatch {
  readonly #most: ReturnType<typeof bulkBatchOf>;
  /** Entry changes up to this revision are already in the source's entry. */
  readonly #entryRevision: number;
  readonly #notes: readonly RecordDraft[];
  readonly #drafts: AppendDraft[];
  #sizeBytes: number;
  #lineCount = 0;
  #isHeaderFirst = false;
  #firstParentId: string | null = null;
  #lastMainId: string | null = null;
  #isInLine = true;
  #windowSeq: number | null = null;
  #movesWindow = false;
  readonly #entryPatch: Record<string, unknown> = {};

  /** @param notes drafts that have no line in the source */
  constructor(limits: StoreLimits, entryRevision: number, notes: readonly RecordDraft[]) {
    this.#most = bulkBatchOf(limits);
    this.#entryRevision = entryRevision;
    this.#notes = notes;
    this.#drafts = [...notes];
    this.#sizeBytes = notes.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(notes));
  }

  get isFull(): boolean {
    return this.#drafts.length >= this.#most.records || this.#sizeBytes >= this.#most.bytes;
  }

  get lines(): BatchLines {
    return {
      drafts: this.#drafts,
      // Notes stand behind the header, because a store in files keeps the file's header first.
      notes: { count: this.#notes.length, index: this.#isHeaderFirst ? 1 : 0 },
      lineCount: this.#lineCount,
      entryPatch: this.#entryPatch,
      lastMainId: this.#lastMainId,
      windowSeq: this.#windowSeq,
      firstParentId: this.#firstParentId,
      isInLine: this.#isInLine,
      movesWindow: this.#movesWindow,
    };
  }

  /** @param withheld drafts that replace the line's records; null stores the records themselves */
  add(line: SourceLine, sizeBytes: number, withheld: readonly RecordDraft[] | null): void {
    const sourced = line.isSourceCanonical ? { source: line.source } : { source: line.source, record: line.record };
    const derived = line.derived ?? [];
    const [draft = sourced, ...others] = withheld ?? [sourced, ...derived];
    const isFirst = this.#lineCount === 0 && !this.#isHeaderFirst;
    if (isFirst && line.record.type === "session") {
      this.#drafts.unshift(draft);
      this.#isHeaderFirst = true;
    } else this.#drafts.push(draft);
    this.#drafts.push(...others);
    this.#lineCount++;
    this.#sizeBytes += sizeBytes;
    const { record, side, envelope } = line;
    if (!side) this.#takeMain(record);
    for (const one of derived) if (!isSideRecord(one)) this.#takeMain(one);
    for (const one of derived) this.#takeBoundary(one, isSideRecord(one));
    if (envelope === null) return this.#takeBoundary(record, side);
    this.#windowSeq = envelope.window ?? this.#windowSeq;
    this.#takeEntryPatch(envelope);
  }

  #takeMain({ id, parentId }: SessionRecord): void {
    if (this.#lastMainId === null) this.#firstParentId = parentId;
    else this.#isInLine &&= parentId === this.#lastMainId;
    this.#lastMainId = id;
  }

  #takeBoundary(record: SessionRecord, side: boolean): void {
    this.#movesWindow ||= isBoundary({ type: record.type, record, side });
  }

  /** Collects entry fields that later appends wrote after the entries log last held the entry. */
  #takeEntryPatch(envelope: NonNullable<SourceLine["envelope"]> & { readonly revision?: unknown }): void {
    if (typeof envelope.revision === "number" && envelope.revision <= this.#entryRevision) return;
    for (const [field, value] of Object.entries(envelope.entry ?? {})) {
      if (field !== "sessionId" && field !== "importedFrom") this.#entryPatch[field] = value;
    }
    for (const field of envelope.unset ?? []) this.#entryPatch[field] = undefined;
  }
}

import { createHash, type Hash } from "node:crypto";
import { createFinding } from "@throughline/core/internal";
import {
  type Finding,
  type RecordDraft,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { TitleFinder } from "@throughline/history/internal";
import { decodeLine } from "@throughline/openclaw-format";
import { growthOf, maxRestBytes, readPiece, type LineGrowth } from "./continued-line.ts";
import { supersededPieces, advanced, type ContinuedLine, type ImportReceipt } from "./import-receipt.ts";
import { ImportBatch, type BatchLines } from "./import-batch.ts";
import { isOdd, newFindings } from "./import-findings.ts";
import { sourceChanged } from "./import-refusals.ts";
import type { LostLine } from "./import-types.ts";
import { redactionsOfWhole, withheldDrafts, type Redactions } from "./kept-redactions.ts";
import { ListEnd } from "./document-list.ts";
import type { SourceFile } from "./node/source-files.ts";
import { sourceBytes } from "./one-line-source.ts";
import { createSourceReader, type SourceLine, type SourceReader } from "./source-reader.ts";
import { createUnitSplitter, type SourceUnit } from "./source-units.ts";
import { HandedOffLines } from "./handed-off-lines.ts";
import { statedEntry } from "./imported-session.ts";
import { placeOf, type TranscriptSource } from "./transcript-source.ts";

/** Says where the reading of a source begins. */
export interface ReadStart {
  readonly store: SessionStore;
  readonly source: TranscriptSource;
  readonly ref: SessionRef;
  /** Holds the session as this import found or created it; null for a dry run of a new one. */
  readonly state: SessionState | null;
  /** True if an earlier or concurrent import began the session. */
  readonly isBegunBefore: boolean;
  /** Counts the lines that the session holds. */
  readonly receipt: ImportReceipt;
  /** True if the text before the document's list has changed. */
  readonly hasNewHead: boolean;
  /** Holds records without a line in the source, which the first batch brings. */
  readonly notes: readonly RecordDraft[];
  readonly redactions: Redactions;
  readonly sourceBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Holds what one append adds to the session, and what its entry says then. */
export interface ReadBatch extends BatchLines {
  readonly headBefore: string | null;
  readonly headAfter: string | null;
  /** Counts the lines and the notes of this batch too. `notes` has no place before the batch is written. */
  readonly receipt: ImportReceipt;
  /** Holds the entry fields that the lines so far state. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** Sets the activity time in the entry; 0 sets none. */
  readonly updatedAtMs: number;
  /** True if every line so far has a record. */
  readonly isComplete: boolean;
  /** Counts the records of lines that no run had read before. */
  readonly records: number;
}

/**
 * Reads a source from its first byte, or from where the reading ended, and gives what the session does not hold yet,
 * batch by batch.
 */
export class SourceReading {
  lines = 0;
  records = 0;
  derived = 0;
  repaired = 0;
  lost: LostLine[] = [];
  /** True once a line of another program may have moved the start of the context. */
  movesWindow = false;
  recordCount: number;
  #start: ReadStart;
  readonly #reader: SourceReader;
  readonly #titles: TitleFinder = new TitleFinder();
  readonly #hash: Hash = createHash("sha256");
  readonly #listEnd = new ListEnd(this.#hash);
  readonly #handOff: HandedOffLines | null;
  readonly #pieces: ReadonlyMap<number, readonly ContinuedLine[]>;
  #findings: Finding[] = [];
  #fromBytes = 0;
  #receipt: ImportReceipt;
  #redactions: Redactions;
  #batch: ImportBatch;
  /** Counts the items of the batch that surround the list of a grown document; they are no new lines. */
  #frames = 0;
  #headBefore: string | null = null;
  /** Prefers the index's time; otherwise the newest time of a line. */
  #updatedAtMs: number;
  #lineCount = 0;
  #derivedCount: number;
  /** Findings from this number on are new: they concern the continued last line. */
  #findingsOfRest = Infinity;

  constructor(start: ReadStart) {
    const { store, source, ref, receipt, redactions, notes } = start;
    this.#start = start;
    this.#reader = createSourceReader(source, { key: ref.key, maxLineBytes: store.capabilities.limits.recordBytes });
    this.#pieces = supersededPieces(receipt);
    this.#handOff = receipt.handOff === undefined ? null : new HandedOffLines(receipt.handOff, source);
    this.#receipt = receipt;
    this.#redactions = redactions;
    this.#batch = this.#newBatch(notes);
    this.recordCount = receipt.recordCount;
    this.#derivedCount = receipt.derivedCount ?? 0;
    this.#updatedAtMs = statedTimeMs(source);
  }

  /** Begins again behind the last byte that was read, which must end a line of a file of lines. */
  continueFrom(start: ReadStart): this {
    const { receipt, redactions } = start;
    this.#start = start;
    this.#receipt = receipt;
    this.#redactions = redactions;
    this.#fromBytes = receipt.sizeBytes;
    this.#findings = [];
    this.#findingsOfRest = Infinity;
    this.#updatedAtMs = statedTimeMs(start.source);
    this.lines = this.records = this.derived = this.repaired = 0;
    this.lost = [];
    this.movesWindow = false;
    return this;
  }

  get headId(): string | null {
    const { headId } = this.#reader;
    return this.#handOff === null ? headId : this.#handOff.idHere(headId);
  }

  /** Lists the findings in lines that this run read first. */
  get findings(): readonly Finding[] {
    const { lineCount: knownLines } = this.#start.receipt;
    return [
      ...this.#findings,
      ...newFindings(this.#reader.findings, { knownLines, fromFinding: this.#findingsOfRest }),
    ];
  }

  /** @throws {ThroughlineError} SOURCE_CHANGED, ABORTED */
  async *batches(file: SourceFile): AsyncGenerator<ReadBatch> {
    const { store, source } = this.#start;
    const splitter = createUnitSplitter(store.capabilities.limits.recordBytes, source.layout, this.#fromBytes);
    let chunkStart = this.#fromBytes;
    for await (const chunk of file.chunks({ fromBytes: this.#fromBytes })) {
      this.#assertNotAborted();
      // The hash covers whole lines only, because a receipt is written at the end of a line.
      let hashedTo = 0;
      for (const unit of splitter.push(chunk)) {
        this.#listEnd.update(chunk.subarray(hashedTo, unit.endBytes - chunkStart));
        hashedTo = unit.endBytes - chunkStart;
        await this.#take(unit);
        if (this.#batch.isFull) yield* this.#full(unit.endBytes, unit.isFinal);
        this.#listEnd.takeFinal(unit);
      }
      this.#listEnd.update(chunk.subarray(hashedTo));
      chunkStart += chunk.length;
    }
    const rest = splitter.end();
    for (const unit of rest) {
      await this.#take(unit);
      if (this.#batch.isFull) yield* this.#full(unit.endBytes, unit.isFinal);
    }
    this.#reader.finish();
    const isEnded = rest.every(({ isFinal }) => isFinal);
    if (file.sizeBytes !== this.#receipt.sizeBytes || this.#batch.lines.drafts.length > 0)
      yield* this.#full(file.sizeBytes, isEnded);
  }

  /** Gives the notes of a source that has no lines to read. */
  *notesAlone(): Generator<ReadBatch> {
    if (this.#batch.lines.drafts.length > 0) yield* this.#full(this.#receipt.sizeBytes, this.#receipt.endsWithLineFeed);
  }

  #newBatch(notes: readonly RecordDraft[]): ImportBatch {
    const { store, source } = this.#start;
    return new ImportBatch(store.capabilities.limits, source.own?.revision ?? 0, notes);
  }

  *#full(endBytes: number, endsWithLineFeed: boolean): Generator<ReadBatch> {
    this.#assertNotAborted();
    const { source, state, isBegunBefore, sourceBytes: size } = this.#start;
    const { headId } = this;
    const derivedCount = this.#derivedCount === 0 ? {} : { derivedCount: this.#derivedCount };
    const counts = { lineCount: this.#lineCount, recordCount: this.recordCount, ...derivedCount };
    const read = { sizeBytes: endBytes, sha256: this.#hash.copy().digest("hex"), ...counts, ...this.#listEnd.receipt };
    this.#receipt = advanced(this.#receipt, { ...read, endsWithLineFeed, headId }, size);
    const { lines } = this.#batch;
    const records = lines.lineCount - this.#frames;
    this.records += records;
    this.derived += lines.drafts.length - lines.notes.count - lines.lineCount;
    this.movesWindow ||= lines.movesWindow;
    yield {
      ...lines,
      headBefore: this.#headBefore,
      headAfter: headId,
      receipt: this.#receipt,
      entry: statedEntry(this.#reader, this.#titles.title, { source, state, isBegunBefore }),
      updatedAtMs: this.#updatedAtMs,
      isComplete: this.lost.length === 0,
      records,
    };
    this.#headBefore = headId;
    this.#frames = 0;
    this.#batch = this.#newBatch([]);
  }

  async #take(unit: SourceUnit): Promise<void> {
    this.#lineCount++;
    const { source, receipt, hasNewHead, store } = this.#start;
    const { recordBytes } = store.capabilities.limits;
    // Each earlier piece used an id, so the reader must count them to assign the same ids again.
    for (const { sizeBytes } of this.#pieces.get(this.#lineCount) ?? [])
      readPiece(this.#reader, unit, { line: this.#lineCount, sizeBytes });
    const isKnown = this.#lineCount <= receipt.lineCount && !(hasNewHead && this.#lineCount === 1);
    if (isKnown) {
      const growth = growthOf(source, unit, this.#lineCount, { receipt: this.#receipt, maxBytes: recordBytes });
      if (growth === null) return this.#passOver(unit, this.#read(unit));
      if (!(await this.#isTakenAgain(unit, growth))) return;
    }
    const knownFindings = this.#reader.findings.length;
    const line = this.#read(unit);
    this.#listEnd.takeRecord(unit, line.record.id);
    // Throughline's file header is no record.
    if (line.envelope?.seq === 0) this.#receipt = { ...this.#receipt, hasOwnHeader: true };
    else this.#add(line, unit, this.#reader.findings.slice(knownFindings));
  }

  #add(line: SourceLine, { sizeBytes, part }: SourceUnit, findings: readonly Finding[]): void {
    const { source, receipt, store } = this.#start;
    // When a document's list has grown, the text around the list is read again.
    const isFrame = part !== undefined && part !== "element" && receipt.lineCount > 0;
    if (!isFrame) this.lines++;
    const largest = Math.max(sizeBytes, part === undefined ? 0 : sourceBytes(line.source));
    if (largest > store.capabilities.limits.recordBytes) {
      this.lost.push({ line: this.#lineCount, bytes: sizeBytes, reason: "too-long" });
      return;
    }
    if (isOdd(line, findings)) this.repaired++;
    const redaction = this.#redactions.get(line.record.id);
    if (redaction === undefined) for (const record of [line.record, ...(line.derived ?? [])]) this.#titles.take(record);
    this.#batch.add(line, sizeBytes, redaction === undefined ? null : withheldDrafts(line, redaction, sizeBytes));
    if (isFrame) this.#frames++;
    this.recordCount++;
    this.#derivedCount += line.derived?.length ?? 0;
    if (line.tsMs !== null && typeof source.entry?.["updatedAt"] !== "number")
      this.#updatedAtMs = Math.max(this.#updatedAtMs, line.tsMs);
  }

  #read(unit: SourceUnit): SourceLine {
    const line = this.#reader.push(decodeLine(unit.bytes), placeOf(unit, this.#lineCount));
    return this.#handOff === null ? line : this.#handOff.take(line);
  }

  /** An earlier run stored this line; the reader needs it only for its state. */
  #passOver(unit: SourceUnit, line: SourceLine): void {
    const { source, state } = this.#start;
    if (unit.part === "head") this.#listEnd.takeRecord(unit, line.record.id);
    // A Throughline store may have moved the head without a record, which the lines do not show.
    this.#headBefore = source.own === null ? line.headId : (state?.head.headId ?? null);
  }

  /**
   * Handles a line that an earlier run read before it was complete. Returns true to import the whole line behind the
   * record of its beginning. Returns false if that record still covers the line.
   * @throws {ThroughlineError} SOURCE_CHANGED
   */
  async #isTakenAgain(unit: SourceUnit, { sizeBytes, hasRecord, rest }: LineGrowth): Promise<boolean> {
    const line = this.#lineCount;
    const { store, source, ref } = this.#start;
    const place = { path: source.path, key: ref.key };
    const others = (this.#receipt.continued ?? []).filter((one) => one.line !== line || one.rest === undefined);
    if (hasRecord && rest !== null) {
      const why = "its last line, which had no end, continues with white space";
      if (rest.length > maxRestBytes) throw sourceChanged(place, this.#receipt.sizeBytes, why);
      const whole = this.#read(unit);
      this.#passOver(unit, whole);
      this.#receipt = { ...this.#receipt, continued: [...others, { line, sizeBytes, id: whole.record.id, rest }] };
      return false;
    }
    if (hasRecord) {
      const piece = readPiece(this.#reader, unit, { line, sizeBytes });
      this.#passOver(unit, piece);
      this.#receipt = { ...this.#receipt, continued: [...others, { line, sizeBytes, id: piece.record.id }] };
      this.recordCount--;
      const redactions = await redactionsOfWhole(store, ref, piece.record.id, { source, split: unit, line });
      this.#redactions = redactions ?? this.#redactions;
    }
    this.#findingsOfRest = this.#reader.findings.length;
    const message = `The line had ${sizeBytes} bytes when it was imported and goes on: it is taken again as it is now.`;
    this.#findings.push(createFinding("TAIL_CONTINUED", message, { ...place, line, byteOffset: unit.byteOffset }));
    return true;
  }

  #assertNotAborted(): void {
    const { signal } = this.#start;
    if (signal?.aborted !== true) return;
    throw new ThroughlineError("ABORTED", "The import was aborted; the next run goes on from there.", {
      cause: signal.reason,
    });
  }
}

function statedTimeMs({ entry }: TranscriptSource): number {
  return typeof entry?.["updatedAt"] === "number" ? entry["updatedAt"] : 0;
}

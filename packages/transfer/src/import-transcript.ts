import { createHash, type Hash } from "node:crypto";
import { createFinding, splitBlobs, type SplitEntry } from "@throughline/core/internal";
import {
  type Finding,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { TitleFinder } from "@throughline/history/internal";
import { decodeLine } from "@throughline/openclaw-format";
import { growthOf, maxRestBytes, readPiece, supersededPieces, type LineGrowth } from "./continued-line.ts";
import { followArchive } from "./follow-archive.ts";
import { advanced, receiptOf } from "./import-receipt.ts";
import type { ContinuedLine, ImportReceipt } from "./receipt-types.ts";
import { ImportBatch } from "./import-batch.ts";
import { heldPart } from "./held-part.ts";
import { isPutAside, sourceChanged, sourceReplaced } from "./import-refusals.ts";
import type { ImportOptions, ImportSource, LostLine } from "./import-types.ts";
import { createImportedSession, firstReceipt } from "./imported-session.ts";
import { ListEnd } from "./list-end.ts";
import { redactCopies, redactionsIn, redactionsOfWhole, withheldDrafts, type Redactions } from "./kept-redactions.ts";
import type { SourceFile } from "./node/source-files.ts";
import { sourceBytes } from "./one-line-source.ts";
import { SessionWriter, withNotes } from "./session-writer.ts";
import type { SourceClaims } from "./source-claims.ts";
import { createSourceReader, type SourceLine, type SourceReader } from "./source-reader.ts";
import { createUnitSplitter, type SourceUnit } from "./source-units.ts";
import { findTarget, type ImportPlaces, type ImportTarget, leftAloneFinding } from "./target-session.ts";
import { isOdd, newFindings } from "./import-findings.ts";
import { headerFolder, spawnFields, statedEntry } from "./stated-entry.ts";
import { placeOf, type TranscriptSource } from "./transcript-source.ts";

/** Reads one transcript into its session, from the position where an earlier run stopped. */
export async function importTranscript(
  places: ImportPlaces,
  source: TranscriptSource,
  options: ImportOptions,
): Promise<ImportSource> {
  const { store, claims } = places;
  const target = await findTarget(places, source, options);
  const run = new ImportRun(places, source, target, options);
  if (target.leftAlone !== null) return run.leftAlone(target.leftAlone);
  if (target.found !== null) claims.take(target.found.state, source);
  const redactions = await redactionsIn(store, target.others);
  const file = source.open === null ? null : await source.open();
  try {
    return await run.run(file, redactions);
  } finally {
    await file?.close();
  }
}

class ImportRun {
  private readonly store: SessionStore;
  private readonly claims: SourceClaims;
  private readonly source: TranscriptSource;
  private readonly target: ImportTarget;
  private readonly options: ImportOptions;
  private readonly reader: SourceReader;
  private readonly titles: TitleFinder = new TitleFinder();
  private readonly hash: Hash = createHash("sha256");
  private ref: SessionRef;
  private state: SessionState | null;
  private receipt: ImportReceipt;
  /** True if an earlier or concurrent import began the session. */
  private readonly isBegunBefore: boolean;
  private writer: SessionWriter;
  private redactions: Redactions = new Map();
  private readonly batch: ImportBatch;
  private splitEntry: SplitEntry<Readonly<Record<string, unknown>>> | null = null;
  private headBefore: string | null = null;
  /** Prefers the index's time; otherwise the newest time of a line. */
  private updatedAtMs: number;
  private sourceBytes = 0;
  private lines = 0;
  private records = 0;
  /** Counts the items of the batch that surround the list of a grown document; they are no new lines. */
  private frames = 0;
  private derived = 0;
  private repaired = 0;
  private readonly lost: LostLine[] = [];
  private lineCount = 0;
  private recordCount: number;
  private derivedCount: number;
  /** Counts the lines that earlier runs read. */
  private knownLines: number;
  private readonly listEnd = new ListEnd(this.hash);
  /** Findings from this number on are new: they concern the continued last line. */
  private findingsOfRest = Infinity;
  private readonly findings: Finding[] = [];

  constructor({ store, claims }: ImportPlaces, source: TranscriptSource, target: ImportTarget, options: ImportOptions) {
    this.store = store;
    this.claims = claims;
    this.source = source;
    this.target = target;
    this.options = options;
    this.ref = target.ref;
    this.state = target.found?.state ?? null;
    this.receipt = target.found?.receipt ?? firstReceipt(source, target.refusedKey, options.key);
    this.isBegunBefore = target.found !== null;
    this.writer = this.newWriter();
    this.recordCount = this.receipt.recordCount;
    this.derivedCount = this.receipt.derivedCount ?? 0;
    this.knownLines = this.receipt.lineCount;
    const { limits } = store.capabilities;
    this.batch = new ImportBatch(limits, source.own?.revision ?? 0);
    this.reader = createSourceReader(source, { key: target.ref.key, maxLineBytes: limits.recordBytes });
    const updatedAt = source.entry?.["updatedAt"];
    this.updatedAtMs = typeof updatedAt === "number" ? updatedAt : 0;
  }

  private newWriter(): SessionWriter {
    const { store, ref, state, receipt, isBegunBefore, options } = this;
    const { path } = this.source;
    return new SessionWriter(store, { ref, path, state, receipt, isBegunBefore, options, split: () => this.split });
  }

  /** Splits the index's entry: large fields go into records, because a batch has a size limit. */
  private get split(): SplitEntry<Readonly<Record<string, unknown>>> {
    const { source, store } = this;
    // A Throughline store has already moved its large fields into records, and its seq numbers must stay.
    const mostBytes = source.own === null ? store.capabilities.limits.batchBytes / 8 : 0;
    return (this.splitEntry ??= splitBlobs(source.entry ?? {}, mostBytes));
  }

  async run(file: SourceFile | null, redactions: Redactions): Promise<ImportSource> {
    const sizeBytes = (this.sourceBytes = file?.sizeBytes ?? 0);
    this.redactions = redactions;
    const isFresh =
      this.state === null || (this.receipt.sizeBytes === 0 && this.state.head.headId === null && sizeBytes > 0);
    if (this.target.found?.isSame === false) throw sourceReplaced(this.place, this.receipt.sizeBytes, sizeBytes);
    await this.beginBehindHeldPart(file);
    const isWhole = this.state !== null && this.receipt.sizeBytes === sizeBytes;
    if (!isWhole && this.state?.archived === true) throw isPutAside(this.place);
    if (this.state === null && this.options.dryRun !== true) await this.create(file);
    this.beginWithBlobs();
    if (!isWhole) {
      if (file !== null) await this.readFile(file);
      await this.restoreSavedHead();
    }
    if (this.batch.notes.length > 0) await this.flush(this.receipt.sizeBytes, this.receipt.endsWithLineFeed);
    if (redactions.size > 0 && this.options.dryRun !== true) await redactCopies(this.store, this.ref, redactions);
    const isMoved = await this.archive();
    return this.result(isFresh ? "imported" : isWhole && !isMoved ? "unchanged" : "grown");
  }

  /** Restarts behind the records that the session still holds, so that records lost since are imported again. */
  private async beginBehindHeldPart(file: SourceFile | null): Promise<void> {
    const { store, source, state, receipt } = this;
    const held = await heldPart({ store, source, file, state, receipt });
    if (held === null) return;
    this.receipt = held.receipt;
    ({ lineCount: this.knownLines, recordCount: this.recordCount, derivedCount: this.derivedCount = 0 } = held.receipt);
    this.findings.push(held.finding);
  }

  leftAlone(why: NonNullable<ImportTarget["leftAlone"]>): ImportSource {
    this.findings.push(leftAloneFinding(this.source, this.ref.key, why));
    return this.result("skipped");
  }

  private async create(file: SourceFile | null): Promise<void> {
    if (this.sourceBytes > 0) this.receipt = { ...this.receipt, isPartial: true };
    const { store, source, ref, receipt } = this;
    const entryFields = { ...headerFolder(source), ...(await spawnFields(store, source, ref)), ...this.split.entry };
    this.state = await createImportedSession(store, ref, source, { entryFields, receipt, file });
    this.writer = this.newWriter();
    this.claims.take(this.state, source);
  }

  /** The first commit holds the entry's blobs, also when an earlier run stopped before it. */
  private beginWithBlobs(): void {
    const { lineCount, notes } = this.receipt;
    const isBegun = lineCount > 0 || notes !== undefined;
    if (isBegun || this.options.dryRun === true || this.state?.archived === true || this.split.drafts.length === 0)
      return;
    this.batch.addNotes(this.split.drafts);
  }

  private async readFile(file: SourceFile): Promise<void> {
    const pieces = supersededPieces(this.receipt);
    const splitter = createUnitSplitter(this.store.capabilities.limits.recordBytes, this.source.layout);
    let chunkStart = 0;
    for await (const chunk of file.chunks()) {
      this.assertNotAborted();
      // The hash covers whole lines only, because a receipt is written at the end of a line.
      let hashedTo = 0;
      for (const unit of splitter.push(chunk)) {
        this.listEnd.update(chunk.subarray(hashedTo, unit.endBytes - chunkStart));
        hashedTo = unit.endBytes - chunkStart;
        await this.take(unit, pieces.get(this.lineCount + 1));
        this.listEnd.takeFinal(unit);
      }
      this.listEnd.update(chunk.subarray(hashedTo));
      chunkStart += chunk.length;
    }
    const rest = splitter.end();
    for (const unit of rest) await this.take(unit, pieces.get(this.lineCount + 1));
    this.reader.finish();
    await this.flush(
      file.sizeBytes,
      rest.every(({ isFinal }) => isFinal),
    );
    if (this.batch.movesWindow && this.options.dryRun !== true) await this.writer.stateWindow(this.reader.headId);
    this.progress(file.sizeBytes);
  }

  private async take(split: SourceUnit, pieces: readonly ContinuedLine[] = []): Promise<void> {
    this.lineCount++;
    const { sizeBytes, endBytes, isFinal } = split;
    const { recordBytes } = this.store.capabilities.limits;
    // Each earlier piece used an id, so the reader must count them to assign the same ids again.
    for (const piece of pieces) readPiece(this.reader, split, { line: this.lineCount, sizeBytes: piece.sizeBytes });
    const isNewHead = this.lineCount === 1 && this.target.found?.hasNewHead === true;
    if (this.lineCount <= this.knownLines && !isNewHead) {
      const growth = growthOf(this.source, split, this.lineCount, { receipt: this.receipt, maxBytes: recordBytes });
      if (growth === null) return this.passOver(split, this.read(split));
      if (!(await this.isTakenAgain(split, growth))) return;
    }
    const known = this.reader.findings.length;
    const line = this.read(split);
    this.listEnd.takeRecord(split, line.record.id);
    // Throughline's file header is no record.
    if (line.envelope?.seq === 0) {
      this.receipt = { ...this.receipt, hasOwnHeader: true };
      return;
    }
    // When a document's list has grown, the text around the list is read again.
    const isFrame = split.part !== undefined && split.part !== "element" && this.knownLines > 0;
    if (!isFrame) this.lines++;
    if (Math.max(sizeBytes, split.part === undefined ? 0 : sourceBytes(line.source)) > recordBytes) {
      this.lost.push({ line: this.lineCount, bytes: sizeBytes, reason: "too-long" });
      return;
    }
    if (isOdd(line, this.reader.findings.slice(known))) this.repaired++;
    const redaction = this.redactions.get(line.record.id);
    if (redaction === undefined) for (const record of [line.record, ...(line.derived ?? [])]) this.titles.take(record);
    this.batch.add(line, sizeBytes, redaction === undefined ? null : withheldDrafts(line, redaction, sizeBytes));
    if (isFrame) this.frames++;
    this.recordCount++;
    this.derivedCount += line.derived?.length ?? 0;
    if (line.tsMs !== null && typeof this.source.entry?.["updatedAt"] !== "number")
      this.updatedAtMs = Math.max(this.updatedAtMs, line.tsMs);
    if (this.batch.isFull) await this.flush(endBytes, isFinal);
  }

  private read(unit: SourceUnit): SourceLine {
    return this.reader.push(decodeLine(unit.bytes), placeOf(unit, this.lineCount));
  }

  /** An earlier run stored this line; the reader needs it only for its state. */
  private passOver(split: SourceUnit, line: SourceLine): void {
    if (split.part === "head") this.listEnd.takeRecord(split, line.record.id);
    // A Throughline store may have moved the head without a record, which the lines do not show.
    this.headBefore = this.source.own === null ? line.headId : (this.state?.head.headId ?? null);
  }

  /**
   * Handles a line that an earlier run read before it was complete. Returns true to import the whole line behind the
   * record of its beginning. Returns false if that record still covers the line.
   * @throws {ThroughlineError} SOURCE_CHANGED
   */
  private async isTakenAgain(split: SourceUnit, { sizeBytes, hasRecord, rest }: LineGrowth): Promise<boolean> {
    const { lineCount: line } = this;
    const others = (this.receipt.continued ?? []).filter((one) => one.line !== line || one.rest === undefined);
    if (hasRecord && rest !== null) {
      if (rest.length > maxRestBytes)
        throw sourceChanged(
          this.place,
          this.receipt.sizeBytes,
          "its last line, which had no end, continues with white space",
        );
      const whole = this.read(split);
      this.passOver(split, whole);
      this.receipt = { ...this.receipt, continued: [...others, { line, sizeBytes, id: whole.record.id, rest }] };
      return false;
    }
    if (hasRecord) {
      const piece = readPiece(this.reader, split, { line, sizeBytes });
      this.passOver(split, piece);
      this.receipt = { ...this.receipt, continued: [...others, { line, sizeBytes, id: piece.record.id }] };
      this.recordCount--;
      const grown = { source: this.source, split, line };
      const redactions = await redactionsOfWhole(this.store, this.ref, piece.record.id, grown);
      this.redactions = redactions ?? this.redactions;
    }
    this.findingsOfRest = this.reader.findings.length;
    const message = `The line had ${sizeBytes} bytes when it was imported and goes on: it is taken again as it is now.`;
    this.findings.push(createFinding("TAIL_CONTINUED", message, { ...this.place, line, byteOffset: split.byteOffset }));
    return true;
  }

  private async flush(endBytes: number, endsWithLineFeed: boolean): Promise<void> {
    this.assertNotAborted();
    const { batch, lineCount, recordCount, derivedCount } = this;
    if (endBytes === this.receipt.sizeBytes && batch.drafts.length === 0) return;
    const sha256 = this.hash.copy().digest("hex");
    const { headId } = this.reader;
    const counts = { lineCount, recordCount, ...(derivedCount === 0 ? {} : { derivedCount }), ...this.listEnd.receipt };
    const read = { sizeBytes: endBytes, sha256, ...counts, endsWithLineFeed, headId };
    const now = advanced(this.receipt, read, this.sourceBytes);
    const receipt = withNotes(now, batch, (this.state?.head.lastSeq ?? 0) + 1);
    const { headBefore, updatedAtMs, source, state, isBegunBefore } = this;
    const entry = statedEntry(this.reader, this.titles.title, { source, state, isBegunBefore });
    const lines = { headBefore, headAfter: headId, updatedAtMs, isComplete: this.lost.length === 0, entry };
    if (this.options.dryRun === true && this.records === 0 && batch.drafts.length > 0)
      await this.writer.assertNotGoneOn(headBefore);
    this.receipt = this.options.dryRun === true ? receipt : await this.writer.write(batch, receipt, lines);
    this.records += batch.lineCount - this.frames;
    this.frames = 0;
    this.derived += batch.drafts.length - batch.notes.length - batch.lineCount;
    this.headBefore = this.reader.headId;
    batch.clear();
    this.progress(endBytes);
  }

  /** A Throughline store may have moved the head without a record, so the saved head is restored. */
  private async restoreSavedHead(): Promise<void> {
    const saved = this.source.own?.savedHead ?? null;
    if (saved === null || saved.lastSeq !== this.recordCount || this.options.dryRun === true) return;
    await this.writer.moveHead(saved.headId, this.receipt);
  }

  /** Returns true if an existing session was archived by this run. */
  private async archive(): Promise<boolean> {
    if (!this.source.isArchived || this.options.dryRun === true || this.state?.archived === true) return false;
    const { store, source, ref, receipt, isBegunBefore, writer } = this;
    const before = isBegunBefore && this.state !== null ? receiptOf(this.state.entry) : null;
    const { state, finding } = await followArchive({ store, source, ref, receipt, before, writer });
    if (finding !== null) this.findings.push(finding);
    if (state === null) return false;
    this.ref = state.ref;
    return isBegunBefore;
  }

  private result(state: ImportSource["state"]): ImportSource {
    const { path, format } = this.source;
    const isArchived = this.ref.archiveId !== undefined || (this.options.dryRun === true && this.source.isArchived);
    const told = newFindings(this.reader.findings, { knownLines: this.knownLines, fromFinding: this.findingsOfRest });
    const findings = [...this.source.findings, ...this.target.findings, ...this.findings, ...told];
    const sessionId = this.state?.sessionId ?? this.source.sessionId;
    const { lines, records, derived, repaired, lost } = this;
    return {
      path,
      format,
      key: this.ref.key,
      agentId: this.ref.agentId,
      sessionId,
      state,
      archived: isArchived,
      lines,
      records,
      derived,
      repaired,
      lost,
      findings,
      error: null,
    };
  }

  private progress(readBytes: number): void {
    this.options.onProgress?.({
      path: this.source.path,
      key: this.ref.key,
      readBytes,
      // A file that grows while it is read may be larger than it was at the start.
      sizeBytes: Math.max(readBytes, this.sourceBytes),
      records: this.records,
    });
  }

  private assertNotAborted(): void {
    if (this.options.signal?.aborted === true) {
      throw new ThroughlineError("ABORTED", "The import was aborted; the next run goes on from there.", {
        cause: this.options.signal.reason,
      });
    }
  }

  private get place(): { readonly path: string; readonly key: string } {
    return { path: this.source.path, key: this.ref.key };
  }
}

import { crc32 } from "node:zlib";
import { createFinding, nextUpdatedAtMs, RememberedAppends } from "@throughline/core/internal";
import type { AppendedRecord, FindingCode } from "@throughline/core/internal";
import type { Finding, SessionHead, SessionRecord } from "@throughline/core";
import { createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import type { TranscriptReader } from "@throughline/openclaw-format/internal";
import { decodeStoredLine, type LineCodec, type LineHead, type LineOwner, type StoredLine } from "./stored-line.ts";
import { damagedLineError, hasOtherEnd, isOwnHeader, lostMessage } from "./line-damage.ts";
import type { EntryPatch, OwnLine, StoreEnvelope, TranscriptBase } from "./store-envelope.ts";
import { endOf, isCompleteJson, type FramedLine } from "./framed-lines.ts";
import { RecordIds } from "./record-ids.ts";
import { readOwnRow } from "./transcript-lines.ts";
import type { WarmLines } from "./warm-lines.ts";

/** Describes the end of the file that is not a record: the rest of a write that was never acknowledged. */
export interface TornTail {
  readonly byteOffset: number;
  readonly code: "TAIL_TORN" | "BATCH_INCOMPLETE";
}

export interface TranscriptOptions {
  readonly owner: LineOwner;
  readonly codec: LineCodec;
  readonly path: string;
  /**
   * Returns the current time, to check times that other programs claim. It is a function, because an image outlives a
   * scan.
   */
  readonly nowMs: () => number;
  readonly warm: WarmLines;
  readonly maxLineBytes: number;
  /** Returns the last seq that other data prove as acknowledged. Called only if the file ends inside an append. */
  readonly acknowledgedSeq: () => number;
  /** Passes every line to the reader of foreign transcripts, which is needed once another program has written. */
  readonly isMixed: boolean;
}

export const maxKeptPatches = 256;

export interface WrittenLine {
  readonly stored: StoredLine;
  readonly text: string;
  readonly byteOffset: number;
  readonly endBytes: number;
  /** Counts lines from 1; 0 stands for a line that was just written. */
  readonly line: number;
}

/** Holds the image of one transcript. It is dropped and built again whenever the file was replaced. */
export class Transcript {
  readonly options: TranscriptOptions;
  /** Holds the start of each record's line, from the first loaded record on. */
  offsets: number[] = [];
  /** Maps the ids of the records from `base` on. */
  readonly seqById: RecordIds = new RecordIds();
  /**
   * Holds records that differ from the JSON of their lines: those of other programs, and duplicated lines of this
   * store.
   */
  readonly meanings: Map<number, SessionRecord> = new Map();
  /** Holds the seqs of other programs' lines that are too long to be read. */
  readonly overlong: Set<number> = new Set();
  readonly remembered: RememberedAppends = new RememberedAppends();
  readonly findings: Finding[] = [];
  patches: EntryPatch[] = [];
  head: SessionHead;
  messageCount = 0;
  updatedAtMs = 0;
  highestRevision = 0;
  /** States where the known bytes end; later bytes are new or torn. */
  endBytes = 0;
  /** Is true when the last known line has no line feed yet. */
  isOpenEnded = false;
  tail: TornTail | null = null;
  /** Counts the missing records when the file ends inside an acknowledged append. */
  lostCount = 0;
  /** Is true when the last line is the rest of an acknowledged record, which keeps its seq. */
  endsInHalf = false;
  isHeaderOurs = false;
  /** Keeps the lines of a scan for the next reader, because a session is mostly read right after it is opened. */
  keepsLines = true;
  savedHead: SessionHead | null;
  /** States where reading started; null for the start of the file. */
  readonly base: TranscriptBase | null;
  /** Is true when another program's line was found and the image was built without the foreign reader. */
  #needsReader = false;
  #scannedBytes = 0;
  #lineCount = 0;
  #reader: TranscriptReader | null = null;
  #reportedFindings = 0;
  #batch: WrittenLine[] = [];

  constructor(options: TranscriptOptions, savedHead: SessionHead | null, base: TranscriptBase | null = null) {
    this.options = options;
    this.savedHead = savedHead;
    this.base = base;
    const { sessionId } = options.owner;
    this.head = base?.head ?? { sessionId, lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null };
    this.messageCount = base?.messageCount ?? 0;
    this.updatedAtMs = base?.updatedAtMs ?? 0;
    this.highestRevision = base?.revision ?? 0;
    this.endBytes = base?.endBytes ?? 0;
    this.#applySavedHead();
  }

  get firstSeq(): number {
    return this.head.lastSeq - this.offsets.length + 1;
  }

  /** Returns the start of a record's line. For the seq after the last one it returns the end of the file. */
  startOf(seq: number): number {
    return this.offsets[seq - this.firstSeq] ?? this.endBytes;
  }

  seqBefore(endBytes: number): number {
    const index = this.offsets.findLastIndex((offset) => offset < endBytes);
    return index === -1 ? 0 : this.firstSeq + index;
  }

  /** States where the line of the window's first record starts, if known. */
  get windowAt(): number | undefined {
    const { windowSeq } = this.head;
    if (windowSeq === null) return undefined;
    const known = this.offsets[windowSeq - this.firstSeq];
    return known ?? (this.base?.head.windowSeq === windowSeq ? this.base.windowAt : undefined);
  }

  addEarlier(starts: readonly number[]): void {
    this.offsets = [...starts, ...this.offsets];
  }

  /** Accepts a head that was saved without records; returns false when later records were already read. */
  acceptSavedHead(saved: SessionHead | null): boolean {
    if (saved === this.savedHead || saved === null || JSON.stringify(saved) === JSON.stringify(this.savedHead))
      return true;
    if (saved.lastSeq < this.head.lastSeq) return false;
    this.savedHead = saved;
    this.#applySavedHead();
    return true;
  }

  /** Drops patches that the entries log has by now. It does so only rarely, to cost little. */
  forgetPatches(revision: number): void {
    const [oldest] = this.patches;
    if (oldest === undefined || oldest.revision > revision) return;
    this.patches = this.patches.filter((patch) => patch.revision > revision);
  }

  /** Resets the state of a scan that ended inside an append, because those lines are read again. */
  beginScan(): void {
    this.tail = null;
    this.lostCount = 0;
    this.endsInHalf = false;
    this.#scannedBytes = this.endBytes;
    this.#lineCount -= this.#batch.length;
    this.#batch = [];
  }

  /** Adds the next lines of the file. Returns false when the file must be read again with the foreign reader. */
  feed(lines: readonly FramedLine[]): boolean {
    for (const line of lines) {
      this.#feedLine(line);
      if (this.#needsReader) return false;
      this.#scannedBytes = endOf(line);
    }
    return true;
  }

  #feedLine(framed: FramedLine): void {
    const { byteOffset, isTerminated } = framed;
    const line = framed.own();
    this.#lineCount++;
    const isFirst = this.#lineCount === 1 && this.base === null;
    if (isFirst && isOwnHeader(line, framed)) return this.#takeHeader(line, framed);
    const { codec, owner } = this.options;
    const own = line?.isIntact !== true || line.envelope.seq === 0 ? null : decodeStoredLine(line, codec, owner);
    if (own === null && (line?.isIntact === false || hasOtherEnd(framed.bytes()))) return this.#refuse(byteOffset);
    if (own === null && !isTerminated && !isCompleteJson(framed)) {
      if (this.head.lastSeq + this.#batch.length >= this.options.acknowledgedSeq())
        return this.#setTail(byteOffset, "TAIL_TORN", 1);
      this.endsInHalf = true;
    }
    if (own !== null && line !== null) this.#feedOwn(own, framed, line.text);
    else this.#feedForeign(framed);
    // Only the text is damaged. The envelope has its own checksum, so its fields still apply.
    if (own === null && line?.envelope.sum !== undefined) this.#applyEnvelope(line.envelope, []);
    this.isOpenEnded = !isTerminated;
  }

  /** Skips the header, even a damaged one, because reading the records needs nothing from it. */
  #takeHeader(line: OwnLine | null, framed: FramedLine): void {
    this.isHeaderOurs = true;
    this.endBytes = endOf(framed);
    this.isOpenEnded = !framed.isTerminated;
    const isWhole = line?.isIntact === true && (line.envelope.crc ?? crc32(line.text)) === crc32(line.text);
    if (!isWhole) this.#report("CHECKSUM_MISMATCH", "The header does not fit its checksum.", framed.byteOffset, null);
  }

  /**
   * Only a read from the start has the line number for the error, so another image asks for one.
   * @throws {ThroughlineError} STORE_CORRUPT
   */
  #refuse(byteOffset: number): void {
    if (this.options.isMixed) throw damagedLineError(this.options.path, this.#lineCount, byteOffset);
    this.#needsReader = true;
  }

  /** Ends a scan at the end of the file. `hasGrown` tests for newer lines, which may hold the missing records. */
  finishScan(hasGrown: () => boolean): void {
    const [first] = this.#batch;
    const isShort = this.head.lastSeq < this.options.acknowledgedSeq();
    const isPartial = first !== undefined && isShort;
    if (first !== undefined && !isPartial) this.#setTail(first.byteOffset, "BATCH_INCOMPLETE", this.#batch.length);
    else this.#commitPartialBatch(false);
    this.#batch = [];
    if (this.tail === null) this.endBytes = this.#scannedBytes;
    if (this.endsInHalf || isPartial || (isShort && !hasGrown())) this.#reportLost(isPartial);
    this.#reportReaderFindings();
  }

  #reportLost(isPartial: boolean): void {
    this.lostCount = this.options.acknowledgedSeq() - this.head.lastSeq;
    this.head = withSavedTurn(this.head, this.savedHead);
    const count = this.lostCount + Number(this.endsInHalf);
    const message = lostMessage(count, this.endsInHalf || isPartial);
    const byteOffset = this.endsInHalf ? this.startOf(this.head.lastSeq) : this.#scannedBytes;
    this.#report("RECORD_MISSING", message, byteOffset, null);
  }

  /** Applies a batch that this process has just written, without reading it back. */
  applyWritten(lines: readonly WrittenLine[]): readonly AppendedRecord[] {
    this.#batch = [];
    for (const line of lines) this.#batch.push({ ...line, line: ++this.#lineCount });
    return this.#commitBatch(false);
  }

  #feedOwn(line: StoredLine, framed: FramedLine, text: string): void {
    if (line.crc !== null && line.crc !== line.actualCrc())
      this.#report("CHECKSUM_MISMATCH", `Record ${line.id} does not fit its checksum.`, framed.byteOffset, line.id);
    const [index, count] = line.envelope.batch ?? [1, 1];
    if (index !== this.#batch.length + 1 || (this.#batch[0]?.stored.envelope.batch?.[1] ?? count) !== count)
      this.#commitPartialBatch();
    this.#batch.push({
      stored: line,
      text,
      byteOffset: framed.byteOffset,
      endBytes: endOf(framed),
      line: this.#lineCount,
    });
    // A batch without its start was cut by an edit, so its lines count one by one.
    if (index !== this.#batch.length || index >= count) this.#commitBatch();
  }

  #feedForeign(framed: FramedLine): void {
    if (!this.options.isMixed) {
      this.#needsReader = true;
      return;
    }
    this.#commitPartialBatch(!this.endsInHalf);
    const { byteOffset, sizeBytes, isTerminated } = framed;
    const bytes = framed.bytes();
    const line = this.#lineCount;
    const place = { line, byteOffset, sizeBytes, isTerminated: isTerminated || this.endsInHalf };
    const read = this.#readerNow().push(decodeLine(bytes), place);
    const { record, side, tsMs, isSourceCanonical } = read;
    this.#count({ id: record.id, type: record.type, side }, byteOffset);
    if (read.setsHead) this.head = { ...this.head, headId: read.headId };
    this.#applySavedHead();
    if (bytes.length < sizeBytes) this.overlong.add(this.head.lastSeq);
    if (!isSourceCanonical) this.meanings.set(this.head.lastSeq, record);
    this.updatedAtMs = nextUpdatedAtMs(this.updatedAtMs, tsMs ?? undefined, this.options.nowMs()).updatedAtMs;
    this.endBytes = endOf(framed);
  }

  /** Commits the rest of an acknowledged batch: later lines, or other data, prove that it was acknowledged. */
  #commitPartialBatch(isReported = true): void {
    const [first] = this.#batch;
    if (first === undefined) return;
    const count = first.stored.envelope.batch?.[1] ?? this.#batch.length;
    const message = `Of an append of ${count} records only the first ${this.#batch.length} are here: they are kept.`;
    if (isReported) this.#report("RECORD_MISSING", message, first.byteOffset, first.stored.id);
    this.#commitBatch();
  }

  #commitBatch(isRead: boolean = true): readonly AppendedRecord[] {
    const batch = this.#batch;
    this.#batch = [];
    const appended: AppendedRecord[] = [];
    for (const written of batch) {
      // If another program removed lines, the saved head may belong to a line before the last of the batch.
      this.#applySavedHead();
      appended.push(this.#applyOwn(written));
    }
    if (isRead && this.keepsLines)
      for (const [index, { stored, byteOffset, endBytes }] of batch.entries()) {
        const { seq = 0, id = null } = appended[index] ?? {};
        if (id === stored.id) this.options.warm.keep(this, seq, stored, endBytes - byteOffset);
      }
    const last = batch.at(-1);
    if (last !== undefined) this.#applyEnvelope(last.stored.envelope, appended);
    if (last !== undefined) this.endBytes = last.endBytes;
    return appended;
  }

  #applyOwn({ stored, text, byteOffset, line }: WrittenLine): AppendedRecord {
    const { isMixed } = this.options;
    const place = { line, byteOffset, envelope: null, isOurs: true } as const;
    const read = isMixed ? readOwnRow(this.#readerNow(), text, place).record : null;
    // Pi duplicates a line like this when it finds no answer in a session; the reader gives the copy another id.
    const isAgain = this.seqById.get(stored.id) !== undefined;
    this.#needsReader ||= isAgain && !isMixed;
    if (isAgain && read !== null) this.meanings.set(this.head.lastSeq + 1, read);
    const { parentId, type, side, tsMs, storedAtMs } = stored;
    const id = (isAgain ? read?.id : null) ?? stored.id;
    this.#count({ id, type, side }, byteOffset);
    return { seq: this.head.lastSeq, id, parentId, side, tsMs, storedAtMs: storedAtMs ?? 0 };
  }

  #count({ id, type, side }: Pick<LineHead, "id" | "type" | "side">, byteOffset: number): void {
    const seq = this.head.lastSeq + 1;
    this.offsets.push(byteOffset);
    this.seqById.set(id, seq);
    if (type === "message") this.messageCount++;
    this.head = { ...this.head, lastSeq: seq, headId: side ? this.head.headId : id };
  }

  #applySavedHead(): void {
    const saved = this.savedHead;
    if (saved !== null && saved.lastSeq === this.head.lastSeq) this.head = saved;
  }

  #applyEnvelope(envelope: StoreEnvelope, records: readonly AppendedRecord[]): void {
    const atMs = envelope.at ?? 0;
    this.head = {
      ...this.head,
      headId: envelope.head === undefined ? this.head.headId : envelope.head,
      windowSeq: envelope.window ?? this.head.windowSeq,
      fence: envelope.fence ?? this.head.fence,
      turn: envelope.turn === undefined ? this.head.turn : envelope.turn,
    };
    const { revision = 0, idem, digest } = envelope;
    this.highestRevision = Math.max(this.highestRevision, revision);
    if (envelope.entry !== undefined || envelope.unset !== undefined || envelope.entryEnc !== undefined)
      this.patches.push({ revision, envelope, atMs });
    this.updatedAtMs = Math.max(this.updatedAtMs, envelope.updated ?? atMs);
    if (idem !== undefined && digest !== undefined) {
      this.remembered.remember(
        idem,
        digest,
        { records, head: this.head, revision, durability: "disk", replayed: false },
        atMs,
      );
    }
    // The head was saved after this line, so it wins: the turn that the line opened may be closed by now.
    this.#applySavedHead();
  }

  #readerNow(): TranscriptReader {
    const { path, owner, maxLineBytes } = this.options;
    this.#reader ??= createTranscriptReader({ path, key: owner.ref.key, sessionId: owner.sessionId, maxLineBytes });
    return this.#reader;
  }

  #reportReaderFindings(): void {
    const found = this.#reader?.findings.slice(this.#reportedFindings) ?? [];
    this.#reportedFindings += found.length;
    // The reader never gets the store's own header, and an incomplete line is reported as a lost record.
    const isKnown = ({ code, byteOffset }: Finding): boolean =>
      code === "HEADER_MISSING" ? this.isHeaderOurs : this.endsInHalf && byteOffset === this.startOf(this.head.lastSeq);
    this.findings.push(...found.filter((finding) => !isKnown(finding)));
  }

  #setTail(byteOffset: number, code: TornTail["code"], lines: number): void {
    this.tail = { byteOffset, code };
    this.endBytes = byteOffset;
    this.isOpenEnded = false;
    // These lines are read again later, so their numbers are reused.
    this.#lineCount -= lines;
  }

  #report(code: FindingCode, message: string, byteOffset: number, recordId: string | null): void {
    const { path, owner } = this.options;
    this.findings.push(
      createFinding(code, message, {
        path,
        key: owner.ref.key,
        line: this.base === null ? this.#lineCount : null,
        byteOffset,
        recordId,
      }),
    );
  }
}

/** Restores the fence and the turn of a transcript that lost its last records, because they were saved behind those. */
function withSavedTurn(head: SessionHead, saved: SessionHead | null): SessionHead {
  return saved === null || saved.lastSeq <= head.lastSeq ? head : { ...head, fence: saved.fence, turn: saved.turn };
}

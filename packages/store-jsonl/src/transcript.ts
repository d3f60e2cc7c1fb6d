import { crc32 } from "node:zlib";
import { createFinding, nextUpdatedAtMs, RememberedAppends } from "@throughline/core/internal";
import type { AppendedRecord, FindingCode } from "@throughline/core/internal";
import type { Finding, SessionHead, SessionRecord } from "@throughline/core";
import { createTranscriptReader, decodeLine, type TranscriptReader } from "@throughline/openclaw-format";
import { decodeStoredLine, type LineCodec, type LineHead, type LineOwner, type StoredLine } from "./stored-line.ts";
import { damagedLineError, hasOtherEnd, isOwnHeader, lostMessage } from "./line-damage.ts";
import type { EntryPatch, OwnLine, StoreEnvelope, TranscriptBase } from "./store-envelope.ts";
import { endOf, isCompleteJson, type FramedLine } from "./framed-lines.ts";
import { RecordIds } from "./record-ids.ts";
import { readOwnRow } from "./transcript-lines.ts";
import type { WarmLines } from "./warm-lines.ts";

/** What stands at the end of the file and is no record: the rest of a write that was never acknowledged. */
export interface TornTail {
  readonly byteOffset: number;
  readonly code: "TAIL_TORN" | "BATCH_INCOMPLETE";
}

export interface TranscriptOptions {
  readonly owner: LineOwner;
  readonly codec: LineCodec;
  readonly path: string;
  /** What other programs claim is measured against it when it is read: an image lives longer than a scan. */
  readonly nowMs: () => number;
  readonly warm: WarmLines;
  /** Longer lines of other programs are kept and not read. */
  readonly maxLineBytes: number;
  /**
   * Up to which seq records are known to have been acknowledged, from elsewhere than the file. Asked only where the file ends
   * in the middle of an append.
   */
  readonly acknowledgedSeq: () => number;
  /** Follow every line with the reader of foreign transcripts; needed once another program has written. */
  readonly isMixed: boolean;
}

const maxKeptPatches = 256;

/** A line of ours with its place. */
export interface WrittenLine {
  readonly stored: StoredLine;
  /** The line without its envelope. */
  readonly text: string;
  readonly byteOffset: number;
  readonly endBytes: number;
  /** From 1; 0 for a line just written. */
  readonly line: number;
}

/** An image of one transcript, line by line. It is discarded and built again whenever the file was replaced. */
export class Transcript {
  readonly options: TranscriptOptions;
  /** Where each record's line begins, from the first that is known on. */
  offsets: number[] = [];
  /** Of the records from `base` on. */
  readonly seqById: RecordIds = new RecordIds();
  /** What lines stand for, where that is not their own JSON: those of other programs, and of ours those doubled. */
  readonly meanings: Map<number, SessionRecord> = new Map();
  /** Of those, lines that are too long to be read. */
  readonly overlong: Set<number> = new Set();
  readonly remembered: RememberedAppends = new RememberedAppends();
  readonly findings: Finding[] = [];
  patches: EntryPatch[] = [];
  head: SessionHead;
  messageCount = 0;
  updatedAtMs = 0;
  highestRevision = 0;
  /** Bytes that are understood; whatever follows is new or torn. */
  endBytes = 0;
  /** The last line understood has no line feed yet. */
  isOpenEnded = false;
  tail: TornTail | null = null;
  /** The number of records missing where the file ends in the middle of an acknowledged append. */
  lostCount = 0;
  /** The last line is half a record that was acknowledged: it keeps its place. */
  endsInHalf = false;
  isHeaderOurs = false;
  /** Lines that are read now are kept for whoever reads them next. */
  keepsLines = true;
  savedHead: SessionHead | null;
  /** Where reading began, when it was not at the file's beginning. */
  readonly base: TranscriptBase | null;
  /** A line of another program came and this image was not made for it. */
  #needsReader = false;
  /** Where the lines end that were fed. */
  #scannedBytes = 0;
  #lineCount = 0;
  #reader: TranscriptReader | null = null;
  #reportedFindings = 0;
  #batch: WrittenLine[] = [];

  /** `savedHead`: where an append without records left the head. */
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

  /** The first record whose place is known. */
  get firstSeq(): number {
    return this.head.lastSeq - this.offsets.length + 1;
  }

  /** Where a record's line begins; the end, for the one after the last. */
  startOf(seq: number): number {
    return this.offsets[seq - this.firstSeq] ?? this.endBytes;
  }

  seqBefore(endBytes: number): number {
    const index = this.offsets.findLastIndex((offset) => offset < endBytes);
    return index === -1 ? 0 : this.firstSeq + index;
  }

  /** Where the line of the window's first record begins, should it be known. */
  get windowAt(): number | undefined {
    const { windowSeq } = this.head;
    if (windowSeq === null) return undefined;
    const known = this.offsets[windowSeq - this.firstSeq];
    return known ?? (this.base?.head.windowSeq === windowSeq ? this.base.windowAt : undefined);
  }

  /** Puts the places of earlier records in front. */
  addEarlier(starts: readonly number[]): void {
    this.offsets = [...starts, ...this.offsets];
  }

  /** Takes over a head that was saved without records; false when records after it were read already. */
  acceptSavedHead(saved: SessionHead | null): boolean {
    if (saved === this.savedHead || saved === null || JSON.stringify(saved) === JSON.stringify(this.savedHead))
      return true;
    if (saved.lastSeq < this.head.lastSeq) return false;
    this.savedHead = saved;
    this.#applySavedHead();
    return true;
  }

  /** Lets go of patches that the entries log has by now; seldom, so that it costs nothing. */
  forgetPatches(revision: number): void {
    const [oldest] = this.patches;
    if (this.patches.length < maxKeptPatches || oldest === undefined || oldest.revision > revision) return;
    this.patches = this.patches.filter((patch) => patch.revision > revision);
  }

  /** What an earlier scan has left that failed in the middle of an append is read again. */
  beginScan(): void {
    this.tail = null;
    this.lostCount = 0;
    this.endsInHalf = false;
    this.#scannedBytes = this.endBytes;
    this.#lineCount -= this.#batch.length;
    this.#batch = [];
  }

  /** Takes the next lines of the file. False when they must be read with other programs in mind, from the beginning. */
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
    // Its text is damaged. What the envelope says of the session is not.
    if (own === null && line?.envelope.sum !== undefined) this.#applyEnvelope(line.envelope, []);
    this.isOpenEnded = !isTerminated;
  }

  /** Nothing in the header is needed here: whatever happened to it, the records are read. */
  #takeHeader(line: OwnLine | null, framed: FramedLine): void {
    this.isHeaderOurs = true;
    this.endBytes = endOf(framed);
    this.isOpenEnded = !framed.isTerminated;
    const isWhole = line?.isIntact === true && (line.envelope.crc ?? crc32(line.text)) === crc32(line.text);
    if (!isWhole) this.#report("CHECKSUM_MISMATCH", "The header does not fit its checksum.", framed.byteOffset, null);
  }

  /** Only who reads from the beginning can name the line. @throws {ThroughlineError} STORE_CORRUPT */
  #refuse(byteOffset: number): void {
    if (this.options.isMixed) throw damagedLineError(this.options.path, this.#lineCount, byteOffset);
    this.#needsReader = true;
  }

  /** Says that the file ends here, for now. `hasGrown`: somebody wrote behind what was read, so that nothing is missing there. */
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

  /** Takes a batch this process has just written; the same as reading it, without reading it. */
  applyWritten(lines: readonly WrittenLine[]): readonly AppendedRecord[] {
    this.#batch = lines.map((line) => ({ ...line, line: ++this.#lineCount }));
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
    // A batch that lost its beginning is as old as the edit that cut it: its lines count one by one.
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

  /** Lines of an acknowledged batch whose end is missing: others follow it, or its records are known elsewhere. */
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
    const appended = batch.map((written) => {
      // At a line before the last where another program took lines away, and what was saved there still counts.
      this.#applySavedHead();
      return this.#applyOwn(written);
    });
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
    // The same line once more, as pi writes those of a session it finds no answer in: the ids tell them apart.
    const isAgain = this.seqById.has(stored.id);
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

  /** What the last line of an append says of the session. */
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
    // What was saved at this line came after it: a turn the line opened may be closed by now.
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
    // Our own header is no record and the reader was not shown it; half a line is reported as what was lost.
    const isKnown = ({ code, byteOffset }: Finding): boolean =>
      code === "HEADER_MISSING" ? this.isHeaderOurs : this.endsInHalf && byteOffset === this.startOf(this.head.lastSeq);
    this.findings.push(...found.filter((finding) => !isKnown(finding)));
  }

  #setTail(byteOffset: number, code: TornTail["code"], lines: number): void {
    this.tail = { byteOffset, code };
    this.endBytes = byteOffset;
    this.isOpenEnded = false;
    // They will be read again, as what they are then.
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

/** The head of a transcript that has lost its last records: whose turn it is was saved behind them. */
function withSavedTurn(head: SessionHead, saved: SessionHead | null): SessionHead {
  return saved === null || saved.lastSeq <= head.lastSeq ? head : { ...head, fence: saved.fence, turn: saved.turn };
}

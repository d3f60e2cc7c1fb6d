import { refused } from "@throughline/core/internal";
import { AppendFile } from "./append-file.ts";
import { anchorBytes, type EndAnchor, holdsAnchor, pastWrite, readAnchor } from "./end-anchor.ts";
import {
  afterCommit,
  fileError,
  outcomeUnknown,
  gather,
  notAFile,
  readRange,
  replaceFile,
  withFileErrors,
} from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import type { FlushedRecords } from "./flushed-seqs.ts";
import { framedLines, type FramedLine, type LineSpan } from "./framed-lines.ts";
import type { EncodedLine, LineOwner } from "./stored-line.ts";
import { setTailAside } from "./torn-tail.ts";
import {
  AcknowledgedRecords,
  findBase,
  reachBack,
  type ReadAside,
  type TranscriptRequest,
  type TranscriptReading,
} from "./read-transcript.ts";
import type { TranscriptFindings } from "./transcript-findings.ts";
import type { UnflushedMarks } from "./unflushed-marks.ts";
import type { FlushedNames } from "./flushed-names.ts";
import { Transcript, type WrittenLine } from "./transcript.ts";

export interface TranscriptFileOptions extends TranscriptReading {
  readonly findings: TranscriptFindings;
  readonly names: FlushedNames;
  readonly unflushed: UnflushedMarks;
  readonly tornFolder: string;
}

/** Holds lines that the image includes and the file lacks, until `commit` writes them. */
interface StagedLines {
  text: string;
  readonly from: number;
  /** Is true while the lines' positions in the image are those that they will have in the file. */
  isInPlace: boolean;
  readonly owner: LineOwner;
}

/**
 * Keeps the image of one session's file up to date, and appends to the file. Everything except the flush is
 * synchronous.
 */
export class TranscriptFile {
  readonly #options: TranscriptFileOptions;
  readonly #file: AppendFile;
  /** Holds the file's facts when the image was read or written; null when they must be read again. */
  facts: FileFacts | null = null;
  /** Holds the facts of the last write of this process, if nothing was read since. */
  #written: FileFacts | null = null;
  #identity = "";
  #transcript: Transcript | null = null;
  #anchor: EndAnchor | null = null;
  #staged: StagedLines | null = null;
  readonly #acknowledged: AcknowledgedRecords = new AcknowledgedRecords();
  #hasNews = false;
  /** Is true when another process wrote between this process's last two writes. */
  isShared = false;

  constructor(options: TranscriptFileOptions) {
    this.#options = options;
    this.#file = new AppendFile({
      files: options.files,
      marks: options.unflushed,
      sizeOf: () => this.#transcript?.endBytes ?? 0,
      flushName: (path, identity) => options.names.ensure(path, identity),
      onFlushFailed: () => this.forget(),
    });
  }

  /**
   * Returns the current image of the file, or null when the file does not exist. Only new bytes are read. An unchanged
   * file costs one system call for its facts, and one read of its known end. The first time, a long file is read only
   * from its last mark on.
   */
  refresh(look: TranscriptRequest): Transcript | null {
    try {
      return this.#refresh(look);
    } catch (error) {
      // The state of the file is uncertain.
      this.forget();
      throw fileError(error, look.path);
    }
  }

  #refresh(look: TranscriptRequest): Transcript | null {
    const { path } = look;
    const { files } = this.#options;
    const facts = files.facts(path);
    if (facts === null) {
      this.forget();
      return null;
    }
    if (this.#isAsWritten(facts, look)) return this.#transcript;
    if (facts.kind !== "file") throw notAFile(path);
    if (this.#identity !== facts.identity) this.forget();
    // Between the two calls another file may have taken the name, or an archive or purge may have removed it.
    const now = this.#file.isOpen ? pastWrite(this.#anchor, files, this.#file.handle, facts) : this.#file.open(path);
    if (now === null) return null;
    this.#file.path = path;
    if (this.#identity !== now.identity) this.#transcript = null;
    this.#identity = now.identity;
    const transcript = this.#readNew(now, look);
    this.facts = now;
    return transcript;
  }

  /** Tests whether nothing was written since this process wrote, which needs no read. */
  #isAsWritten(
    { identity, sizeBytes, modifiedNs }: FileFacts,
    { path, savedHead, isWhole }: TranscriptRequest,
  ): boolean {
    const [facts, known] = [this.#written, this.#transcript];
    return (
      facts !== null &&
      known !== null &&
      facts === this.facts &&
      facts.identity === identity &&
      facts.sizeBytes === sizeBytes &&
      facts.modifiedNs === modifiedNs &&
      this.#file.path === path &&
      known.savedHead === savedHead &&
      (isWhole !== true || known.base === null)
    );
  }

  /**
   * Reads new bytes of a file that grew. It works without the lock, so a file of the same size is left alone: a write
   * may be under way.
   */
  readAhead(look: TranscriptRequest): void {
    const facts = withFileErrors(look.path, () => this.#options.files.facts(look.path));
    const knownBytes = this.#transcript?.endBytes ?? Infinity;
    if (facts?.identity === this.#identity && facts.sizeBytes > knownBytes) this.refresh(look);
  }

  /** Takes an image that was read without a lock, unless the current one covers as much, or the file was replaced. */
  adopt({ facts, transcript, anchor }: ReadAside): void {
    const known = this.#transcript;
    const isKnown = known !== null && (known.base === null || transcript.base !== null);
    if (isKnown || (this.#identity !== "" && this.#identity !== facts.identity)) return;
    this.#identity = facts.identity;
    this.#transcript = transcript;
    this.#anchor = anchor;
    this.facts = facts;
    this.#options.findings.report(facts.identity, transcript, facts);
  }

  /** Moves bytes that were never acknowledged to a copy. Call it under the session's lock, right after `refresh`. */
  repairTail(path: string, owner: LineOwner): void {
    const { files, tornFolder } = this.#options;
    const transcript = this.#writable();
    this.settleDoubt();
    const { tail } = transcript;
    if (tail === null) return;
    const { handle } = this.#file;
    const { byteOffset: from, code } = tail;
    const torn = { handle, path, key: owner.ref.key, code, from, folder: tornFolder, nowMs: this.#options.nowMs() };
    const finding = this.#orForget(() => withFileErrors(path, () => setTailAside(files, torn)));
    transcript.tail = this.facts = null;
    this.#options.findings.say(this.#identity, owner, finding);
  }

  /**
   * Makes the next `commit` and flush include an earlier append, from one of its records on. Its process may have died
   * after a failed flush, so its state is unknown. Call it under the session's lock, after `refresh`.
   */
  settle(owner: LineOwner, fromSeq: number): void {
    const transcript = this.#writable();
    const from = Math.max(this.#file.flushedBytes, transcript.startOf(fromSeq));
    if (from < (this.#staged?.from ?? transcript.endBytes)) this.#file.suspect(from);
    this.settleDoubt();
    // Ends an open last line first. Otherwise, a torn write behind it would damage that line too.
    if (this.#writable().isOpenEnded) this.stage(owner, "", []);
  }

  /**
   * Stages lines for the next `commit`, and first ends a last line without a line feed. The image includes them at
   * once, so that the next append is planned on them. Call it under the session's lock, after `refresh` and
   * `repairTail`.
   */
  stage(owner: LineOwner, prefix: string, lines: readonly EncodedLine[]): void {
    const transcript = this.#writable();
    const { isOpenEnded } = transcript;
    this.#staged ??= { text: "", from: transcript.endBytes, isInPlace: true, owner };
    const staged = this.#staged;
    if (prefix !== "") staged.isInPlace = false;
    staged.text += isOpenEnded ? "\n" : prefix;
    // The line feed ends the line before, so it does not count for the staged lines.
    if (isOpenEnded) transcript.endBytes++;
    transcript.isOpenEnded = transcript.endsInHalf = false;
    let offset = transcript.endBytes;
    const written: WrittenLine[] = [];
    for (const { line, sizeBytes, text, stored } of lines) {
      const byteOffset = offset;
      offset += sizeBytes + 1;
      staged.text += `${line}\n`;
      written.push({ stored, text, byteOffset, endBytes: offset, line: 0 });
    }
    transcript.applyWritten(written);
  }

  /** Holds the current image of the file; null when it must be read. */
  get current(): Transcript | null {
    return this.#transcript;
  }

  get stagedLength(): number {
    return this.#staged?.text.length ?? 0;
  }

  /**
   * Writes the staged lines in one write. Returns false when the image was built again: positions and heads from
   * `stage` are then outdated. Call it while the lock of `stage` is still held. A failed write leaves no bytes, and
   * drops the image.
   */
  commit(path: string): boolean {
    const staged = this.#staged;
    this.#staged = null;
    if (staged === null) return true;
    this.isShared = this.#hasNews;
    this.#hasNews = false;
    const { files } = this.#options;
    const transcript = this.#writable();
    const bytes = Buffer.from(staged.text);
    try {
      this.#file.write(bytes, staged.from);
    } catch (error) {
      this.forget();
      throw error;
    }
    try {
      const facts = files.factsOf(this.#file.handle);
      const to = transcript.endBytes;
      // Another program may write without the lock. Its line may then precede these, or its file may have replaced this
      // one.
      if (!staged.isInPlace || facts.sizeBytes !== to || facts.names === 0) {
        this.#transcript = null;
        // The whole file is read, because the written lines may end with a mark. A read from that mark would skip their
        // records.
        this.refresh({ ...this.#lookAgain(path, staged.owner, transcript), isWhole: true });
        return false;
      }
      this.#anchor = { to, bytes: new Uint8Array(bytes.subarray(-anchorBytes)), modifiedNs: facts.modifiedNs };
      this.facts = this.#written = facts;
      return true;
    } catch (error) {
      throw outcomeUnknown(error, path);
    }
  }

  replace(path: string, temporary: string, owner: LineOwner, parts: Iterable<string | Uint8Array>): void {
    const look = this.#lookAgain(path, owner);
    this.rewrite(path, temporary, parts);
    if (afterCommit(path, () => this.refresh(look)) === null)
      throw fileError(new Error("the file is gone after it was replaced"), path, "unknown");
  }

  /** Replaces the whole file and flushes it. Call it under the session's lock. */
  rewrite(path: string, temporary: string, parts: Iterable<string | Uint8Array>): void {
    // After a failure the open file may have lost its name too.
    this.#orForget(() => replaceFile(this.#options.files, temporary, path, (append) => gather(parts, append)));
    this.forget();
  }

  /** Resolves when everything written so far is on the disk, even if this file is closed meanwhile. */
  async flushed(): Promise<void> {
    this.#writable();
    await this.#file.flushed();
  }

  /** Does the same as `flushed`, synchronously, and includes bytes that others wrote without a flush. */
  flushNow(): void {
    this.#writable();
    this.settleDoubt();
    this.#file.flushNow();
  }

  get isPinned(): boolean {
    return this.#file.isPinned;
  }

  get flushedRecords(): FlushedRecords {
    const seq = this.#transcript?.seqBefore(this.#file.flushedBytes) ?? 0;
    return { identity: this.#identity, seq };
  }

  readBytes(path: string, from: number, to: number): Uint8Array {
    const { handle } = this.#file;
    return withFileErrors(path, () => readRange(this.#options.files, handle, from, to));
  }

  lines(path: string, span: LineSpan): Iterable<readonly FramedLine[]> {
    const { files, maxLineBytes } = this.#options;
    return framedLines({ files, handle: this.#file.handle, path, maxLineBytes, ...span });
  }

  forget(): void {
    this.#identity = "";
    this.#transcript = null;
    this.#staged = null;
    this.#anchor = null;
    this.facts = null;
    this.#file.close();
  }

  /** Drops the image when the work fails, because the state of the file is then uncertain. */
  #orForget<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  #writable(): Transcript {
    if (!this.#file.isOpen || this.#transcript === null)
      throw refused("INTERNAL", "A transcript was written before it was read.");
    this.#file.assertWritable();
    return this.#transcript;
  }

  /** Writes again what a failed flush may have lost. */
  settleDoubt(): void {
    if (this.#file.isOpen && this.#file.settle()) this.facts = null;
  }

  #lookAgain(path: string, owner: LineOwner, known: Transcript | null = this.#transcript): TranscriptRequest {
    return { path, owner, savedHead: known?.savedHead ?? null, revision: known?.highestRevision ?? 0 };
  }

  /** Loads the positions of the records from `seq` on. Returns false when that needs the whole file. */
  reach(seq: number): boolean {
    const known = this.#transcript;
    if (known === null || !this.#file.isOpen || seq >= known.firstSeq) return true;
    return withFileErrors(known.options.path, () => reachBack(this.#options.files, this.#file.handle, known, seq));
  }

  #readNew(facts: FileFacts, look: TranscriptRequest): Transcript {
    const { files } = this.#options;
    const { handle } = this.#file;
    const known = this.#transcript;
    const isSame =
      known !== null &&
      facts.sizeBytes >= known.endBytes &&
      (look.isWhole !== true || known.base === null) &&
      known.acceptSavedHead(look.savedHead) &&
      this.#anchor?.to === known.endBytes &&
      holdsAnchor(this.#anchor, files, handle, facts);
    if (!isSame) return this.#scanAll(facts, look);
    if (facts.sizeBytes === known.endBytes) return known;
    this.#hasNews = true;
    if (known.isOpenEnded) {
      // If text was appended to the open line, it differs from the line that was read, so the file is read again.
      if (readRange(files, handle, known.endBytes, known.endBytes + 1)[0] !== 0x0a) return this.#scanAll(facts, look);
      known.endBytes += 1;
      known.isOpenEnded = false;
    }
    return this.#scan(facts, known) ? known : this.#scanAll(facts, look, true);
  }

  #scanAll(facts: FileFacts, look: TranscriptRequest, isMixed = false): Transcript {
    const { files, codec, nowMs, warm, maxLineBytes } = this.#options;
    const { path, owner, savedHead } = look;
    const acknowledgedSeq = this.#acknowledged.before(facts.identity, this.#transcript, look);
    const scan = { files, handle: this.#file.handle, sizeBytes: facts.sizeBytes };
    const base = isMixed ? null : findBase(scan, facts, look);
    const options = { owner, codec, path, warm, nowMs, maxLineBytes, isMixed, acknowledgedSeq };
    const transcript = new Transcript(options, savedHead, base);
    if (!this.#scan(facts, transcript)) return this.#scanAll(facts, look, true);
    this.#transcript = transcript;
    return transcript;
  }

  /** Returns false when the file contains lines of other programs, and must be read again with the foreign reader. */
  #scan(facts: FileFacts, transcript: Transcript): boolean {
    const { files, maxLineBytes } = this.#options;
    const { handle } = this.#file;
    const { path } = transcript.options;
    const span = { from: transcript.endBytes, to: facts.sizeBytes };
    transcript.beginScan();
    // A writer that takes turns with others seldom reads their lines, which would be kept in memory for a second.
    transcript.keepsLines = !this.isShared;
    for (const lines of framedLines({ files, handle, path, ...span, maxLineBytes }))
      if (!transcript.feed(lines)) return false;
    transcript.finishScan(() => files.factsOf(handle).sizeBytes > facts.sizeBytes);
    this.#anchor = readAnchor(files, handle, transcript.endBytes, facts);
    this.#options.findings.report(this.#identity, transcript, facts);
    return true;
  }
}

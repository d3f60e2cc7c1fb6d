import { refused } from "@throughline/core/internal";
import { AppendFile } from "./append-file.ts";
import { EndAnchor, pastWrite } from "./end-anchor.ts";
import { afterCommit, fileError, gather, notAFile, readRange, replaceFile, withFileErrors } from "./file-work.ts";
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
  type TranscriptLook,
  type TranscriptReading,
} from "./read-transcript.ts";
import type { TranscriptFindings } from "./transcript-findings.ts";
import type { UnflushedMarks } from "./unflushed-marks.ts";
import type { FlushedNames } from "./flushed-names.ts";
import { Transcript, type WrittenLine } from "./transcript.ts";

export interface TranscriptFileOptions extends TranscriptReading {
  readonly findings: TranscriptFindings;
  /** Of the folder the transcript is in. */
  readonly names: FlushedNames;
  readonly unflushed: UnflushedMarks;
  /** Where bytes go that were never acknowledged. */
  readonly tornFolder: string;
}

/** Lines on their way to the file, which the image holds already. */
interface StagedLines {
  text: string;
  /** Where the file ended before them. */
  readonly from: number;
  /** Whether their places in the image are those they will have in the file. */
  isInPlace: boolean;
  /** What was known of the session without them. */
  readonly look: TranscriptLook;
}

/** One session's file: keeps the image of it up to date, and appends to it. Everything but the flush is synchronous. */
export class TranscriptFile {
  readonly #options: TranscriptFileOptions;
  readonly #file: AppendFile;
  /** What the file was when the image was made of it or written; null when it is to be found out. */
  facts: FileFacts | null = null;
  #identity = "";
  #transcript: Transcript | null = null;
  #anchor: EndAnchor | null = null;
  #staged: StagedLines | null = null;
  readonly #acknowledged: AcknowledgedRecords = new AcknowledgedRecords();
  /** Others have written since the last write of this process. */
  #hasNews = false;
  /** Others wrote between the last two writes of this process. */
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
   * The image of the file as it is now; null when there is no such file. Reads only what is new. One look, at identity,
   * size and time, and one read, of the end that was understood: a file that is what it was costs no more. Of a long
   * file that is looked at for the first time only what follows the last mark is read.
   */
  catchUp(look: TranscriptLook): Transcript | null {
    const { path } = look;
    const { files } = this.#options;
    const facts = withFileErrors(path, () => files.facts(path));
    if (facts === null) {
      this.forget();
      return null;
    }
    if (facts.kind !== "file") throw notAFile(path);
    if (this.#identity !== facts.identity) this.forget();
    // Between the look and this another file may have taken the name, or, when it was archived or purged, none has it.
    const now = this.#file.isOpen ? pastWrite(this.#anchor, files, this.#file.handle, facts) : this.#file.open(path);
    if (now === null) return null;
    this.#file.path = path;
    if (this.#identity !== now.identity) this.#transcript = null;
    this.#identity = now.identity;
    const transcript = this.#orForget(() => withFileErrors(path, () => this.#readNew(now, look)));
    this.facts = now;
    return transcript;
  }

  /** Reads what is new of a file that grew. Without its lock: one that did not grow may be in the middle of a write. */
  readAhead(look: TranscriptLook): void {
    const facts = withFileErrors(look.path, () => this.#options.files.facts(look.path));
    const knownBytes = this.#transcript?.endBytes ?? Infinity;
    if (facts?.identity === this.#identity && facts.sizeBytes > knownBytes) this.catchUp(look);
  }

  /** Takes what was read of the file with nothing locked, unless as much of it is known by now, or it is another file. */
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

  /** Moves what was never acknowledged to a copy. Under the session's lock, right after `catchUp`. */
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
   * after a failed flush, so that its state is unknown. Under the session's lock, after `catchUp`.
   */
  settle(path: string, owner: LineOwner, fromSeq: number): void {
    const transcript = this.#writable();
    const from = Math.max(this.#file.flushedBytes, transcript.startOf(fromSeq));
    if (from < (this.#staged?.from ?? transcript.endBytes)) this.#file.suspect(from);
    this.settleDoubt();
    // A torn write behind a last line without its end would take that along.
    if (this.#writable().isOpenEnded) this.stage(path, owner, "", []);
  }

  /**
   * Takes lines to be written by the next `commit`, a last line without an end being ended first. The image holds them
   * from now on, so that whoever comes next is decided by them. Under the session's lock, after `catchUp` and `repairTail`.
   */
  stage(path: string, owner: LineOwner, prefix: string, lines: readonly EncodedLine[]): void {
    const transcript = this.#writable();
    const { isOpenEnded } = transcript;
    this.#staged ??= { text: "", from: transcript.endBytes, isInPlace: true, look: this.#lookAgain(path, owner) };
    const staged = this.#staged;
    if (prefix !== "") staged.isInPlace = false;
    staged.text += isOpenEnded ? "\n" : prefix;
    // Its line feed belongs to the line before.
    if (isOpenEnded) transcript.endBytes++;
    transcript.isOpenEnded = transcript.endsInHalf = false;
    let offset = transcript.endBytes;
    const written = lines.map(({ line, sizeBytes, text, stored }): WrittenLine => {
      const byteOffset = offset;
      offset += sizeBytes + 1;
      staged.text += `${line}\n`;
      return { stored, text, byteOffset, endBytes: offset, line: 0 };
    });
    transcript.applyWritten(written);
  }

  /** How much waits for `commit`, in UTF-16 units. */
  get stagedLength(): number {
    return this.#staged?.text.length ?? 0;
  }

  /**
   * Writes what was staged, in one write. False if the image had to be built again: then look up places and heads of
   * `stage` again. In the same hold of the lock. A write that fails leaves nothing and forgets the image.
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
    return afterCommit(path, () => {
      const facts = files.factsOf(this.#file.handle);
      const to = transcript.endBytes;
      // Another program may write without our lock: then its line is in between, or this file has lost its name to another.
      if (!staged.isInPlace || facts.sizeBytes !== to || facts.names === 0) {
        this.#transcript = null;
        // The whole: what was written may end with a mark, and then its records lie before where reading could begin.
        this.catchUp({ ...staged.look, isWhole: true });
        return false;
      }
      this.#anchor = EndAnchor.written(bytes, to, facts);
      this.facts = facts;
      return true;
    });
  }

  /** As `rewrite`, and reads what is there now. */
  replace(path: string, temporary: string, owner: LineOwner, parts: Iterable<string | Uint8Array>): void {
    const look = this.#lookAgain(path, owner);
    this.rewrite(path, temporary, parts);
    if (afterCommit(path, () => this.catchUp(look)) === null)
      throw fileError(new Error("the file is gone after it was replaced"), path, "unknown");
  }

  /** Puts other text in the place of the whole file, durably. Under the session's lock. */
  rewrite(path: string, temporary: string, parts: Iterable<string | Uint8Array>): void {
    // Where it fails the file that is open may have lost its name, too.
    this.#orForget(() => replaceFile(this.#options.files, temporary, path, (append) => gather(parts, append)));
    this.forget();
  }

  /** Resolves when what was written so far is on the disk, whatever becomes of this file meanwhile. */
  async flushed(): Promise<void> {
    this.#writable();
    await this.#file.flushed();
  }

  /** As `flushed`, at once, for a file that was written with less: also of what others wrote. */
  flushNow(): void {
    this.#writable();
    this.settleDoubt();
    this.#file.flushNow();
  }

  get isPinned(): boolean {
    return this.#file.isPinned;
  }

  /** The image as it is after what was read or written last; looks at nothing. */
  get current(): Transcript | null {
    return this.#transcript;
  }

  /** What this process has put on the disk. */
  get flushedRecords(): FlushedRecords {
    const seq = this.#transcript?.seqBefore(this.#file.flushedBytes) ?? 0;
    return { identity: this.#identity, seq };
  }

  /** The bytes from one place to another, as they are now. */
  readBytes(path: string, from: number, to: number): Uint8Array {
    const { handle } = this.#file;
    return withFileErrors(path, () => readRange(this.#options.files, handle, from, to));
  }

  /** The lines of a span, as they are now, in pieces that are read at once. */
  lines(path: string, span: LineSpan): Iterable<readonly FramedLine[]> {
    const { files, maxLineBytes } = this.#options;
    return framedLines({ files, handle: this.#file.handle, path, maxLineBytes, ...span });
  }

  /** Lets go of the file; the next use opens and reads it again. */
  forget(): void {
    this.#identity = "";
    this.#transcript = null;
    this.#staged = null;
    this.#anchor = null;
    this.facts = null;
    this.#file.close();
  }

  /** Work after whose failure nobody knows what the file is. */
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

  /** Puts on the disk what a failed flush may have left out. */
  settleDoubt(): void {
    if (this.#file.isOpen && this.#file.settle()) this.facts = null;
  }

  #lookAgain(path: string, owner: LineOwner): TranscriptLook {
    const known = this.#transcript;
    return { path, owner, savedHead: known?.savedHead ?? null, revision: known?.highestRevision ?? 0 };
  }

  /** Makes the places of records from `seq` on known. False when that takes the whole file. */
  reach(seq: number): boolean {
    const known = this.#transcript;
    if (known === null || !this.#file.isOpen || seq >= known.firstSeq) return true;
    return withFileErrors(known.options.path, () => reachBack(this.#options.files, this.#file.handle, known, seq));
  }

  #readNew(facts: FileFacts, look: TranscriptLook): Transcript {
    const { files } = this.#options;
    const { handle } = this.#file;
    const known = this.#transcript;
    const isSame =
      known !== null &&
      facts.sizeBytes >= known.endBytes &&
      (look.isWhole !== true || known.base === null) &&
      known.acceptSavedHead(look.savedHead) &&
      this.#anchor?.to === known.endBytes &&
      this.#anchor.holds(files, handle, facts);
    if (!isSame) return this.#scanAll(facts, look);
    if (facts.sizeBytes === known.endBytes) return known;
    this.#hasNews = true;
    if (known.isOpenEnded) {
      // The line without an end was ended, or something was glued to it: then it is another line than the one we read.
      if (readRange(files, handle, known.endBytes, known.endBytes + 1)[0] !== 0x0a) return this.#scanAll(facts, look);
      known.endBytes += 1;
      known.isOpenEnded = false;
    }
    return this.#scan(facts, known) ? known : this.#scanAll(facts, look, true);
  }

  #scanAll(facts: FileFacts, look: TranscriptLook, isMixed = false): Transcript {
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

  /** False when the file turned out to hold lines of other programs and must be read with that in mind. */
  #scan(facts: FileFacts, transcript: Transcript): boolean {
    const { files, maxLineBytes } = this.#options;
    const { handle } = this.#file;
    const { path } = transcript.options;
    const span = { from: transcript.endBytes, to: facts.sizeBytes };
    transcript.beginScan();
    // Who writes here in turn with others mostly does not read what they wrote, and it would be held for a second.
    transcript.keepsLines = !this.isShared;
    for (const lines of framedLines({ files, handle, path, ...span, maxLineBytes }))
      if (!transcript.feed(lines)) return false;
    transcript.finishScan(() => files.factsOf(handle).sizeBytes > facts.sizeBytes);
    this.#anchor = EndAnchor.read(files, handle, transcript.endBytes, facts);
    this.#options.findings.report(this.#identity, transcript, facts);
    return true;
  }
}

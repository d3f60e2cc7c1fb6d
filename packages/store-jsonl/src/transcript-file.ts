import { ThroughlineError } from "@throughline/core";
import { quote, refused } from "@throughline/core/store";
import { Doubt } from "./doubtful-bytes.ts";
import { EndAnchor, pastWrite } from "./end-anchor.ts";
import {
  afterCommit,
  appendAll,
  factsOfOpened,
  fileError,
  gather,
  notAFile,
  readRange,
  replaceFile,
  withFileErrors,
} from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import type { FlushedRecords } from "./flushed-seqs.ts";
import { framedLines, type FramedLine, type LineSpan } from "./framed-lines.ts";
import { createOpenFile, flushOpenNow, openToAppend, type OpenFile } from "./open-file.ts";
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
  #open: OpenFile | null = null;
  /** What the file was when the image was made of it or written; null when it is to be found out. */
  facts: FileFacts | null = null;
  #identity = "";
  #transcript: Transcript | null = null;
  #anchor: EndAnchor | null = null;
  readonly #doubt: Doubt;
  #staged: StagedLines | null = null;
  readonly #acknowledged: AcknowledgedRecords = new AcknowledgedRecords();
  /** Others have written since the last write of this process. */
  #hasNews = false;
  /** Others wrote between the last two writes of this process. */
  isShared = false;

  constructor(options: TranscriptFileOptions) {
    this.#options = options;
    this.#doubt = new Doubt(options.files, options.unflushed);
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
    const now = this.#open === null ? this.#openFile(path) : pastWrite(this.#anchor, files, this.#open.handle, facts);
    if (now === null) return null;
    if (this.#identity !== now.identity) this.#transcript = null;
    this.#identity = now.identity;
    const transcript = withFileErrors(path, () => this.#readNew(this.#opened(), now, look));
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
    const { transcript, handle } = this.#writable(path);
    this.settleDoubt(path);
    const { tail } = transcript;
    if (tail === null) return;
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
    const { open, transcript } = this.#writable(path);
    const from = Math.max(open.flushedBytes, transcript.startOf(fromSeq));
    if (from < (this.#staged?.from ?? transcript.endBytes)) this.#doubt.suspect(this.#identity, from);
    this.settleDoubt(path);
    // A torn write behind a last line without its end would take that along.
    if (this.#writable(path).transcript.isOpenEnded) this.stage(path, owner, "", []);
  }

  /**
   * Takes lines to be written by the next `commit`, a last line without an end being ended first. The image holds them
   * from now on, so that whoever comes next is decided by them. Under the session's lock, after `catchUp` and `repairTail`.
   */
  stage(path: string, owner: LineOwner, prefix: string, lines: readonly EncodedLine[]): void {
    const { transcript } = this.#writable(path);
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
    const { transcript, handle } = this.#writable(path);
    const bytes = Buffer.from(staged.text);
    this.#orForget(() => appendAll(files, handle, bytes, staged.from, path));
    return afterCommit(path, () => {
      const facts = files.factsOf(handle);
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

  /**
   * Resolves when what was written so far is on the disk. The file stays open until then: it may be let go of or
   * replaced meanwhile.
   */
  async flushed(path: string): Promise<void> {
    const { open } = this.#writable(path);
    const identity = this.#identity;
    open.pins++;
    try {
      await open.flush.flushed();
    } catch (error) {
      // The first place in doubt counts, should another flush have failed before.
      this.#doubt.note(identity, open.flushedBytes);
      if (this.#open === open) this.forget();
      throw fileError(error, path, "unknown");
    } finally {
      open.pins--;
      this.#closeUnused(open);
    }
  }

  /** As `flushed`, at once, for a file that was written with less: also of what others wrote. */
  flushNow(path: string): void {
    const { files } = this.#options;
    const { open, transcript } = this.#writable(path);
    this.settleDoubt(path);
    try {
      flushOpenNow(files, open, transcript.endBytes);
    } catch (error) {
      this.#doubt.note(this.#identity, 0);
      this.forget();
      throw fileError(error, path);
    }
  }

  /** A flush uses it, or one has failed, and nobody else knows of that. */
  get isPinned(): boolean {
    return this.#doubt.isThere || (this.#open !== null && this.#open.pins > 0);
  }

  /** The image as it is after what was read or written last; looks at nothing. */
  get current(): Transcript | null {
    return this.#transcript;
  }

  /** What this process has put on the disk. */
  get flushedRecords(): FlushedRecords {
    const seq = this.#open === null ? 0 : (this.#transcript?.seqBefore(this.#open.flushedBytes) ?? 0);
    return { identity: this.#identity, seq };
  }

  /** The bytes from one place to another, as they are now. */
  readBytes(path: string, from: number, to: number): Uint8Array {
    const { handle } = this.#opened();
    return withFileErrors(path, () => readRange(this.#options.files, handle, from, to));
  }

  /** The lines of a span, as they are now, in pieces that are read at once. */
  lines(path: string, span: LineSpan): Iterable<readonly FramedLine[]> {
    const { files, maxLineBytes } = this.#options;
    return framedLines({ files, handle: this.#opened().handle, path, maxLineBytes, ...span });
  }

  #opened(): OpenFile {
    if (this.#open === null) throw new ThroughlineError("INTERNAL", "A transcript was read before it was opened.");
    return this.#open;
  }

  /** Lets go of the file; the next use opens and reads it again. */
  forget(): void {
    const open = this.#open;
    this.#open = null;
    this.#identity = "";
    this.#transcript = null;
    this.#staged = null;
    this.#anchor = null;
    this.facts = null;
    if (open === null) return;
    open.isForgotten = true;
    this.#closeUnused(open);
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

  /** A handle's number must not go to another file while a flush still uses it. */
  #closeUnused(open: OpenFile): void {
    if (!open.isForgotten || open.pins > 0) return;
    open.isForgotten = false;
    this.#options.files.close(open.handle);
  }

  #writable(path: string): { readonly transcript: Transcript; readonly handle: number; readonly open: OpenFile } {
    if (this.#open === null || this.#transcript === null)
      throw refused("INTERNAL", "A transcript was written before it was read.");
    if (!this.#open.isWritable) throw refused("STORE_READ_ONLY", `${quote(path)} cannot be written.`, { path });
    return { transcript: this.#transcript, handle: this.#open.handle, open: this.#open };
  }

  settleDoubt(path: string): void {
    if (this.#identity !== "" && this.#doubt.settle(path, this.#identity)) this.facts = null;
  }

  #lookAgain(path: string, owner: LineOwner): TranscriptLook {
    const known = this.#transcript;
    return { path, owner, savedHead: known?.savedHead ?? null, revision: known?.highestRevision ?? 0 };
  }

  /** Makes the places of records from `seq` on known. False when that takes the whole file. */
  reach(seq: number): boolean {
    const [known, open] = [this.#transcript, this.#open];
    if (known === null || open === null || seq >= known.firstSeq) return true;
    return withFileErrors(known.options.path, () => reachBack(this.#options.files, open.handle, known, seq));
  }

  #openFile(path: string): FileFacts | null {
    const { files } = this.#options;
    const opened = openToAppend(files, path);
    if (opened === null) return null;
    const { handle, isWritable } = opened;
    const facts = withFileErrors(path, () => factsOfOpened(files, handle));
    const { identity } = facts;
    const sizeOf = (): number => this.#transcript?.endBytes ?? 0;
    const flushName = (): void => this.#options.names.ensure(path, identity);
    this.#open = createOpenFile(files, handle, { isWritable, sizeOf, flushName });
    return facts;
  }

  #readNew(open: OpenFile, facts: FileFacts, look: TranscriptLook): Transcript {
    const { files } = this.#options;
    const known = this.#transcript;
    const isSame =
      known !== null &&
      facts.sizeBytes >= known.endBytes &&
      (look.isWhole !== true || known.base === null) &&
      known.acceptSavedHead(look.savedHead) &&
      this.#anchor?.to === known.endBytes &&
      this.#anchor.holds(files, open.handle, facts);
    if (!isSame) return this.#scanAll(open, facts, look);
    if (facts.sizeBytes === known.endBytes) return known;
    this.#hasNews = true;
    if (known.isOpenEnded) {
      // The line without an end was ended, or something was glued to it: then it is another line than the one we read.
      if (readRange(files, open.handle, known.endBytes, known.endBytes + 1)[0] !== 0x0a)
        return this.#scanAll(open, facts, look);
      known.endBytes += 1;
      known.isOpenEnded = false;
    }
    return this.#scan(open, facts, known) ? known : this.#scanAll(open, facts, look, true);
  }

  #scanAll(open: OpenFile, facts: FileFacts, look: TranscriptLook, isMixed = false): Transcript {
    const { files, codec, nowMs, warm, maxLineBytes } = this.#options;
    const { path, owner, savedHead } = look;
    const acknowledgedSeq = this.#acknowledged.before(facts.identity, this.#transcript, look);
    const scan = { files, handle: open.handle, sizeBytes: facts.sizeBytes };
    const base = isMixed ? null : findBase(scan, facts, look);
    const options = { owner, codec, path, warm, nowMs, maxLineBytes, isMixed, acknowledgedSeq };
    const transcript = new Transcript(options, savedHead, base);
    if (!this.#scan(open, facts, transcript)) return this.#scanAll(open, facts, look, true);
    this.#transcript = transcript;
    return transcript;
  }

  /** False when the file turned out to hold lines of other programs and must be read with that in mind. */
  #scan(open: OpenFile, facts: FileFacts, transcript: Transcript): boolean {
    const { files, maxLineBytes } = this.#options;
    const { path } = transcript.options;
    const span = { from: transcript.endBytes, to: facts.sizeBytes };
    transcript.beginScan();
    // Who writes here in turn with others mostly does not read what they wrote, and it would be held for a second.
    transcript.keepsLines = !this.isShared;
    for (const lines of framedLines({ files, handle: open.handle, path, ...span, maxLineBytes }))
      if (!transcript.feed(lines)) return false;
    transcript.finishScan(() => files.factsOf(open.handle).sizeBytes > facts.sizeBytes);
    this.#anchor = EndAnchor.read(files, open.handle, transcript.endBytes, facts);
    this.#options.findings.report(this.#identity, transcript, facts);
    return true;
  }
}

import { createFinding, refused } from "@throughline/core/internal";
import type { Finding, SessionRecord, SessionRef, SessionState } from "@throughline/core";
import { agentFolder, agentFolderExists, makeAgentFolder } from "./agent-folder.ts";
import type { AgentAddress, AgentFolder } from "./agent-folder.ts";
import { AgentLocation } from "./agent-location.ts";
import { createMirror } from "./create-mirror.ts";
import { ownHead, type OpenTranscript } from "./open-transcript.ts";
import { EntriesLog } from "./entries-log.ts";
import { flushFolders, withFileErrors } from "./file-work.ts";
import type { AdoptionPort } from "./adoption.ts";
import type { FileFacts } from "./files.ts";
import { FlushedNames } from "./flushed-names.ts";
import { TranscriptPool } from "./transcript-pool.ts";
import { PartialFiles } from "./partial-files.ts";
import { EntryRedo } from "./redo.ts";
import { minAsideBytes, readAside, type TranscriptRequest } from "./read-transcript.ts";
import { SessionIndex } from "./session-index.ts";
import { entryOf } from "./undecodable-entry.ts";
import { fileNamesOf, type SessionSnapshot, type SessionRow } from "./session-row.ts";
import { StoredFiles } from "./stored-files.ts";
import type { SessionsMirror } from "./sessions-mirror.ts";
import type { StoreContext } from "./store-context.ts";
import type { LineOwner } from "./stored-line.ts";
import type { TranscriptFile, TranscriptFileOptions } from "./transcript-file.ts";
import type { TranscriptBase } from "./store-envelope.ts";
import { fingerprintOf, TranscriptSummaries } from "./transcript-summaries.ts";
import { maxKeptPatches, type Transcript } from "./transcript.ts";
import { TranscriptFindings, unreadableFinding } from "./transcript-findings.ts";
import { UnflushedMarks } from "./unflushed-marks.ts";
import { VectorsFile } from "./vectors-file.ts";
import { WarmLines } from "./warm-lines.ts";

export interface AgentOptions {
  readonly onPending: () => void;
  /** Creates the handling of other programs. `said` holds reported findings, so that both classes report each once. */
  readonly adoption: (agent: AgentSessionFiles, said: Set<string>) => AdoptionPort;
  /** Reads the records of a session of the agent. */
  readonly records: (ref: SessionRef, afterSeq: number) => AsyncIterable<readonly SessionRecord[]>;
}

export class AgentSessionFiles {
  readonly folder: AgentFolder;
  readonly location: AgentLocation;
  readonly log: EntriesLog;
  readonly mirror: SessionsMirror;
  readonly index: SessionIndex;
  readonly adoption: AdoptionPort;
  readonly redo: EntryRedo;
  readonly partials: PartialFiles;
  readonly names: FlushedNames;
  readonly stored: StoredFiles;
  readonly vectors: VectorsFile;
  readonly #context: StoreContext;
  readonly address: AgentAddress;
  readonly #files: TranscriptPool;
  readonly #summaries: TranscriptSummaries;
  /** Holds reported findings, so that refreshes do not report them again. */
  readonly #said: Set<string> = new Set();
  readonly #findings: TranscriptFindings;
  readonly #warm: WarmLines = new WarmLines();
  readonly #fileOptions: TranscriptFileOptions;
  /** Holds the running reads of `prepare` by session and extent, so that callers share them. */
  readonly #preparing: Map<string, Promise<void>> = new Map();
  #isPrepared = false;
  #isAdopted = false;

  constructor(
    context: StoreContext,
    { namespace, agentId }: AgentAddress,
    { onPending, adoption, records }: AgentOptions,
  ) {
    this.#context = context;
    this.address = { namespace, agentId };
    this.folder = agentFolder(context.root, this.address);
    this.location = new AgentLocation(context, this.folder);
    const { files, codec, clock } = context;
    const onFinding = (finding: Finding): void => context.emit({ name: "finding", ref: null, finding });
    this.names = new FlushedNames(files, this.folder.sessions);
    this.partials = new PartialFiles(files, this.folder, codec);
    const unflushed = new UnflushedMarks(files, this.folder);
    this.#findings = new TranscriptFindings(this.#said, ({ ref }, finding) =>
      context.emit({ name: "finding", ref, finding }),
    );
    this.#fileOptions = {
      files,
      codec,
      nowMs: () => clock.nowMs(),
      findings: this.#findings,
      warm: this.#warm,
      names: this.names,
      unflushed,
      maxLineBytes: context.maxLineBytes,
      tornFolder: this.folder.torn,
    };
    this.#files = new TranscriptPool(this.#fileOptions, (...closed) => this.#keepSummary(...closed));
    // SQLite's write-ahead log needs memory that only processes of one host share.
    const isWanted = (): boolean => context.keepsIndex && !this.location.isRemote;
    this.index = new SessionIndex({ files, isWanted, folder: this.folder, agent: this.address, codec, onFinding });
    this.vectors = new VectorsFile({ files, folder: this.folder, isWanted, clock, onFinding });
    this.redo = new EntryRedo({
      coder: codec.coder,
      refOf: (row) => this.#ownerOf(row).ref,
      onPending: () => void (files.isWritable(this.folder.own) && onPending()),
    });
    this.#summaries = new TranscriptSummaries({
      files,
      folder: this.folder,
      index: this.index,
      redo: this.redo,
      open: (row) => this.open(row)?.transcript ?? null,
      opened: (sessionId) => this.#files.peek(sessionId)?.current ?? null,
      isIndexed: (row) => this.log.isIndexed && !this.log.unindexed.has(row.sessionId),
    });
    this.log = new EntriesLog({
      ...context,
      folder: this.folder,
      agent: this.address,
      index: this.index,
      unflushed,
      nowMs: () => clock.nowMs(),
      onFinding,
    });
    this.mirror = createMirror(context, this.folder, onFinding);
    this.adoption = adoption(this, this.#said);
    this.stored = new StoredFiles(context, this, (row, afterSeq) => records(this.refOf(row), afterSeq));
  }

  get exists(): boolean {
    return agentFolderExists(this.#context.files, this.#context.root, this.address);
  }

  /** Returns the row of an address, including a session that another program has just created, or null. */
  async locate(ref: SessionRef): Promise<SessionRow | null> {
    const isFirst = !this.#isAdopted;
    if (isFirst) await this.adopt();
    this.log.refresh();
    const known = this.log.find(ref.key, ref.archiveId);
    if (known !== null || isFirst || !this.exists) return known;
    await this.adoption.adopt();
    return this.log.find(ref.key, ref.archiveId);
  }

  /** Takes over, once per handle, what other programs left before. */
  async adopt(): Promise<void> {
    if (this.exists) await this.adoption.adopt();
    this.#isAdopted = true;
  }

  /** Returns the last known active session of the address. A writer must check it again under the lock. */
  peek(ref: SessionRef): SessionRow | null {
    return ref.archiveId === undefined && this.#isAdopted ? this.log.find(ref.key, undefined) : null;
  }

  /** Finds the session by id, because its key may have changed since. */
  locateId(sessionId: string): SessionRow | null {
    this.log.refresh();
    return this.log.row(sessionId);
  }

  refOf(row: SessionRow): SessionRef {
    const ref = { ...this.address, key: row.key };
    return row.isArchived ? { ...ref, archiveId: row.sessionId } : ref;
  }

  /** Reads a long transcript with pauses before `open` needs it; returns null if no read is necessary. */
  prepare(row: SessionRow, isWhole: boolean = false): Promise<void> | null {
    const known = this.#files.peek(row.sessionId)?.current ?? null;
    if (known !== null && (!isWhole || known.base === null)) return null;
    const name = `${row.sessionId} ${isWhole}`;
    const running = this.#preparing.get(name);
    if (running !== undefined) return running;
    const present = withFileErrors(this.folder.sessions, () => this.#presentFile(row));
    if (present === null || present.facts.sizeBytes < minAsideBytes) return null;
    const begun = this.#readAside(row, this.folder.session(present.name), isWhole).finally(() =>
      this.#preparing.delete(name),
    );
    this.#preparing.set(name, begun);
    return begun;
  }

  async #readAside(row: SessionRow, path: string, isWhole: boolean): Promise<void> {
    const file = this.#files.of(row.sessionId);
    const read = await readAside(this.#fileOptions, this.#lookAt(row, path, isWhole));
    if (read !== null && this.#files.peek(row.sessionId) === file) file.adopt(read);
  }

  /** Returns the last seq that the index or the saved head proves as acknowledged. `identity` is that of the file. */
  acknowledgedSeq({ sessionId, savedHead }: SessionRow, identity: string): number {
    return Math.max(savedHead?.lastSeq ?? 0, this.index.flushed((seqs) => seqs.of(sessionId, identity)) ?? 0);
  }

  #lookAt(row: SessionRow, path: string, isWhole: boolean): TranscriptRequest {
    const { savedHead = null, revision } = row;
    const indexed = (facts: FileFacts): Omit<TranscriptBase, "endBytes"> | null =>
      this.#summaries.baseOf(row, fingerprintOf(facts, row));
    const acknowledgedSeq = (identity: string): number => this.acknowledgedSeq(row, identity);
    return { path, owner: this.#ownerOf(row), savedHead, revision, indexed, isWhole, acknowledgedSeq };
  }

  /** Opens the session with its file, up to date; returns null when the file is gone. `isWhole` reads every record. */
  open(row: SessionRow, isWhole: boolean = false): OpenTranscript | null {
    const held = this.#openAs(row, row.fileName, isWhole);
    return held ?? this.#openRenamed(row, isWhole);
  }

  /** Opens a session whose file has its former name, or that another process has renamed since the row was read. */
  #openRenamed(row: SessionRow, isWhole: boolean): OpenTranscript | null {
    const { formerFileName } = row;
    const former = formerFileName === undefined ? null : this.#openAs(row, formerFileName, isWhole);
    if (former !== null) return former;
    this.log.refresh();
    const now = this.log.row(row.sessionId);
    for (const name of now === null ? [] : fileNamesOf(now)) {
      const held = now === null ? null : this.#openAs(now, name, isWhole);
      if (held !== null) return held;
    }
    this.#reportMissing(row);
    return null;
  }

  #openAs(row: SessionRow, fileName: string, isWhole: boolean): OpenTranscript | null {
    const file = this.#files.of(row.sessionId);
    const path = this.folder.session(fileName);
    const look = this.#lookAt(row, path, isWhole);
    const transcript = file.refresh(look);
    if (transcript === null) return null;
    if (transcript.patches.length >= maxKeptPatches) transcript.forgetPatches(row.revision);
    return {
      row: this.#fold(row, transcript),
      ref: row.isArchived ? this.refOf(row) : look.owner.ref,
      owner: look.owner,
      file,
      path,
      transcript,
    };
  }

  #keepSummary(sessionId: string, { current, facts }: TranscriptFile): void {
    const row = this.log.row(sessionId);
    if (row !== null && current !== null) this.#summaries.remember(row, current, facts);
  }

  /** Applies what the transcript adds to the row. Mostly that is the time of its last line. */
  #fold(row: SessionRow, transcript: Transcript): SessionRow {
    const { highestRevision, updatedAtMs } = transcript;
    if (highestRevision > row.revision) return this.#summaries.fold(row, transcript);
    return updatedAtMs > row.updatedAtMs ? { ...row, updatedAtMs } : row;
  }

  /** Reads what other processes appended to a shared session, to shorten the read under its lock. */
  readAhead(row: SessionRow): void {
    const file = this.#files.peek(row.sessionId);
    if (file?.isShared === true) file.readAhead(this.#lookAt(row, this.folder.session(row.fileName), false));
  }

  withStaged(held: OpenTranscript): OpenTranscript {
    const transcript = held.file.current ?? held.transcript;
    return { ...held, transcript, row: this.#fold(this.log.row(held.row.sessionId) ?? held.row, transcript) };
  }

  /** Does the same as `open`, for a session that must have its file. @throws {ThroughlineError} STORE_CORRUPT */
  openExisting(row: SessionRow, isWhole: boolean = false): OpenTranscript {
    return this.open(row, isWhole) ?? this.throwGone(row);
  }

  throwGone({ sessionId, fileName }: SessionRow): never {
    const path = this.folder.session(fileName);
    throw refused("STORE_CORRUPT", `The transcript ${JSON.stringify(fileName)} is gone.`, { sessionId, path });
  }

  /** Does the same as `state`, with pauses during a long read. Returns null when the session was purged meanwhile. */
  async readState(row: SessionRow): Promise<SessionState | null> {
    if (!this.#summaries.isKnown(row)) await this.prepare(row);
    const state = this.state(row);
    return this.#isPurged(row) ? null : state;
  }

  /** Call it after a snapshot: a snapshot without a transcript has refreshed the log. */
  #isPurged({ sessionId }: SessionRow): boolean {
    return this.log.row(sessionId) === null;
  }

  /** Returns the session for a caller. The transcript is read only when it has changed since the last snapshot. */
  state(row: SessionRow): SessionState {
    const state = this.stateOf(this.snapshot(row));
    return { ...state, entry: structuredClone(state.entry) };
  }

  snapshot(row: SessionRow): SessionSnapshot {
    const seen = this.#summaries.snapshot(row);
    const file = this.#files.peek(row.sessionId);
    return file === null ? seen : { ...seen, flushed: file.flushedRecords };
  }

  /** Takes a snapshot for a list; an unreadable transcript leaves the log row. Returns null if purged or damaged. */
  snapshotIfReadable(row: SessionRow): SessionSnapshot | null {
    try {
      const seen = this.snapshot(row);
      return this.#isPurged(row) ? null : seen;
    } catch (error) {
      const finding = unreadableFinding(error, this.folder.session(this.fileNameOf(row)), row.key);
      if (finding === null) throw error;
      this.#findings.say(row.sessionId, this.#ownerOf(row), finding);
      if (finding.code === "STORE_DAMAGED") return null;
      return this.#summaries.unread(row);
    }
  }

  /** Builds the state of a snapshot; both share one entry object. @throws {ThroughlineError} CODEC_FAILED */
  stateOf({ folded, digest }: SessionSnapshot): SessionState {
    const { sessionId, revision, isArchived, createdAtMs, updatedAtMs } = folded;
    return {
      ref: this.refOf(folded),
      sessionId,
      archived: isArchived,
      entry: entryOf(folded),
      revision,
      head: ownHead(digest.head),
      messageCount: digest.messageCount,
      createdAtMs,
      updatedAtMs,
    };
  }

  /** Returns the row with what is known of its transcript, without a read. */
  readonly known = (row: SessionRow): SessionRow => this.#summaries.known(row);

  updateIndex(seen: readonly SessionSnapshot[]): boolean {
    if (!this.#context.files.isWritable(this.folder.own)) return false;
    const isWritten = this.log.updateIndex(
      seen.filter((one) => one.seen !== ""),
      this.adoption.notes,
    );
    if (isWritten) this.adoption.hasNewNotes = false;
    return isWritten;
  }

  /** Discards what the index holds from transcripts, so that they are read again. */
  forgetIndexed(): void {
    this.index.forgetSeen();
    this.#summaries.forgetIndexed();
  }

  /** Call it after a write failed: a summary shares its patches with the image, which had staged lines. */
  readonly unlearn = ({ row }: OpenTranscript): void => this.#summaries.forget(row.sessionId);

  /** Creates the store's own folders, which are missing in an agent folder that another program created. */
  prepareWriting(): void {
    flushFolders(this.#context.files);
    if (this.#isPrepared) return;
    withFileErrors(this.folder.own, () => makeAgentFolder(this.#context.files, this.#context.root, this.address));
    this.#isPrepared = true;
    this.location.warn();
  }

  fileNameOf(row: SessionRow): string {
    return this.#presentFile(row)?.name ?? row.fileName;
  }

  #presentFile(row: SessionRow): { readonly name: string; readonly facts: FileFacts } | null {
    for (const name of fileNamesOf(row)) {
      const facts = this.#context.files.facts(this.folder.session(name));
      if (facts !== null) return { name, facts };
    }
    return null;
  }

  forget(sessionId: string): void {
    this.#files.letGo(sessionId);
    this.#summaries.forget(sessionId);
  }

  async close(): Promise<void> {
    this.#files.clear();
    this.#warm.clear();
    await this.log.close();
    this.index.close();
    this.vectors.close();
  }

  makeRoom(): void {
    this.#files.makeRoom();
  }

  #ownerOf(row: SessionRow): LineOwner {
    return { ref: { ...this.address, key: row.key }, sessionId: row.sessionId };
  }

  #reportMissing(row: SessionRow): void {
    const { sessionId, key, fileName } = row;
    if (row.isUnflushed === true) return;
    // Another handle may have archived or purged the session since the row was read.
    if (this.locateId(sessionId)?.fileName !== fileName) return;
    const message = "The transcript of the session is not there.";
    const place = { path: this.folder.session(fileName), key };
    const finding = createFinding("SESSION_FILE_MISSING", message, place);
    this.#findings.say(sessionId, { ref: this.refOf(row), sessionId }, finding);
  }
}

import { refused } from "@throughline/core/store";
import { createFinding, type Finding, type SessionRef, type SessionState } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import {
  agentFolder,
  agentFolderExists,
  makeAgentFolder,
  type AgentAddress,
  type AgentFolder,
} from "./agent-folder.ts";
import { adoptSessions, denySuspects, type AdoptionScene } from "./adopt-sessions.ts";
import { AgentPlace } from "./agent-place.ts";
import { ownHead, type HeldSession } from "./append-records.ts";
import { EntriesLog } from "./entries-log.ts";
import { flushFolders, withFileErrors } from "./file-work.ts";
import type { FileFacts } from "./files.ts";
import type { SeenSession } from "./seen-session.ts";
import { SessionIndex } from "./session-index.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { SessionsView } from "./sessions-view.ts";
import type { StoreContext } from "./store-context.ts";
import type { LineOwner } from "./stored-line.ts";
import { TranscriptFile } from "./transcript-file.ts";
import type { TranscriptBase } from "./transcript-base.ts";
import { seenAs, TranscriptSummaries } from "./transcript-summaries.ts";
import { TranscriptFindings } from "./transcript-findings.ts";
import { WarmLines } from "./warm-lines.ts";

/** File times move in ticks of up to so many milliseconds. */
const timeGrainMs = 50;

/** Each open transcript holds a file handle and the ids of its records. */
const maxOpenTranscripts = 64;

/** The sessions of one agent, as one store handle sees them. */
export class AgentSessions {
  readonly folder: AgentFolder;
  readonly place: AgentPlace;
  readonly log: EntriesLog;
  readonly view: SessionsView;
  readonly index: SessionIndex;
  /** Something was taken over that the index does not know of. */
  hasNewNotes = false;
  readonly #context: StoreContext;
  readonly address: AgentAddress;
  readonly #files: Map<string, TranscriptFile> = new Map();
  readonly #summaries: TranscriptSummaries;
  /** What was taken over of what others write, for the index to keep. */
  readonly #notes: Map<string, string> = new Map();
  #hasStrays = false;
  /** Findings, by file and place: nobody wants to hear the same at every look. */
  readonly #said: Set<string> = new Set();
  readonly #findings: TranscriptFindings;
  readonly #warm: WarmLines = new WarmLines();
  #isPrepared = false;

  constructor(context: StoreContext, { namespace, agentId }: AgentAddress) {
    this.#context = context;
    this.address = { namespace, agentId };
    this.folder = agentFolder(context.root, this.address);
    this.place = new AgentPlace(context, this.folder);
    const { files, codec, clock } = context;
    const onFinding = (finding: Finding): void => context.emit({ name: "finding", ref: null, finding });
    this.#findings = new TranscriptFindings(this.#said, ({ ref }, finding) =>
      context.emit({ name: "finding", ref, finding }),
    );
    // SQLite's log is memory that processes of one host share.
    const isWanted = (): boolean => context.keepsIndex && !this.place.isRemote;
    this.index = new SessionIndex({ files, isWanted, folder: this.folder, agent: this.address, codec, onFinding });
    this.#summaries = new TranscriptSummaries({
      files,
      folder: this.folder,
      index: this.index,
      coder: codec.coder,
      refOf: (row) => this.#ownerOf(row).ref,
      hold: (row) => this.hold(row)?.transcript ?? null,
      isIndexed: (row) => this.log.isIndexed && !this.log.unindexed.has(row.sessionId),
    });
    this.log = new EntriesLog({
      files,
      folder: this.folder,
      agent: this.address,
      codec,
      index: this.index,
      nowMs: () => clock.nowMs(),
      onFinding,
    });
    this.view = new SessionsView({
      files,
      folder: this.folder,
      isWanted: codec.isCoded ? false : context.writesSessionsJson,
      onFinding,
    });
  }

  get exists(): boolean {
    return agentFolderExists(this.#context.files, this.#context.root, this.address);
  }

  /** The row of an address, also of a session another program has made since; null when there is none. */
  async locate(ref: SessionRef): Promise<SessionRow | null> {
    this.log.refresh();
    const known = this.log.find(ref.key, ref.archiveId);
    if (known !== null || !this.exists) return known;
    await this.takeForeign();
    return this.log.find(ref.key, ref.archiveId);
  }

  /** The session of the address as it was known last, if it takes writes; whoever writes looks again under the lock. */
  peek(ref: SessionRef): SessionRow | null {
    return ref.archiveId === undefined && this.log.identity !== "" ? this.log.find(ref.key, undefined) : null;
  }

  /** The row of a session, whatever it is called by now. */
  locateId(sessionId: string): SessionRow | null {
    this.log.refresh();
    return this.log.row(sessionId);
  }

  /** Takes over what other programs did: changes of sessions.json, and transcripts the log does not name. */
  async takeForeign(): Promise<void> {
    await this.takeViewChanges();
    this.#finishPurges();
    const seen = this.#folderSeen();
    if (seen !== null && this.#isTaken("folder", seen)) return;
    if (this.#foreignSessions() !== null) await this.#commitIfWritable(() => this.#foreignSessions());
    // A file that nobody could be given may be given to somebody later without another change of the folder.
    if (seen !== null && seen === this.#folderSeen() && !this.#hasStrays) this.#note("folder", seen);
  }

  /** Takes over what other programs changed in sessions.json. Costs one look at the file while nobody did. */
  async takeViewChanges(): Promise<void> {
    this.index.look();
    this.log.refresh();
    if (this.log.damage.sessionIds.size > 0) await this.#commitIfWritable(() => denySuspects(this.#adoption()));
    if (this.#isTaken("view", this.#stamp(this.view.look()))) return;
    await this.view.refresh();
    if (this.#changesOfView() !== null) await this.#commitIfWritable(() => this.#changesOfView());
    this.noteView();
  }

  /** Keeps in mind that nothing is to be taken from sessions.json as it was seen last. */
  noteView(): void {
    if (this.view.isReadable && this.view.seenAs !== null) this.#note("view", this.#stamp(this.view.seenAs));
  }

  #note(name: "folder" | "view", seen: string): void {
    if (this.#isTaken(name, seen)) return;
    this.#notes.set(name, seen);
    this.hasNewNotes = true;
  }

  /** What was taken over went into this log; another one may not have it. */
  #stamp(seen: string): string {
    return `${this.log.identity} ${seen}`;
  }

  /** Whether a file or folder of others was taken over as it is: by this handle, or by whoever wrote the index of this log. */
  #isTaken(name: "folder" | "view", seen: string): boolean {
    return this.#notes.get(name) === seen || (this.log.isIndexed && this.index.note(name) === seen);
  }

  /** The sessions folder as it is; null when it changed so lately that another change might not show. */
  #folderSeen(): string | null {
    const facts = this.#context.files.facts(this.folder.sessions);
    if (facts === null) return this.#stamp("");
    const ageMs = systemClock.nowMs() - Number(facts.modifiedNs / 1_000_000n);
    return ageMs > timeGrainMs ? this.#stamp(`${facts.identity}:${facts.modifiedNs}`) : null;
  }

  refOf(row: SessionRow): SessionRef {
    const ref = { ...this.address, key: row.key };
    return row.isArchived ? { ...ref, archiveId: row.sessionId } : ref;
  }

  /** The session with its file, up to date; null when the file is gone. `isWhole`: with every record of it. */
  hold(row: SessionRow, isWhole: boolean = false): HeldSession | null {
    const file = this.#fileOf(row.sessionId);
    const owner = this.#ownerOf(row);
    for (const name of [row.fileName, row.formerFileName]) {
      if (name === undefined) continue;
      const path = this.folder.session(name);
      const { savedHead = null, revision } = row;
      const indexed = (facts: FileFacts): Omit<TranscriptBase, "endBytes"> | null =>
        this.#summaries.baseOf(row, seenAs(facts, row));
      const transcript = file.catchUp({ path, owner, savedHead, revision, indexed, isWhole });
      if (transcript === null) continue;
      transcript.forgetPatches(row.revision);
      return { row: this.#summaries.fold(row, transcript), ref: this.refOf(row), owner, file, path, transcript };
    }
    this.#reportMissing(row);
    return null;
  }

  /** The session after lines were staged in its file. */
  holdStaged(held: HeldSession): HeldSession {
    const transcript = held.file.current ?? held.transcript;
    return { ...held, transcript, row: this.#summaries.fold(this.log.row(held.row.sessionId) ?? held.row, transcript) };
  }

  /** As `hold`, with the places of the records from `seq` on. */
  holdFrom(row: SessionRow, seq: number): HeldSession | null {
    const held = this.hold(row);
    return held === null || held.file.reach(seq) ? held : this.hold(row, true);
  }

  /** As `hold`, for a session that must have its file. @throws {ThroughlineError} STORE_CORRUPT */
  holdExisting(row: SessionRow, isWhole: boolean = false): HeldSession {
    const held = this.hold(row, isWhole);
    if (held === null)
      throw refused("STORE_CORRUPT", `The transcript ${JSON.stringify(row.fileName)} is gone.`, {
        sessionId: row.sessionId,
        path: this.folder.session(row.fileName),
      });
    return held;
  }

  /** The session for a caller. Reads the transcript only when it has changed since it was last looked at. */
  state(row: SessionRow): SessionState {
    const state = this.stateOf(this.look(row));
    return { ...state, entry: structuredClone(state.entry) };
  }

  look(row: SessionRow): SeenSession {
    return this.#summaries.look(row);
  }

  /** Shares its entry with what was looked at. */
  stateOf({ folded, digest }: SeenSession): SessionState {
    const { sessionId, entry, revision, isArchived, createdAtMs, updatedAtMs } = folded;
    return {
      ref: this.refOf(folded),
      sessionId,
      archived: isArchived,
      entry,
      revision,
      head: ownHead(digest.head),
      messageCount: digest.messageCount,
      createdAtMs,
      updatedAtMs,
    };
  }

  /** The row with what is known of its transcript, without reading it: for the view, which may lag. */
  readonly known = (row: SessionRow): SessionRow => this.#summaries.known(row);

  /** Brings the index to what is known here. False when that was not possible now. */
  updateIndex(seen: readonly SeenSession[]): boolean {
    const { files } = this.#context;
    if (!files.isWritable(this.folder.own)) return false;
    const isWritten = this.log.updateIndex(
      seen.filter((one) => one.seen !== ""),
      Object.fromEntries(this.#notes),
    );
    if (isWritten) this.hasNewNotes = false;
    return isWritten;
  }

  /** To be called after a transcript was written: keeps what `known` says up to date. */
  remember({ file, row }: HeldSession): void {
    if (file.current !== null) this.#summaries.remember(row, file.current, file.facts);
  }

  /** The folders every write needs. An agent's folder another program made has none of ours. */
  prepareWriting(): void {
    flushFolders(this.#context.files);
    if (this.#isPrepared) return;
    withFileErrors(this.folder.own, () => this.#makeOwnFolder());
    this.#isPrepared = true;
    this.place.warn();
  }

  fileNameOf(row: SessionRow): string {
    return row.formerFileName !== undefined && this.#context.files.facts(this.folder.session(row.fileName)) === null
      ? row.formerFileName
      : row.fileName;
  }

  forget(sessionId: string): void {
    this.#files.get(sessionId)?.forget();
    this.#files.delete(sessionId);
    this.#summaries.forget(sessionId);
  }

  async close(): Promise<void> {
    for (const file of this.#files.values()) file.forget();
    this.#files.clear();
    this.#warm.clear();
    await this.log.close();
    this.index.close();
  }

  #changesOfView(): RowChange | null {
    const rowOf = (key: string): SessionRow | null => {
      const row = this.log.find(key, undefined);
      return row === null ? null : this.known(row);
    };
    return this.view.foreignChanges(rowOf, this.#context.clock.nowMs());
  }

  #foreignSessions(): RowChange | null {
    const adopted = adoptSessions(this.#adoption());
    this.#hasStrays = adopted.hasStrays;
    return adopted.change;
  }

  #adoption(): AdoptionScene {
    const { files, clock, emit } = this.#context;
    const { folder, log, index, view } = this;
    const { agentId } = this.address;
    const onFinding = (finding: Finding): void => {
      const place = JSON.stringify([log.identity, finding.code, finding.path, finding.key]);
      if (!this.#said.has(place)) emit({ name: "finding", ref: null, finding });
      this.#said.add(place);
    };
    const hold = (row: SessionRow): HeldSession | null => this.hold(row, true);
    return { files, folder, log, index, view, agentId, nowMs: clock.nowMs(), hold, onFinding };
  }

  async #commitIfWritable(take: () => RowChange | null): Promise<void> {
    const { files, locks } = this.#context;
    const isWritable =
      files.isWritable(this.folder.agent) &&
      (files.facts(this.folder.own) === null || files.isWritable(this.folder.own));
    if (!isWritable) {
      const change = take();
      if (change !== null) this.log.applyUnwritten(change);
      return;
    }
    this.#makeOwnFolder();
    await locks.hold([this.folder.entriesLock], () => {
      this.log.refresh();
      const change = take();
      if (change?.op === "adopt" && this.view.entries().size > 0) this.place.markOpenclaw();
      if (change !== null) this.log.write(change);
    });
  }

  #makeOwnFolder(): void {
    makeAgentFolder(this.#context.files, this.#context.root, this.address);
  }

  /** A purge that was interrupted after its commit. */
  #finishPurges(): void {
    for (const sessionId of this.log.removed) this.removeBytes(`${sessionId}.jsonl`);
  }

  /** Deletes a transcript, its archived forms and what was set aside of it. */
  removeBytes(fileName: string): void {
    const { files } = this.#context;
    for (const folder of [this.folder.sessions, this.folder.torn]) {
      if (files.facts(folder) === null) continue;
      for (const name of files.names(folder))
        if (name === fileName || name.startsWith(`${fileName}.`)) files.remove(`${folder}/${name}`);
    }
  }

  #fileOf(sessionId: string): TranscriptFile {
    const { files, codec, clock } = this.#context;
    const known = this.#files.get(sessionId);
    this.#files.delete(sessionId);
    const file =
      known ??
      new TranscriptFile({
        files,
        codec,
        nowMs: () => clock.nowMs(),
        findings: this.#findings,
        warm: this.#warm,
        tornFolder: this.folder.torn,
      });
    this.#files.set(sessionId, file);
    if (this.#files.size > maxOpenTranscripts) this.#closeOldest();
    return file;
  }

  #closeOldest(): void {
    for (const [sessionId, file] of this.#files) {
      if (file.isPinned) continue;
      file.forget();
      this.#files.delete(sessionId);
      return;
    }
  }

  #ownerOf(row: SessionRow): LineOwner {
    return { ref: { ...this.address, key: row.key }, sessionId: row.sessionId };
  }

  #reportMissing(row: SessionRow): void {
    const { sessionId, key } = row;
    const path = this.folder.session(row.fileName);
    const message = "The transcript of the session is not there.";
    const finding = createFinding("SESSION_FILE_MISSING", message, { path, key });
    this.#findings.say(sessionId, { ref: this.refOf(row), sessionId }, finding);
  }
}

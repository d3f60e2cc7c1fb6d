import { createFinding, type Finding, type SessionHead, type SessionRef, type SessionState } from "@throughline/core";
import { agentFolder, agentFolderExists, type AgentAddress, type AgentFolder } from "./agent-folder.ts";
import { ownHead, type HeldSession } from "./append-records.ts";
import { EntriesLog } from "./entries-log.ts";
import { withFileErrors } from "./file-work.ts";
import { findForeignSessions } from "./foreign-sessions.ts";
import { decodeEntry, foldPatches, type RowChange, type SessionRow } from "./session-row.ts";
import { SessionsView } from "./sessions-view.ts";
import { refused, type StoreContext } from "./store-context.ts";
import type { LineOwner } from "./stored-line.ts";
import { TranscriptFile } from "./transcript-file.ts";
import type { EntryPatch, Transcript } from "./transcript.ts";

/** What listing needs of a transcript, kept when the image itself is let go. */
interface TranscriptSummary {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  readonly patches: readonly EntryPatch[];
}

interface KeptFold {
  readonly row: SessionRow;
  readonly patches: readonly EntryPatch[];
  readonly count: number;
  readonly folded: SessionRow;
}

interface KeptSummary {
  readonly seenAs: string;
  readonly summary: TranscriptSummary;
}

/** Each open transcript holds a file handle and the ids of its records. */
const maxOpenTranscripts = 64;

/** The sessions of one agent, as one store handle sees them. */
export class AgentSessions {
  readonly folder: AgentFolder;
  readonly log: EntriesLog;
  readonly view: SessionsView;
  readonly #context: StoreContext;
  readonly #address: AgentAddress;
  readonly #files: Map<string, TranscriptFile> = new Map();
  readonly #summaries: Map<string, KeptSummary> = new Map();
  readonly #folds: Map<string, KeptFold> = new Map();
  #isPrepared = false;
  readonly #missing: Set<string> = new Set();

  constructor(context: StoreContext, { namespace, agentId }: AgentAddress) {
    this.#context = context;
    this.#address = { namespace, agentId };
    this.folder = agentFolder(context.root, this.#address);
    const { files, codec, clock } = context;
    const onFinding = (finding: Finding): void => context.emit({ name: "finding", ref: null, finding });
    this.log = new EntriesLog({
      files,
      folder: this.folder,
      agent: this.#address,
      codec,
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
    return agentFolderExists(this.#context.files, this.#context.root, this.#address);
  }

  /** The row of an address, also of a session another program has made since; null when there is none. */
  async locate(ref: SessionRef): Promise<SessionRow | null> {
    this.log.refresh();
    const known = this.log.find(ref.key, ref.archiveId);
    if (known !== null || !this.exists) return known;
    await this.takeForeign();
    return this.log.find(ref.key, ref.archiveId);
  }

  /** Takes over what other programs did: changes of sessions.json, and transcripts the log does not name. */
  async takeForeign(): Promise<void> {
    await this.takeViewChanges();
    this.#finishPurges();
    if (this.#foreignSessions() !== null) await this.#commitIfWritable(() => this.#foreignSessions());
  }

  /** Takes over what other programs changed in sessions.json. Costs one look at the file while nobody did. */
  async takeViewChanges(): Promise<void> {
    this.log.refresh();
    if (this.#changesOfView() !== null) await this.#commitIfWritable(() => this.#changesOfView());
    this.view.markTaken();
  }

  refOf(row: SessionRow): SessionRef {
    const ref = { ...this.#address, key: row.key };
    return row.isArchived ? { ...ref, archiveId: row.sessionId } : ref;
  }

  /** The session with its file, up to date; null when the file is gone. */
  hold(row: SessionRow): HeldSession | null {
    const file = this.#fileOf(row.sessionId);
    const owner = this.#ownerOf(row);
    for (const name of [row.fileName, row.formerFileName]) {
      if (name === undefined) continue;
      const path = this.folder.session(name);
      const transcript = file.catchUp(path, owner, row.savedHead ?? null);
      if (transcript === null) continue;
      transcript.forgetPatches(row.revision);
      return { row: this.#fold(row, transcript), ref: this.refOf(row), owner, file, path, transcript };
    }
    this.#reportMissing(row);
    return null;
  }

  /** As `hold`, for a session that must have its file. @throws {ThroughlineError} STORE_CORRUPT */
  holdExisting(row: SessionRow): HeldSession {
    const held = this.hold(row);
    if (held === null)
      throw refused("STORE_CORRUPT", `The transcript ${JSON.stringify(row.fileName)} is gone.`, {
        sessionId: row.sessionId,
        path: this.folder.session(row.fileName),
      });
    return held;
  }

  /** The session for a caller. Reads the transcript only when it has changed since it was last looked at. */
  state(row: SessionRow): SessionState {
    const summary = this.#summaryOf(row);
    const { sessionId, key: _key, entry, revision, isArchived, createdAtMs, updatedAtMs } = this.#fold(row, summary);
    const { messageCount } = summary;
    return {
      ref: this.refOf(row),
      sessionId,
      archived: isArchived,
      entry: structuredClone(entry),
      revision,
      head: ownHead(summary.head),
      messageCount,
      createdAtMs,
      updatedAtMs,
    };
  }

  /** Rows with what is known of their transcripts, without reading any: for the view, which may lag. */
  knownRows(): readonly SessionRow[] {
    return [...this.log.rows.values()].map((row) => {
      const kept = this.#summaries.get(row.sessionId);
      return kept === undefined ? row : this.#fold(row, kept.summary);
    });
  }

  /** To be called after a transcript was written: keeps what `knownRows` says up to date. */
  remember({ file, row }: HeldSession): void {
    const now = file.current;
    if (now !== null) this.#summaries.set(row.sessionId, { seenAs: "", summary: summaryOf(now) });
  }

  /** The folders every write needs. An agent's folder another program made has none of ours. */
  prepareWriting(): void {
    if (this.#isPrepared) return;
    withFileErrors(this.folder.own, () => this.#makeOwnFolder());
    this.#isPrepared = true;
  }

  fileNameOf(row: SessionRow): string {
    return row.formerFileName !== undefined && this.#context.files.facts(this.folder.session(row.fileName)) === null
      ? row.formerFileName
      : row.fileName;
  }

  forget(sessionId: string): void {
    this.#files.get(sessionId)?.forget();
    this.#files.delete(sessionId);
    this.#summaries.delete(sessionId);
    this.#folds.delete(sessionId);
  }

  async close(): Promise<void> {
    for (const file of this.#files.values()) file.forget();
    this.#files.clear();
    await this.log.close();
  }

  #changesOfView(): RowChange | null {
    return this.view.foreignChanges(this.knownRows(), this.#context.clock.nowMs());
  }

  #foreignSessions(): RowChange | null {
    const { files, clock } = this.#context;
    const rows = findForeignSessions({
      files,
      folder: this.folder,
      log: this.log,
      entries: this.view.entries(),
      agentId: this.#address.agentId,
      nowMs: clock.nowMs(),
    });
    return rows.length === 0 ? null : { op: "adopt", rows: rows.map((row) => this.#withCopiedPatchesBehind(row)) };
  }

  /** A copy that another program made of a transcript of ours holds patches of the original's entry: they are not its own. */
  #withCopiedPatchesBehind(row: SessionRow): SessionRow {
    const transcript = this.hold(row)?.transcript;
    if (transcript === undefined || transcript.isHeaderOurs) return row;
    return { ...row, revision: transcript.highestRevision + 1 };
  }

  async #commitIfWritable(take: () => RowChange | null): Promise<void> {
    const { files, locks } = this.#context;
    const isWritable =
      files.isWritable(this.folder.agent) &&
      (files.facts(this.folder.own) === null || files.isWritable(this.folder.own));
    if (!isWritable) {
      const change = take();
      if (change !== null) this.log.apply(change);
      return;
    }
    this.#makeOwnFolder();
    await locks.hold([this.folder.entriesLock], () => {
      this.log.refresh();
      const change = take();
      if (change !== null) this.log.write(change);
    });
  }

  #makeOwnFolder(): void {
    const { files } = this.#context;
    for (const path of [this.folder.own, `${this.folder.own}/locks`, this.folder.torn])
      if (files.facts(path) === null) files.makeFolder(path);
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
    const { files, codec, clock, emit } = this.#context;
    const known = this.#files.get(sessionId);
    this.#files.delete(sessionId);
    const onFinding = ({ ref }: LineOwner, finding: Finding): void => emit({ name: "finding", ref, finding });
    const file =
      known ??
      new TranscriptFile({ files, codec, nowMs: () => clock.nowMs(), onFinding, tornFolder: this.folder.torn });
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
    return { ref: { ...this.#address, key: row.key }, sessionId: row.sessionId };
  }

  /** The row with the patches that lie in the transcript. Patches folded in before are not folded in again. */
  #fold(row: SessionRow, { patches, updatedAtMs }: Pick<TranscriptSummary, "patches" | "updatedAtMs">): SessionRow {
    const { ref } = this.#ownerOf(row);
    const kept = this.#folds.get(row.sessionId);
    const isGoingOn = kept?.row === row && kept.patches === patches;
    const fresh = isGoingOn ? patches.slice(kept.count) : patches;
    const folded = foldPatches(isGoingOn ? kept.folded : row, fresh, updatedAtMs, ({ envelope }) => {
      const coded = envelope.entryEnc;
      const { set, unset } =
        coded === undefined
          ? { set: envelope.entry ?? {}, unset: envelope.unset ?? [] }
          : (decodeEntry(this.#context.codec.coder, coded, ref, row.sessionId) as {
              set: Record<string, unknown>;
              unset: string[];
            });
      return { ...set, ...Object.fromEntries(unset.map((field) => [field, undefined])) };
    });
    this.#folds.set(row.sessionId, { row, patches, count: patches.length, folded });
    return folded;
  }

  #summaryOf(row: SessionRow): TranscriptSummary {
    const { files } = this.#context;
    const facts = files.facts(this.folder.session(row.fileName));
    const seenAs =
      facts === null
        ? ""
        : `${facts.identity}:${facts.sizeBytes}:${facts.modifiedNs}:${JSON.stringify(row.savedHead ?? null)}`;
    const kept = this.#summaries.get(row.sessionId);
    if (seenAs !== "" && kept?.seenAs === seenAs) return kept.summary;
    const transcript = this.hold(row)?.transcript;
    if (transcript === undefined)
      return { head: row.savedHead ?? emptyHead(row.sessionId), messageCount: 0, updatedAtMs: 0, patches: [] };
    const summary = summaryOf(transcript);
    this.#summaries.set(row.sessionId, { seenAs, summary });
    return summary;
  }

  #reportMissing(row: SessionRow): void {
    if (this.#missing.has(row.sessionId)) return;
    this.#missing.add(row.sessionId);
    const path = this.folder.session(row.fileName);
    const finding = createFinding("SESSION_FILE_MISSING", "The transcript of the session is not there.", {
      path,
      key: row.key,
    });
    this.#context.emit({ name: "finding", ref: this.refOf(row), finding });
  }
}

function summaryOf({ head, messageCount, updatedAtMs, patches }: Transcript): TranscriptSummary {
  return { head, messageCount, updatedAtMs, patches };
}

function emptyHead(sessionId: string): SessionHead {
  return { sessionId, lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null };
}

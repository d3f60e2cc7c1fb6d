import { createFinding, monotonicMs } from "@throughline/core/internal";
import { type Finding, hasErrorCode } from "@throughline/core";
import {
  adoptSessions,
  archiveNames,
  denySuspects,
  renamedRow,
  suspectRows,
  type AdoptionContext,
} from "./adopt-sessions.ts";
import { makeAgentFolder } from "./agent-folder.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { AdoptionPort } from "./adoption.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { ageMsOf, fileError, flushFolder, timeGrainMs, withFileErrors } from "./file-work.ts";
import { archivedFrom } from "./recover-entries.ts";
import type { KnownRow } from "./merge-entry.ts";
import { Purges } from "./purges.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { removeOrphanedPartials } from "./stale-partials.ts";
import type { StoreContext } from "./store-context.ts";

/** Limits the wait of the sweep. A process that holds the lock longer is stopped, or waits for its disk. */
const sweepWaitMs = 100;

/** A larger folder is searched at most once per interval while only this handle creates transcripts. */
const manyNames = 256;
const searchMs = 1000;

/**
 * Describes the last search of the sessions folder. The fingerprint is updated when this handle creates a transcript,
 * so that it causes no new search.
 */
interface LookedFolder {
  readonly seen: string;
  readonly atMs: number;
  readonly nameCount: number;
  readonly hasNewOnes: boolean;
}

export class AdoptedChanges implements AdoptionPort {
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  readonly #notes: Map<string, string> = new Map();
  hasNewNotes = false;
  readonly #purges: Purges;
  #hasStrays = false;
  #looked: LookedFolder | null = null;
  #hasSwept = false;
  /** A damaged sessions.json is not noted in the index. This stamp keeps this handle from merging it repeatedly. */
  #takenDamaged: string | null = null;
  /** Holds reported findings by file and line, so that refreshes do not report them again. */
  readonly #said: Set<string>;

  constructor(context: StoreContext, agent: AgentSessionFiles, said: Set<string>) {
    this.#context = context;
    this.#agent = agent;
    this.#said = said;
    this.#purges = new Purges(context, agent);
  }

  get notes(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#notes);
  }

  get hasFinishedPurge(): boolean {
    return this.#purges.hasFinished;
  }

  set hasFinishedPurge(has: boolean) {
    this.#purges.hasFinished = has;
  }

  finishPurges(): Promise<void> {
    return this.#purges.finish();
  }

  async adopt(): Promise<void> {
    await this.#adoptAll();
    await this.#sweepPartials();
  }

  async #adoptAll(): Promise<void> {
    const hasNewEntries = await this.#adoptEntries();
    await this.#purges.finishInterrupted(this.#adoption().onFinding);
    const { seen, isSettled } = this.#folderNow();
    const isLooked = (isSettled && this.#isTaken("folder", seen)) || this.#hasOnlyNewOnes(seen);
    // sessions.json may be written in place and name a session that has no transcript yet, without a change of the
    // folder.
    if (isLooked && !hasNewEntries) return;
    const found = this.#foreignSessions();
    if (found !== null) {
      await this.#commit(idsOf(found), () => this.#foreignSessions());
      await this.#agree(this.#agent.mirror.fingerprint);
    }
    // A transcript without a session may become one later without a change of the folder, so the folder is not
    // recorded.
    if (!isSettled || this.#hasStrays) return;
    const now = this.#folderNow();
    if (now.isSettled && now.seen === seen) this.#note("folder", seen);
  }

  async adoptEntries(): Promise<void> {
    await this.#adoptEntries();
  }

  /**
   * Does the same; returns false when the file had nothing new. A damaged line may have said where a transcript is, so
   * it counts as new.
   */
  async #adoptEntries(): Promise<boolean> {
    const { index, log, mirror } = this.#agent;
    index.look();
    if (log.identity === "") await log.open();
    log.refresh();
    const suspects = suspectRows(log).map(({ row }) => row.sessionId);
    if (suspects.length > 0) await this.#commit(suspects, () => denySuspects(this.#adoption()));
    if (this.isMirrorTaken(mirror.look())) return suspects.length > 0;
    await mirror.refresh();
    let change = this.#changesOfMirror();
    // The fingerprint belongs to the content that the change was made from; a newer version may not be merged yet.
    let taken = mirror.fingerprint;
    while (change !== null) {
      const locked = new Set(idsOf(change));
      await this.#commit([...locked], () => {
        const now = this.#changesOfMirror();
        const isLocked = now === null || idsOf(now).every((id) => locked.has(id));
        change = isLocked ? null : now;
        taken = mirror.fingerprint;
        return isLocked ? now : null;
      });
    }
    await this.#agree(taken);
    this.noteMirror(taken);
    return true;
  }

  /**
   * Records the merged sessions.json as the base that both programs agree on. The entries log must be on the disk
   * first.
   */
  async #agree(taken: string | null): Promise<void> {
    const { files, locks, codec, emit } = this.#context;
    const { folder, log, mirror } = this.#agent;
    if (taken === null || codec.isCoded || log.identity === "" || !files.isWritable(folder.own)) return;
    try {
      await mirror.agree(taken, (key) => log.find(key, undefined) !== null, {
        underLock: (commit) =>
          locks.hold([folder.entriesLock], () => {
            log.refreshHeld();
            // A session may have been adopted since, with the entry of an earlier sessions.json.
            if (mirror.fingerprint !== taken || this.#changesOfMirror() !== null) return false;
            log.flushNow();
            return commit();
          }),
      });
    } catch (error) {
      const message = `What both programs agree on could not be kept: ${fileError(error, folder.own).message}`;
      emit({ name: "finding", ref: null, finding: createFinding("FILE_UNREADABLE", message, { path: folder.own }) });
    }
  }

  noteMirror(fingerprint: string | null): void {
    if (fingerprint === null) return;
    // A damaged file is remembered in this handle only, so that later handles report it too.
    if (this.#agent.mirror.isReadable) this.#note("view", this.#stamp(fingerprint));
    else this.#takenDamaged = this.#stamp(fingerprint);
  }

  isMirrorTaken(fingerprint: string): boolean {
    const stamp = this.#stamp(fingerprint);
    return this.#takenDamaged === stamp || this.#isTaken("view", stamp);
  }

  #note(name: "folder" | "view", seen: string): void {
    if (this.#isTaken(name, seen)) return;
    this.#notes.set(name, seen);
    this.hasNewNotes = true;
  }

  /** Includes the identity of the log, because the changes were merged into this log and another one may lack them. */
  #stamp(seen: string): string {
    return `${this.#agent.log.identity} ${seen}`;
  }

  /** Tests whether this version was merged, by this handle or by the process that updated the index of this log. */
  #isTaken(name: "folder" | "view", seen: string): boolean {
    const { log, index } = this.#agent;
    return this.#notes.get(name) === seen || (log.isIndexed && index.note(name) === seen);
  }

  /**
   * Returns the fingerprint of the sessions folder. `isSettled` is false right after a change, when another one might
   * not show.
   */
  #folderNow(): { readonly seen: string; readonly isSettled: boolean } {
    const facts = this.#context.files.facts(this.#agent.folder.sessions);
    if (facts === null) return { seen: this.#stamp(""), isSettled: true };
    return { seen: this.#stamp(`${facts.identity}:${facts.modifiedNs}`), isSettled: ageMsOf(facts) > timeGrainMs };
  }

  whileMaking(make: () => void): void {
    const isLooked = this.#looked !== null && this.#looked.seen === this.#folderNow().seen;
    make();
    if (this.#looked === null || !isLooked) return;
    this.#looked = { ...this.#looked, seen: this.#folderNow().seen, hasNewOnes: true };
  }

  /**
   * Tests whether the last search is recent and only this handle created transcripts since. Another program's
   * transcript of the same clock tick is found later.
   */
  #hasOnlyNewOnes(seen: string): boolean {
    const looked = this.#looked;
    if (looked === null || !looked.hasNewOnes || looked.nameCount <= manyNames) return false;
    return monotonicMs() - looked.atMs < searchMs && looked.seen === seen;
  }

  #changesOfMirror(): RowChange | null {
    const { log, mirror } = this.#agent;
    // The row includes the transcript's patches: the change gets the next revision, and patches up to it count as
    // applied.
    const rowOf = (key: string): KnownRow | null => {
      const row = log.find(key, undefined);
      if (row === null) return null;
      const present = this.#presentRow(row);
      const { folded, entryAtMs } = this.#agent.snapshotIfReadable(present) ?? { folded: present };
      return { row: folded, entryAtMs: entryAtMs?.() ?? folded.updatedAtMs };
    };
    const change = mirror.foreignChanges({ rowOf, putBack: (id) => this.#putBack(id) }, this.#context.clock.nowMs());
    // A session that stays active keeps the name of its transcript.
    const rows = change?.rows.map((row) => {
      const known = log.row(row.sessionId);
      return row.isArchived || known?.isArchived !== false ? row : { ...row, fileName: known.fileName };
    });
    return change === null || rows === undefined ? null : { ...change, rows };
  }

  /** Returns the row under the name that its transcript has now. */
  #presentRow(row: SessionRow): SessionRow {
    const { files } = this.#context;
    const { sessions } = this.#agent.folder;
    if (files.facts(this.#agent.folder.session(this.#agent.fileNameOf(row))) !== null) return row;
    if (files.facts(sessions) === null) return row;
    const present = new Set(withFileErrors(sessions, () => files.names(sessions)));
    return renamedRow(row, present, archiveNames(present)) ?? row;
  }

  #putBack(sessionId: string): SessionRow | null {
    const { files } = this.#context;
    const { folder, log } = this.#agent;
    const row = log.row(sessionId);
    if (row?.isArchived !== true) return null;
    const fileName = archivedFrom(row.fileName) ?? row.fileName;
    if (files.facts(folder.session(fileName))?.kind !== "file") return null;
    if (fileName !== row.fileName && files.facts(folder.session(row.fileName)) !== null) return null;
    const { formerFileName: _former, ...rest } = this.#agent.snapshot(row).folded;
    return { ...rest, fileName };
  }

  #foreignSessions(): RowChange | null {
    const [{ seen }, atMs] = [this.#folderNow(), monotonicMs()];
    const adopted = adoptSessions(this.#adoption());
    this.#hasStrays = adopted.hasStrays;
    this.#looked = { seen, atMs, nameCount: adopted.nameCount, hasNewOnes: false };
    return adopted.change;
  }

  #adoption(): AdoptionContext {
    const { files, clock, emit } = this.#context;
    const { folder, log, index, mirror, address } = this.#agent;
    // Read now, because a log whose flush failed is closed and then has no identity.
    const { identity } = log;
    const onFinding = (finding: Finding): void => {
      const place = JSON.stringify([identity, finding.code, finding.path, finding.key]);
      if (!this.#said.has(place)) emit({ name: "finding", ref: null, finding });
      this.#said.add(place);
    };
    const open = (row: SessionRow): OpenTranscript | null => this.#agent.open(row, true);
    const { agentId } = address;
    return { files, folder, log, index, mirror, agentId, nowMs: clock.nowMs(), open, onFinding };
  }

  /**
   * Commits a change under the entries lock. `sessionIds` names the changed sessions, whose locks keep other processes
   * from appending meanwhile.
   */
  async #commit(sessionIds: readonly string[], take: () => RowChange | null): Promise<void> {
    const { files, locks } = this.#context;
    const { folder, log, location } = this.#agent;
    if (!location.isWritable) {
      const change = take();
      if (change !== null) log.applyUnwritten(change);
      return;
    }
    makeAgentFolder(files, this.#context.root, this.#agent.address);
    await locks.hold([folder.entriesLock, ...sessionIds.map((id) => folder.sessionLock(id))], () => {
      log.refresh();
      const change = take();
      if (change === null) return;
      // The names of adopted transcripts may never have been flushed, so the log must not refer to them before that.
      if (change.op === "adopt") withFileErrors(folder.sessions, () => flushFolder(files, folder.sessions));
      log.write(change);
    });
  }

  /**
   * Runs once per handle, after a complete merge. Before that, a session may exist only as a transcript, and its
   * partial reply would be removed.
   */
  async #sweepPartials(): Promise<void> {
    if (this.#hasSwept || !this.#agent.location.isWritable) return;
    this.#hasSwept = true;
    const { partials } = this.#agent.folder;
    try {
      await removeOrphanedPartials(this.#context, this.#agent, AbortSignal.timeout(sweepWaitMs));
    } catch (error) {
      this.#hasSwept = false;
      if (hasErrorCode(error, "ABORTED", "STORE_LOCKED")) return;
      const message = `A partial reply of a session that is gone could not be deleted: ${fileError(error, partials).message}`;
      this.#adoption().onFinding(createFinding("FILE_UNREADABLE", message, { path: partials }));
    }
  }
}

function idsOf({ rows }: RowChange): readonly string[] {
  return rows.map(({ sessionId }) => sessionId);
}

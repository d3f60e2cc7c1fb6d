import { createFinding, monotonicMs } from "@throughline/core/internal";
import { type Finding, hasErrorCode } from "@throughline/core";
import { adoptSessions, denySuspects, suspectRows, type AdoptionContext } from "./adopt-sessions.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { Coexistence } from "./coexistence.ts";
import type { HeldSession } from "./held-session.ts";
import { ageMsOf, fileError, flushFolder, timeGrainMs, withFileErrors } from "./file-work.ts";
import { archivedFrom } from "./recover-entries.ts";
import { Purges } from "./purges.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { removeOrphanedPartials } from "./stale-partials.ts";
import type { StoreContext } from "./store-context.ts";

/** Who is about it for longer is stopped, or has its own disk to wait for. */
const sweepWaitMs = 100;

/** Who goes on writing to a session looks so often at what its key means. */
const lookMs = 1000;

/** A folder of more names is looked through so often at most, as long as only transcripts of this handle come. */
const manyNames = 256;

/** The sessions folder when it was looked through, and how it became since by transcripts of this handle. */
interface LookedFolder {
  readonly seen: string;
  /** By `monotonicMs`. */
  readonly atMs: number;
  readonly nameCount: number;
  readonly hasNewOnes: boolean;
}

/** What other programs do in an agent's folder, and how it becomes changes of its sessions. */
export class ForeignChanges implements Coexistence {
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  /** What was taken over of what others write, for the index to keep. */
  readonly #notes: Map<string, string> = new Map();
  /** Something was taken over that the index does not know of. */
  hasNewNotes = false;
  readonly #purges: Purges;
  #hasStrays = false;
  #looked: LookedFolder | null = null;
  #hasSwept = false;
  /** The damaged sessions.json of which everything was taken that can be read. */
  #takenDamaged: string | null = null;
  #lookedAtMs = -Infinity;
  #looking: Promise<void> | null = null;
  /** Findings, by file and place: nobody wants to hear the same at every look. */
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

  /** Takes over what other programs did: changes of sessions.json, and transcripts the log does not name. */
  async take(): Promise<void> {
    await this.#takeAll();
    await this.#sweepPartials();
  }

  async #takeAll(): Promise<void> {
    const hasNewView = await this.#takeView();
    await this.#purges.finishInterrupted(this.#adoption().onFinding);
    const { seen, isSettled } = this.#folderNow();
    const isLooked = (isSettled && this.#isTaken("folder", seen)) || this.#hasOnlyNewOnes(seen);
    // A file may be written in place, and name a session that has no transcript yet.
    if (isLooked && !hasNewView) return;
    if (this.#foreignSessions() !== null) {
      await this.#commit([], () => this.#foreignSessions());
      await this.#agree(this.#agent.view.seenAs);
    }
    // A file that nobody could be given may be given to somebody later without another change of the folder.
    if (!isSettled || this.#hasStrays) return;
    const now = this.#folderNow();
    if (now.isSettled && now.seen === seen) this.#note("folder", seen);
  }

  /**
   * As `takeView`, where OpenClaw is at home and it was not done lately; null when there is nothing to wait for. For those
   * who write to a session they know: its key may mean another one by now.
   */
  takeViewIfDue(): Promise<void> | null {
    if (!this.#agent.place.isOpenclaws) return null;
    if (monotonicMs() - this.#lookedAtMs > lookMs)
      this.#looking = this.takeView().finally(() => (this.#looking = null));
    return this.#looking;
  }

  /** Takes over what other programs changed in sessions.json. Costs one look at the file while nobody did. */
  async takeView(): Promise<void> {
    await this.#takeView();
  }

  /** The same; false when there was nothing new in the file. */
  async #takeView(): Promise<boolean> {
    const { index, log, view } = this.#agent;
    this.#lookedAtMs = monotonicMs();
    index.look();
    log.refresh();
    const suspects = suspectRows(log).map(({ row }) => row.sessionId);
    if (suspects.length > 0) await this.#commit(suspects, () => denySuspects(this.#adoption()));
    if (this.isViewTaken(view.look())) return false;
    await view.refresh();
    let change = this.#changesOfView();
    // What was read for the change, and not what may have come since.
    let taken = view.seenAs;
    while (change !== null) {
      const locked = new Set(idsOf(change));
      await this.#commit([...locked], () => {
        const now = this.#changesOfView();
        const isLocked = now === null || idsOf(now).every((id) => locked.has(id));
        change = isLocked ? null : now;
        taken = view.seenAs;
        return isLocked ? now : null;
      });
    }
    await this.#agree(taken);
    this.noteView(taken);
    return true;
  }

  /** What was taken from sessions.json is what both programs have. It must be on the disk before this is recorded. */
  async #agree(taken: string | null): Promise<void> {
    const { files, locks, codec, emit } = this.#context;
    const { folder, log, view } = this.#agent;
    if (taken === null || codec.isCoded || log.identity === "" || !files.isWritable(folder.own)) return;
    try {
      await view.agree(taken, (key) => log.find(key, undefined) !== null, {
        underLock: (commit) =>
          locks.hold([folder.entriesLock], () => {
            log.refreshHeld();
            // A session may have been taken over since, with what an earlier sessions.json said of it.
            if (view.seenAs !== taken || this.#changesOfView() !== null) return false;
            log.flushNow();
            return commit();
          }),
      });
    } catch (error) {
      const message = `What both programs agree on could not be kept: ${fileError(error, folder.own).message}`;
      emit({ name: "finding", ref: null, finding: createFinding("FILE_UNREADABLE", message, { path: folder.own }) });
    }
  }

  /** Keeps in mind that nothing is to be taken from sessions.json as it was then. */
  noteView(seenAs: string | null): void {
    if (seenAs === null) return;
    // Whoever comes next is to hear of a damaged one too.
    if (this.#agent.view.isReadable) this.#note("view", this.#stamp(seenAs));
    else this.#takenDamaged = this.#stamp(seenAs);
  }

  /** Whether everything was taken from sessions.json as it was then. */
  isViewTaken(seenAs: string): boolean {
    const stamp = this.#stamp(seenAs);
    return this.#takenDamaged === stamp || this.#isTaken("view", stamp);
  }

  #note(name: "folder" | "view", seen: string): void {
    if (this.#isTaken(name, seen)) return;
    this.#notes.set(name, seen);
    this.hasNewNotes = true;
  }

  /** What was taken over went into this log; another one may not have it. */
  #stamp(seen: string): string {
    return `${this.#agent.log.identity} ${seen}`;
  }

  /** Whether a file or folder of others was taken over as it is: by this handle, or by whoever wrote the index of this log. */
  #isTaken(name: "folder" | "view", seen: string): boolean {
    const { log, index } = this.#agent;
    return this.#notes.get(name) === seen || (log.isIndexed && index.note(name) === seen);
  }

  /** The sessions folder as it is. `isSettled`: it did not change so lately that another change might not show. */
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

  /** Whether the folder was looked through lately, and only transcripts of this handle came. Another's of the same tick is found later. */
  #hasOnlyNewOnes(seen: string): boolean {
    const looked = this.#looked;
    if (looked === null || !looked.hasNewOnes || looked.nameCount <= manyNames) return false;
    return monotonicMs() - looked.atMs < lookMs && looked.seen === seen;
  }

  #changesOfView(): RowChange | null {
    const { log, view } = this.#agent;
    // With the patches that lie in the transcript: a change gets the next revision, and patches up to it count as known.
    const rowOf = (key: string): SessionRow | null => {
      const row = log.find(key, undefined);
      return row === null ? null : (this.#agent.lookPast(row)?.folded ?? row);
    };
    return view.foreignChanges({ rowOf, putBack: (id) => this.#putBack(id) }, this.#context.clock.nowMs());
  }

  /** A transcript was archived and restored under its name, by another program or by hand. */
  #putBack(sessionId: string): SessionRow | null {
    const { files } = this.#context;
    const { folder, log } = this.#agent;
    const row = log.row(sessionId);
    if (row?.isArchived !== true) return null;
    const fileName = archivedFrom(row.fileName) ?? row.fileName;
    if (files.facts(folder.session(fileName))?.kind !== "file") return null;
    if (fileName !== row.fileName && files.facts(folder.session(row.fileName)) !== null) return null;
    const { formerFileName: _former, ...rest } = this.#agent.look(row).folded;
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
    const { folder, log, index, view, address } = this.#agent;
    // As it is now: a log that could not be flushed is let go of.
    const { identity } = log;
    const onFinding = (finding: Finding): void => {
      const place = JSON.stringify([identity, finding.code, finding.path, finding.key]);
      if (!this.#said.has(place)) emit({ name: "finding", ref: null, finding });
      this.#said.add(place);
    };
    const hold = (row: SessionRow): HeldSession | null => this.#agent.hold(row, true);
    const { agentId } = address;
    return { files, folder, log, index, view, agentId, nowMs: clock.nowMs(), hold, onFinding };
  }

  /** `sessionIds`: of the sessions that are changed, which nobody may append to meanwhile. */
  async #commit(sessionIds: readonly string[], take: () => RowChange | null): Promise<void> {
    const { files, locks } = this.#context;
    const { folder, log, place, view } = this.#agent;
    if (!this.#agent.place.isWritable) {
      const change = take();
      if (change !== null) log.applyUnwritten(change);
      return;
    }
    this.#agent.makeFolders();
    await locks.hold([folder.entriesLock, ...sessionIds.map((id) => folder.sessionLock(id))], () => {
      log.refresh();
      const change = take();
      if (change === null) return;
      // An entry of theirs, or a change of one: from here on they and we exclude one another.
      if (change.op === "save" || view.entries().size > 0) place.markOpenclaw();
      // Files of theirs may be known here by names that nobody has put on the disk.
      if (change.op === "adopt") withFileErrors(folder.sessions, () => flushFolder(files, folder.sessions));
      log.write(change);
    });
  }

  /** Once a handle, after everything was taken over: until then a session may be known by its transcript alone. */
  async #sweepPartials(): Promise<void> {
    if (this.#hasSwept || !this.#agent.place.isWritable) return;
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

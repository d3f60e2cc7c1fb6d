import { createFinding, systemClock } from "@throughline/core/internal";
import { type Finding } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import { appendAll, fileError, flushFolder, readWhole, withFileErrors } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import {
  damagedFinding,
  damagedPath,
  isSettling,
  keepDamaged,
  replacedFinding,
  type DamagedCopy,
} from "./keep-damaged-view.ts";
import { DeepJson } from "./json-members.ts";
import { fieldsOf, idIn, mergeForeign, restoredRow, viewOf } from "./merge-entry.ts";
import { crcOfBase, readView, viewText, type ReadView } from "./sessions-json.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { readableEntry } from "./sealed-entry.ts";
import { createSlices, type Slices } from "./slices.ts";

export interface SessionsViewOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  /** Null: while there are at most 10,000 sessions. */
  readonly isWanted: boolean | null;
  readonly onFinding: (finding: Finding) => void;
  /** What no other writer of the folder is called: files in the making carry it. */
  readonly writer: string;
}

/** What the writing of sessions.json depends on. */
export interface Publication {
  /** Whether what others wrote into the file, as it was then, is in the rows. */
  isTaken(seenAs: string): boolean;
  underLock(commit: () => string | null): Promise<string | null>;
  /** The file holds what was purged: a damaged one goes at once, and no copy of it is kept. */
  readonly isPurged: boolean;
}

/** What the keeping of what both agree on depends on. */
export interface Agreement {
  underLock(commit: () => boolean): Promise<boolean>;
}

/** What is known of sessions. */
export interface KnownRows {
  /** The active session of a key. */
  rowOf(key: string): SessionRow | null;
  /** The archived session with the id, if its transcript goes by its name from before again. */
  putBack(sessionId: string): SessionRow | null;
}

/** Nobody takes so long to write it: what is left of older ones is of writers that were killed. */
const abandonedMs = 60 * 60 * 1000;
/** For this number of sessions, writing the whole file takes about a tenth of a second. */
const maxSessionsByDefault = 10_000;

/**
 * OpenClaw's sessions.json: read for what OpenClaw changed, written for OpenClaw to read. The entries log is the truth;
 * a change in the file since we wrote it is OpenClaw's and becomes a change of the session.
 */
export class SessionsView {
  readonly #options: SessionsViewOptions;
  #seenAs: string | null = null;
  #theirs: ReadonlyMap<string, unknown> = new Map();
  #base: ReadonlyMap<string, unknown> = new Map();
  /** Keys whose entries are not what this store wrote. */
  #changed: readonly string[] = [];
  /** How many entries of a damaged file could be read; null: it is whole. */
  #salvaged: number | null = null;
  #seenCrc: number | null = null;
  /** Of the sessions.json that `viewBase` was written with. */
  #baseCrc: number | null = null;
  #isBaseTheirs = false;
  /** What the base was when it was read or written last: other processes of ours write it too. */
  #baseAs: string | null = null;
  /** Files in the making so far. */
  #made = 0;

  constructor(options: SessionsViewOptions) {
    this.#options = options;
  }

  /** What the file is, in one text; empty when there is none. */
  look(): string {
    const facts = this.#options.files.facts(this.#options.folder.sessionsJson);
    return facts === null ? "" : textOf(facts);
  }

  /** What the file was when it was read or written last; null: neither has happened. */
  get seenAs(): string | null {
    return this.#seenAs;
  }

  /** False after the file was read and is damaged: what can be read of it counts, and nothing of it was deleted. */
  get isReadable(): boolean {
    return this.#salvaged === null;
  }

  /** Whether the file is damaged and somebody may still be writing it: then it is left as it is for a moment. */
  get isSettling(): boolean {
    return !this.isReadable && isSettling(this.#options.files, this.#options.folder);
  }

  /** Reads the file again when it is another or changed, with others running in between. */
  async refresh(): Promise<void> {
    const { files, folder } = this.#options;
    for (let seenAs = this.look(); !this.#isRead(seenAs); seenAs = this.look()) {
      const slices = createSlices();
      const baseAs = this.#lookAtBase();
      const read = readView(files, folder, seenAs);
      for (let step = read.next(); ; step = read.next()) {
        if (step.done === true) {
          if (this.look() === seenAs) this.#take(seenAs, baseAs, step.value);
          break;
        }
        await slices.next();
      }
    }
  }

  /** The file's entries by key. Read again only when the file is another or changed. */
  entries(): ReadonlyMap<string, unknown> {
    const { files, folder } = this.#options;
    const seenAs = this.look();
    if (this.#isRead(seenAs)) return this.#theirs;
    const baseAs = this.#lookAtBase();
    const read = readView(files, folder, seenAs);
    for (let step = read.next(); ; step = read.next())
      if (step.done === true) {
        this.#take(seenAs, baseAs, step.value);
        return this.#theirs;
      }
  }

  #isRead(seenAs: string): boolean {
    return seenAs === this.#seenAs && this.#lookAtBase() === this.#baseAs;
  }

  #lookAtBase(): string {
    const { files, folder } = this.#options;
    const facts = files.facts(folder.viewBase);
    return facts === null ? "" : textOf(facts);
  }

  #take(seenAs: string, baseAs: string, read: ReadView): void {
    const { folder, onFinding } = this.#options;
    const { theirs, salvaged, base, changed, crc, baseCrc, isBaseTheirs } = read;
    [this.#seenAs, this.#baseAs, this.#salvaged] = [seenAs, baseAs, salvaged];
    [this.#seenCrc, this.#baseCrc, this.#isBaseTheirs] = [crc, baseCrc, isBaseTheirs];
    const path = folder.sessionsJson;
    if (salvaged !== null) onFinding(damagedFinding(path));
    if (theirs.size === 0 && base.size > 1) {
      const message = `sessions.json is empty where ${base.size} sessions were: taken for lost, and written again.`;
      onFinding(createFinding("INDEX_UNREADABLE", message, { path, repaired: true }));
    }
    for (const [key, entry] of theirs) {
      if (!(entry instanceof DeepJson)) continue;
      const message = "An entry of sessions.json is nested too deeply to be read; it is left as it is.";
      onFinding(createFinding("ENTRY_UNREADABLE", message, { path, key }));
    }
    [this.#theirs, this.#base, this.#changed] = [theirs, base, changed];
  }

  /** What this store wrote last, by key. To be asked after `entries`. */
  get written(): ReadonlyMap<string, unknown> {
    return this.#base;
  }

  /** What the other program changed since both agreed last; null when nothing. */
  foreignChanges({ rowOf, putBack }: KnownRows, nowMs: number): RowChange | null {
    const theirs = this.entries();
    if (this.#seenAs === "" || this.#isLost) return null;
    const changed: SessionRow[] = [];
    for (const key of this.#changed) {
      const fields = fieldsOf(theirs.get(key));
      if (theirs.get(key) instanceof DeepJson) continue;
      const base = fieldsOf(this.#base.get(key));
      const row = rowOf(key);
      const merged = row === null ? null : mergeForeign(row, { theirs: fields, base, nowMs });
      if (merged !== null && merged !== row) changed.push(merged);
      const id = fields?.["sessionId"];
      if (row !== null || typeof id !== "string" || base?.["sessionId"] === id) continue;
      const archived = putBack(id);
      if (archived !== null && readableEntry(archived) !== null)
        changed.push(restoredRow(archived, key, fields ?? {}, nowMs));
    }
    return changed.length === 0 ? null : { op: "save", rows: changed };
  }

  /** OpenClaw writes an empty index when it could not read the one there was. Nobody deletes several sessions at once. */
  get #isLost(): boolean {
    return this.#theirs.size === 0 && this.#base.size > 1;
  }

  /**
   * Keeps what the file said as the base of the next merge, once that is in the rows: what is changed back later is a
   * change too. Nothing when the file is another by now, or says of our sessions what the base says.
   */
  async agree(seenAs: string, isOurs: (key: string) => boolean, { underLock }: Agreement): Promise<void> {
    const { files } = this.#options;
    if (seenAs === "" || seenAs !== this.#seenAs || !this.isReadable || this.#isLost) return;
    if (!this.#changed.some((key) => this.#base.has(key) || isOurs(key))) return;
    const [crc, slices] = [this.#seenCrc, createSlices()];
    const theirs = this.#isBaseTheirs || this.#base.size === 0 ? { theirs: true } : {};
    const own = new Map<string, unknown>();
    for (const [key, entry] of this.#theirs) {
      const known = this.#base.get(key);
      if (isOurs(key)) own.set(key, entry);
      // Removed here, which the file does not say yet.
      else if (known !== undefined && idIn(known) === idIn(entry)) own.set(key, known);
      await slices.next();
    }
    const { parts } = await viewText(own, slices);
    const next = this.#temporary("sessions-view.json");
    let isKept = false;
    try {
      await this.#prepare(next, [Buffer.from(`${JSON.stringify({ crc, ...theirs })}\n`), ...parts], slices);
      isKept = await underLock(() => {
        if (this.look() !== seenAs || this.#seenAs !== seenAs || files.facts(next) === null) return false;
        this.#nameBase(next, () => undefined);
        [this.#base, this.#baseCrc, this.#isBaseTheirs] = [own, crc, theirs.theirs === true];
        this.#changed = [...this.#theirs.keys()].filter((key) => !own.has(key));
        return true;
      });
    } finally {
      if (!isKept) files.remove(next);
    }
  }

  /** Whether the file is written, for a number of sessions. */
  isWanted(activeCount: () => number): boolean {
    const { isWanted } = this.#options;
    return isWanted === true || (isWanted === null && activeCount() <= maxSessionsByDefault);
  }

  /**
   * Writes the file if it says something else, or is damaged: then it is kept under another name. Text and bytes are made in slices, so that nobody else in the process
   * waits for them; under the locks the new files only take their names. Gives what the file is then; null when another
   * program wrote it meanwhile, or has written something that was not taken over: then its changes come first.
   */
  async publish(
    rows: Iterable<SessionRow>,
    known: (row: SessionRow) => SessionRow,
    { isTaken, underLock, isPurged }: Publication,
  ): Promise<{ readonly seenAs: string } | null> {
    const { files, folder } = this.#options;
    // Of the moment: while this pauses rows may come and go.
    const active = [...rows].filter((row) => !row.isArchived);
    await this.refresh();
    const theirs = this.entries();
    const seenAs = this.#seenAs ?? "";
    if ((this.isSettling && !isPurged) || (active.length === 0 && seenAs === "")) return { seenAs };
    if (!isTaken(seenAs)) return null;
    const base = this.#base;
    const slices = createSlices();
    const wanted = new Map<string, unknown>();
    const ours = new Set(active.map(({ key }) => key));
    // Keys of theirs that were never ours stay: sessions whose transcript does not exist yet, or was not met yet.
    // So does a session they have begun since under a key of one that was archived.
    for (const [key, entry] of theirs)
      if (ours.has(key) || !base.has(key) || idIn(entry) !== idIn(base.get(key))) wanted.set(key, entry);
    for (const each of active) {
      await slices.next();
      const row = known(each);
      const entry = theirs.get(row.key);
      // What cannot be decoded is not said here, and stays as it was said before.
      if (readableEntry(row) === null) continue;
      wanted.set(
        row.key,
        entry instanceof DeepJson ? entry : viewOf(row, folder.session(row.fileName), fieldsOf(entry)),
      );
    }
    const own = new Map([...wanted].filter(([key]) => ours.has(key)));
    const text = await viewText(wanted, slices);
    if (seenAs !== "" && text.crc === this.#seenCrc && text.crc === this.#baseCrc && own.size === base.size)
      return { seenAs };
    const ownText = own.size === wanted.size ? text : await viewText(own, slices);
    const baseParts = [Buffer.from(`${JSON.stringify({ crc: text.crc })}\n`), ...ownText.parts];
    const view = this.#temporary("sessions.json");
    const next = this.#temporary("sessions-view.json");
    const salvaged = this.#salvaged;
    const damaged = salvaged === null || isPurged ? null : this.#damagedCopy();
    let written: string | null = null;
    try {
      await this.#prepare(view, text.parts, slices);
      await this.#prepare(next, baseParts, slices);
      if (damaged !== null)
        await this.#prepare(damaged.temporary, [readWhole(files, folder.sessionsJson) ?? Buffer.alloc(0)], slices);
      written = await underLock(() => this.#replace(seenAs, { view, next, damaged }));
    } finally {
      const made = [view, next, ...(damaged === null ? [] : [damaged.temporary])];
      if (written === null) for (const path of made) files.remove(path);
    }
    if (written === null) return null;
    if (damaged !== null) this.#options.onFinding(replacedFinding(folder.sessionsJson, damaged.path, salvaged ?? 0));
    this.#salvaged = null;
    [this.#seenAs, this.#theirs, this.#base] = [written, wanted, own];
    [this.#seenCrc, this.#baseCrc, this.#isBaseTheirs] = [text.crc, text.crc, false];
    this.#changed = [...wanted.keys()].filter((key) => !ours.has(key));
    return { seenAs: written };
  }

  /** Whether this store has ever written the file. */
  get isOurs(): boolean {
    const { files, folder } = this.#options;
    if (files.facts(folder.viewBase) === null) return false;
    this.entries();
    return !this.#isBaseTheirs;
  }

  /** Removes files in the making of other writers that were given up before a time; under the locks. */
  sweep(beforeMs: number): void {
    const { files, folder, writer } = this.#options;
    for (const name of files.names(folder.own)) {
      if (!/^sessions(-view)?\.json\..+\.tmp$/.test(name) || name.includes(`.json.${writer}.`)) continue;
      const path = `${folder.own}/${name}`;
      if (Number((files.facts(path)?.modifiedNs ?? 0n) / 1_000_000n) < beforeMs) files.remove(path);
    }
  }

  /** A name of its own for each: what both agree on may be kept while the file is being written. */
  #temporary(name: string): string {
    return this.#options.folder.temporary(`${name}.${this.#options.writer}.${++this.#made}`);
  }

  #damagedCopy(): DamagedCopy {
    const { files, folder } = this.#options;
    return { temporary: this.#temporary("sessions.json"), path: damagedPath(files, folder, this.#seenCrc ?? 0) };
  }

  /** Gives the prepared files their names, unless sessions.json is not what it was. What it is then; null: not done. */
  #replace(seenAs: string, { view, next, damaged }: PreparedView): string | null {
    const { files, folder } = this.#options;
    this.sweep(systemClock.nowMs() - abandonedMs);
    const facts = files.facts(view);
    // A purge takes away what is in the making: it may hold what was purged.
    if (this.look() !== seenAs || facts === null || files.facts(next) === null) return null;
    if (damaged !== null && files.facts(damaged.temporary) === null) return null;
    if (damaged !== null) keepDamaged(files, folder, damaged);
    this.#nameBase(next, () => {
      files.rename(view, folder.sessionsJson);
      flushFolder(files, folder.sessions);
    });
    // As it was made, and not as it is now: somebody may have written it already.
    return textOf(facts);
  }

  /** If the computer stops in between, the content of the file shows which base it belongs to. */
  #nameBase(next: string, nameView: () => void): void {
    const { files, folder } = this.#options;
    const facts = files.facts(next);
    // Of a writing that was cut off behind the name of the file: nothing but this tells what is there from another's change.
    const cutOff = crcOfBase(files, folder.viewNext);
    if (cutOff !== null && cutOff === this.#seenCrc) {
      files.rename(folder.viewNext, folder.viewBase);
      flushFolder(files, folder.own);
    }
    files.rename(next, folder.viewNext);
    flushFolder(files, folder.own);
    nameView();
    files.rename(folder.viewNext, folder.viewBase);
    flushFolder(files, folder.own);
    this.#baseAs = facts === null ? null : textOf(facts);
  }

  async #prepare(path: string, parts: readonly Uint8Array[], slices: Slices): Promise<void> {
    const { files } = this.#options;
    files.remove(path);
    const handle = withFileErrors(path, () => files.open(path, "create"));
    try {
      let sizeBytes = 0;
      for (const part of parts) {
        await slices.next();
        appendAll(files, handle, part, sizeBytes, path);
        sizeBytes += part.length;
      }
      await files.flush(handle);
    } catch (error) {
      throw fileError(error, path);
    } finally {
      files.close(handle);
    }
  }
}

/** Files in the making. */
interface PreparedView {
  readonly view: string;
  readonly next: string;
  /** Of the damaged file they take the place of. */
  readonly damaged: DamagedCopy | null;
}

function textOf({ identity, sizeBytes, modifiedNs }: FileFacts): string {
  return `${identity}:${sizeBytes}:${modifiedNs}`;
}

import { createFinding, systemClock } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
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
import { fieldsOf, idIn, type KnownRow, mergeForeign, restoredRow, viewOf } from "./merge-entry.ts";
import { crcOfBase, readView, viewText, type ReadView } from "./sessions-json.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { readableEntry } from "./undecodable-entry.ts";
import { createSlices, type Slices } from "./slices.ts";

export interface SessionsMirrorOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  /** Null means that the file is written while there are at most 10,000 sessions. */
  readonly isWanted: boolean | null;
  readonly onFinding: (finding: Finding) => void;
  /** Names this writer uniquely in the folder, because the names of unfinished files contain it. */
  readonly writer: string;
}

export interface Publication {
  /** Tests whether the rows include what other programs wrote into this version of the file. */
  isTaken(fingerprint: string): boolean;
  underLock(commit: () => string | null): Promise<string | null>;
  /** Is true when the file contains purged content. A damaged file is then replaced at once, without a copy. */
  readonly isPurged: boolean;
}

export interface Agreement {
  underLock(commit: () => boolean): Promise<boolean>;
}

export interface KnownRows {
  rowOf(key: string): KnownRow | null;
  putBack(sessionId: string): SessionRow | null;
}

/** No write takes this long, so an older unfinished file comes from a writer that was killed. */
const abandonedMs = 60 * 60 * 1000;
/** Limits the file by default, because writing it for this many sessions takes about a tenth of a second. */
const maxSessionsByDefault = 10_000;

/**
 * Mirrors the sessions in OpenClaw's sessions.json. The entries log is authoritative. A change in the file since this
 * store's last write comes from OpenClaw, and becomes a change of the session.
 */
export class SessionsMirror {
  readonly #options: SessionsMirrorOptions;
  #fingerprint: string | null = null;
  #theirs: ReadonlyMap<string, unknown> = new Map();
  #base: ReadonlyMap<string, unknown> = new Map();
  #changed: readonly string[] = [];
  /** Counts the readable entries of a damaged file; null when the file is intact. */
  #salvaged: number | null = null;
  #seenCrc: number | null = null;
  #baseCrc: number | null = null;
  #isBaseTheirs = false;
  /** Holds the base's fingerprint at the last read or write, because other processes of this store write it too. */
  #baseAs: string | null = null;
  /** Counts the unfinished files, so that each gets another name. */
  #made = 0;

  constructor(options: SessionsMirrorOptions) {
    this.#options = options;
  }

  /** Returns the file's current fingerprint; empty when the file does not exist. */
  look(): string {
    const facts = this.#options.files.facts(this.#options.folder.sessionsJson);
    return facts === null ? "" : textOf(facts);
  }

  /** Holds the file's fingerprint at the last read or write; null before the first. */
  get fingerprint(): string | null {
    return this.#fingerprint;
  }

  /**
   * Is false after a damaged file was read. Its readable part counts, and none of its missing entries is treated as
   * deleted.
   */
  get isReadable(): boolean {
    return this.#salvaged === null;
  }

  /** Is true while another program may still be writing the damaged file, which is then left unchanged. */
  get isSettling(): boolean {
    return !this.isReadable && isSettling(this.#options.files, this.#options.folder);
  }

  /**
   * Reads the file again when it was replaced or changed. It works in slices, so that other work can run in between.
   */
  async refresh(): Promise<void> {
    const { files, folder } = this.#options;
    for (let fingerprint = this.look(); !this.#isRead(fingerprint); fingerprint = this.look()) {
      const slices = createSlices();
      const baseAs = this.#lookAtBase();
      const read = readView(files, folder, fingerprint);
      for (let step = read.next(); ; step = read.next()) {
        if (step.done === true) {
          if (this.look() === fingerprint) this.#take(fingerprint, baseAs, step.value);
          break;
        }
        await slices.next();
      }
    }
  }

  /** Returns the file's entries by key. It reads the file again only when it was replaced or changed. */
  entries(): ReadonlyMap<string, unknown> {
    const { files, folder } = this.#options;
    const fingerprint = this.look();
    if (this.#isRead(fingerprint)) return this.#theirs;
    const baseAs = this.#lookAtBase();
    const read = readView(files, folder, fingerprint);
    for (let step = read.next(); ; step = read.next())
      if (step.done === true) {
        this.#take(fingerprint, baseAs, step.value);
        return this.#theirs;
      }
  }

  #isRead(fingerprint: string): boolean {
    return fingerprint === this.#fingerprint && this.#lookAtBase() === this.#baseAs;
  }

  #lookAtBase(): string {
    const { files, folder } = this.#options;
    const facts = files.facts(folder.viewBase);
    return facts === null ? "" : textOf(facts);
  }

  #take(fingerprint: string, baseAs: string, read: ReadView): void {
    const { folder, onFinding } = this.#options;
    const { theirs, salvaged, base, changed, crc, baseCrc, isBaseTheirs } = read;
    [this.#fingerprint, this.#baseAs, this.#salvaged] = [fingerprint, baseAs, salvaged];
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

  /** Holds the entries that this store wrote last, by key. Call `entries` first, which loads them. */
  get written(): ReadonlyMap<string, unknown> {
    return this.#base;
  }

  foreignChanges({ rowOf, putBack }: KnownRows, nowMs: number): RowChange | null {
    const theirs = this.entries();
    if (this.#fingerprint === "" || this.#isLost) return null;
    const changed: SessionRow[] = [];
    for (const key of this.#changed) {
      const fields = fieldsOf(theirs.get(key));
      if (theirs.get(key) instanceof DeepJson) continue;
      const base = fieldsOf(this.#base.get(key));
      const known = rowOf(key);
      const merged = known === null ? null : mergeForeign(known, { theirs: fields, base, nowMs });
      if (merged !== null && merged !== known?.row) changed.push(merged);
      const id = fields?.["sessionId"];
      if (known !== null || typeof id !== "string" || base?.["sessionId"] === id) continue;
      const archived = putBack(id);
      if (archived !== null && readableEntry(archived) !== null)
        changed.push(restoredRow(archived, key, fields ?? {}, nowMs));
    }
    return changed.length === 0 ? null : { op: "save", rows: changed };
  }

  /** OpenClaw writes an empty file when it could not read the previous one, so an empty file deletes no sessions. */
  get #isLost(): boolean {
    return this.#theirs.size === 0 && this.#base.size > 1;
  }

  /**
   * Keeps the file's content as the base of the next merge, once the rows include it. A later change back is then a
   * change too. Does nothing when the file was replaced, or equals the base.
   */
  async agree(fingerprint: string, isOurs: (key: string) => boolean, { underLock }: Agreement): Promise<void> {
    const { files } = this.#options;
    if (fingerprint === "" || fingerprint !== this.#fingerprint || !this.isReadable || this.#isLost) return;
    if (!this.#changed.some((key) => this.#base.has(key) || isOurs(key))) return;
    const [crc, slices] = [this.#seenCrc, createSlices()];
    const theirs = this.#isBaseTheirs || this.#base.size === 0 ? { theirs: true } : {};
    const own = new Map<string, unknown>();
    for (const [key, entry] of this.#theirs) {
      const known = this.#base.get(key);
      if (isOurs(key)) own.set(key, entry);
      // The session was removed here and the file still has it. Its previous base entry stays, so that the file is no
      // foreign change.
      else if (known !== undefined && idIn(known) === idIn(entry)) own.set(key, known);
      await slices.next();
    }
    const { parts } = await viewText(own, slices);
    const next = this.#temporary("sessions-view.json");
    let isKept = false;
    try {
      await this.#prepare(next, [Buffer.from(`${JSON.stringify({ crc, ...theirs })}\n`), ...parts], slices);
      isKept = await underLock(() => {
        if (this.look() !== fingerprint || this.#fingerprint !== fingerprint || files.facts(next) === null)
          return false;
        this.#nameBase(next, () => undefined);
        [this.#base, this.#baseCrc, this.#isBaseTheirs] = [own, crc, theirs.theirs === true];
        this.#changed = [...this.#theirs.keys()].filter((key) => !own.has(key));
        return true;
      });
    } finally {
      if (!isKept) files.remove(next);
    }
  }

  isWanted(activeCount: number): boolean {
    const { isWanted } = this.#options;
    return isWanted === true || (isWanted === null && activeCount <= maxSessionsByDefault);
  }

  /**
   * Writes the file if its content differs or is damaged; a damaged file is renamed and kept. The text is built in
   * slices, and under the locks files are only renamed. Returns the new fingerprint. Returns null when another program
   * wrote the file meanwhile, or wrote a change that is not merged yet.
   */
  async publish(
    rows: Iterable<SessionRow>,
    known: (row: SessionRow) => SessionRow,
    { isTaken, underLock, isPurged }: Publication,
  ): Promise<{ readonly fingerprint: string } | null> {
    const { files, folder } = this.#options;
    // The rows are copied now, because they may change during a pause.
    const active = [...rows].filter((row) => !row.isArchived);
    await this.refresh();
    const theirs = this.entries();
    const fingerprint = this.#fingerprint ?? "";
    if ((this.isSettling && !isPurged) || (active.length === 0 && fingerprint === "")) return { fingerprint };
    if (!isTaken(fingerprint)) return null;
    const base = this.#base;
    const slices = createSlices();
    const wanted = new Map<string, unknown>();
    const ours = new Set(active.map(({ key }) => key));
    // A key that this store never wrote stays: its transcript does not exist or was not found yet. A session that
    // another program started under the key of an archived one stays too.
    for (const [key, entry] of theirs)
      if (ours.has(key) || !base.has(key) || idIn(entry) !== idIn(base.get(key))) wanted.set(key, entry);
    for (const each of active) {
      await slices.next();
      const row = known(each);
      const entry = theirs.get(row.key);
      // An undecodable entry cannot be mirrored, so its previous text stays in the file.
      if (readableEntry(row) === null) continue;
      wanted.set(
        row.key,
        entry instanceof DeepJson ? entry : viewOf(row, folder.session(row.fileName), fieldsOf(entry)),
      );
    }
    const own = new Map([...wanted].filter(([key]) => ours.has(key)));
    const text = await viewText(wanted, slices);
    if (fingerprint !== "" && text.crc === this.#seenCrc && text.crc === this.#baseCrc && own.size === base.size)
      return { fingerprint };
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
      written = await underLock(() => this.#replace(fingerprint, { view, next, damaged }));
    } finally {
      const made = [view, next, ...(damaged === null ? [] : [damaged.temporary])];
      if (written === null) for (const path of made) files.remove(path);
    }
    if (written === null) return null;
    if (damaged !== null) this.#options.onFinding(replacedFinding(folder.sessionsJson, damaged.path, salvaged ?? 0));
    this.#salvaged = null;
    [this.#fingerprint, this.#theirs, this.#base] = [written, wanted, own];
    [this.#seenCrc, this.#baseCrc, this.#isBaseTheirs] = [text.crc, text.crc, false];
    this.#changed = [...wanted.keys()].filter((key) => !ours.has(key));
    return { fingerprint: written };
  }

  get isOurs(): boolean {
    const { files, folder } = this.#options;
    if (files.facts(folder.viewBase) === null) return false;
    this.entries();
    return !this.#isBaseTheirs;
  }

  /** Removes unfinished files of other writers that are older than a time. Call it under the locks. */
  sweep(beforeMs: number): void {
    const { files, folder, writer } = this.#options;
    for (const name of files.names(folder.own)) {
      if (!/^sessions(-view)?\.json\..+\.tmp$/.test(name) || name.includes(`.json.${writer}.`)) continue;
      const path = `${folder.own}/${name}`;
      if (Number((files.facts(path)?.modifiedNs ?? 0n) / 1_000_000n) < beforeMs) files.remove(path);
    }
  }

  /** Each file gets its own name, because `agree` may run during `publish`. */
  #temporary(name: string): string {
    return this.#options.folder.temporary(`${name}.${this.#options.writer}.${++this.#made}`);
  }

  #damagedCopy(): DamagedCopy {
    const { files, folder } = this.#options;
    return { temporary: this.#temporary("sessions.json"), path: damagedPath(files, folder, this.#seenCrc ?? 0) };
  }

  /**
   * Renames the prepared files, unless sessions.json changed. Returns the new fingerprint; null when it was not done.
   */
  #replace(fingerprint: string, { view, next, damaged }: PreparedView): string | null {
    const { files, folder } = this.#options;
    this.sweep(systemClock.nowMs() - abandonedMs);
    const facts = files.facts(view);
    // A purge removes unfinished files, because they may contain the purged session.
    if (this.look() !== fingerprint || facts === null || files.facts(next) === null) return null;
    if (damaged !== null && files.facts(damaged.temporary) === null) return null;
    if (damaged !== null) keepDamaged(files, folder, damaged);
    this.#nameBase(next, () => {
      files.rename(view, folder.sessionsJson);
      flushFolder(files, folder.sessions);
    });
    // The fingerprint is that of the prepared file, because another program may have written the file already.
    return textOf(facts);
  }

  /**
   * Renames the base before and after the file, so that after a crash the file's checksum shows which base belongs to
   * it.
   */
  #nameBase(next: string, nameView: () => void): void {
    const { files, folder } = this.#options;
    const facts = files.facts(next);
    // After an interrupted write, only this base distinguishes the store's content in the file from another program's
    // change.
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

interface PreparedView {
  readonly view: string;
  readonly next: string;
  readonly damaged: DamagedCopy | null;
}

function textOf({ identity, sizeBytes, modifiedNs }: FileFacts): string {
  return `${identity}:${sizeBytes}:${modifiedNs}`;
}

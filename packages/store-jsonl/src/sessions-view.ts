import { createFinding, type Finding } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import { nextUpdatedAtMs, ownEntry } from "@throughline/core/store";
import type { AgentFolder } from "./agent-folder.ts";
import { appendAll, fileError, flushFolder } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { DeepJson } from "./json-members.ts";
import { isSame, readView, type ReadView } from "./read-view.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import { createSlices, type Slices } from "./slices.ts";
import { viewText } from "./view-text.ts";

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
}

type Fields = Readonly<Record<string, unknown>>;

/** Nobody takes so long to write it: what is left of older ones is of writers that were killed. */
const abandonedMs = 60 * 60 * 1000;
/** Writing the whole file again takes about a tenth of a second for so many sessions. */
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
  #isReadable = true;
  #seenCrc: number | null = null;
  /** Of the sessions.json that `viewBase` was written with. */
  #baseCrc: number | null = null;

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

  /** False after the file was read and could not be. */
  get isReadable(): boolean {
    return this.#isReadable;
  }

  /** Reads the file again when it is another or changed, with others running in between. */
  async refresh(): Promise<void> {
    const { files, folder } = this.#options;
    for (let seenAs = this.look(); seenAs !== this.#seenAs; seenAs = this.look()) {
      const slices = createSlices();
      const read = readView(files, folder, seenAs);
      for (let step = read.next(); ; step = read.next()) {
        if (step.done === true) {
          if (this.look() === seenAs) this.#take(seenAs, step.value);
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
    if (seenAs === this.#seenAs) return this.#theirs;
    const read = readView(files, folder, seenAs);
    for (let step = read.next(); ; step = read.next())
      if (step.done === true) {
        this.#take(seenAs, step.value);
        return this.#theirs;
      }
  }

  #take(seenAs: string, { theirs, base, changed, crc, baseCrc }: ReadView): void {
    const { folder, onFinding } = this.#options;
    this.#seenAs = seenAs;
    [this.#seenCrc, this.#baseCrc] = [crc, baseCrc];
    this.#isReadable = theirs !== null;
    const path = folder.sessionsJson;
    if (theirs === null)
      onFinding(
        createFinding("INDEX_UNREADABLE", "sessions.json is not a JSON object; it is left as it is.", { path }),
      );
    if (theirs?.size === 0 && base.size > 1) {
      const message = `sessions.json is empty where ${base.size} sessions were: taken for lost, and written again.`;
      onFinding(createFinding("INDEX_UNREADABLE", message, { path, repaired: true }));
    }
    for (const [key, entry] of theirs ?? []) {
      if (!(entry instanceof DeepJson)) continue;
      const message = "An entry of sessions.json is nested too deeply to be read; it is left as it is.";
      onFinding(createFinding("ENTRY_UNREADABLE", message, { path, key }));
    }
    [this.#theirs, this.#base, this.#changed] = [theirs ?? new Map(), base, changed];
  }

  /** What this store wrote last, by key. To be asked after `entries`. */
  get written(): ReadonlyMap<string, unknown> {
    return this.#base;
  }

  /** What the other program changed since we wrote the file; null when nothing. `rowOf`: the active session of a key. */
  foreignChanges(rowOf: (key: string) => SessionRow | null, nowMs: number): RowChange | null {
    const theirs = this.entries();
    if (!this.#isReadable || this.#seenAs === "") return null;
    // OpenClaw writes an empty index when it could not read the one there was. Nobody deletes several sessions at once.
    if (theirs.size === 0 && this.#base.size > 1) return null;
    const changed: SessionRow[] = [];
    for (const key of this.#changed) {
      const row = theirs.get(key) instanceof DeepJson ? null : rowOf(key);
      if (row === null) continue;
      const merged = mergeForeign(row, fieldsOf(theirs.get(key)), fieldsOf(this.#base.get(key)), nowMs);
      if (merged !== row) changed.push(merged);
    }
    return changed.length === 0 ? null : { op: "save", rows: changed };
  }

  /** Whether the file is written, for so many sessions. */
  isWanted(activeCount: () => number): boolean {
    const { isWanted } = this.#options;
    return isWanted === true || (isWanted === null && activeCount() <= maxSessionsByDefault);
  }

  /**
   * Writes the file if it says something else. Text and bytes are made in slices, so that nobody else in the process
   * waits for them; under the locks the new files only take their names. Gives what the file is then; null when another
   * program wrote it meanwhile, or has written something that was not taken over: then its changes come first.
   */
  async publish(
    rows: Iterable<SessionRow>,
    known: (row: SessionRow) => SessionRow,
    { isTaken, underLock }: Publication,
  ): Promise<{ readonly seenAs: string } | null> {
    const { files, folder } = this.#options;
    // Of the moment: while this pauses rows may come and go.
    const active = [...rows].filter((row) => !row.isArchived);
    await this.refresh();
    const theirs = this.entries();
    const seenAs = this.#seenAs ?? "";
    if (!this.#isReadable || (active.length === 0 && seenAs === "")) return { seenAs };
    if (!isTaken(seenAs)) return null;
    const base = this.#base;
    const slices = createSlices();
    const wanted = new Map<string, unknown>();
    const ours = new Set(active.map(({ key }) => key));
    // Keys of theirs that were never ours stay: sessions whose transcript does not exist yet, or was not met yet.
    for (const [key, entry] of theirs) if (ours.has(key) || !base.has(key)) wanted.set(key, entry);
    for (const each of active) {
      await slices.next();
      const row = known(each);
      const entry = theirs.get(row.key);
      wanted.set(row.key, entry instanceof DeepJson ? entry : viewOf(row, fieldsOf(entry)));
    }
    const own = new Map([...wanted].filter(([key]) => ours.has(key)));
    const text = await viewText(wanted, slices);
    if (seenAs !== "" && text.crc === this.#seenCrc && text.crc === this.#baseCrc && own.size === base.size)
      return { seenAs };
    const ownText = own.size === wanted.size ? text : await viewText(own, slices);
    const view = await this.#prepare(folder.temporary(`sessions.json.${this.#options.writer}`), text.parts, slices);
    const baseParts = [Buffer.from(`${JSON.stringify({ crc: text.crc })}\n`), ...ownText.parts];
    const next = await this.#prepare(folder.temporary(`sessions-view.json.${this.#options.writer}`), baseParts, slices);
    let written: string | null = null;
    try {
      written = await underLock(() => this.#replace(seenAs, view, next));
    } finally {
      if (written === null) for (const path of [view, next]) files.remove(path);
    }
    if (written === null) return null;
    [this.#seenAs, this.#theirs, this.#base] = [written, wanted, own];
    [this.#seenCrc, this.#baseCrc] = [text.crc, text.crc];
    this.#changed = [...wanted.keys()].filter((key) => !ours.has(key));
    return { seenAs: written };
  }

  /** Whether this store has ever written the file. */
  get isOurs(): boolean {
    const { files, folder } = this.#options;
    return files.facts(folder.viewBase) !== null;
  }

  /** Removes files in the making of other writers that were given up before a time; under the locks. */
  sweep(beforeMs: number): void {
    const { files, folder, writer } = this.#options;
    for (const name of files.names(folder.own)) {
      if (!/^sessions(-view)?\.json\..+\.tmp$/.test(name) || name.endsWith(`.${writer}.tmp`)) continue;
      const path = `${folder.own}/${name}`;
      if (Number((files.facts(path)?.modifiedNs ?? 0n) / 1_000_000n) < beforeMs) files.remove(path);
    }
  }

  /** Gives the prepared files their names, unless sessions.json is not what it was. What it is then; null: not done. */
  #replace(seenAs: string, view: string, next: string): string | null {
    const { files, folder } = this.#options;
    this.sweep(systemClock.nowMs() - abandonedMs);
    const facts = files.facts(view);
    // A purge takes away what is in the making: it may hold what was purged.
    if (this.look() !== seenAs || facts === null || files.facts(next) === null) return null;
    // Should the computer stop in between, the base is told from the one before by what the file holds.
    files.rename(next, folder.viewNext);
    flushFolder(files, folder.own);
    files.rename(view, folder.sessionsJson);
    flushFolder(files, folder.sessions);
    files.rename(folder.viewNext, folder.viewBase);
    flushFolder(files, folder.own);
    // As it was made, and not as it is now: somebody may have written it already.
    return textOf(facts);
  }

  async #prepare(path: string, parts: readonly Uint8Array[], slices: Slices): Promise<string> {
    const { files } = this.#options;
    try {
      files.remove(path);
      const handle = files.open(path, "create");
      try {
        let sizeBytes = 0;
        for (const part of parts) {
          await slices.next();
          appendAll(files, handle, part, sizeBytes, path);
          sizeBytes += part.length;
        }
        await files.flush(handle);
      } finally {
        files.close(handle);
      }
    } catch (error) {
      files.remove(path);
      throw fileError(error, path);
    }
    return path;
  }
}

function textOf({ identity, sizeBytes, modifiedNs }: FileFacts): string {
  return `${identity}:${sizeBytes}:${modifiedNs}`;
}

/** The row after what another program did to its entry. Where both changed a field the later one wins. */
function mergeForeign(row: SessionRow, theirs: Fields | null, base: Fields | null, nowMs: number): SessionRow {
  if (theirs === null)
    return base?.["sessionId"] === row.sessionId ? { ...row, isArchived: true, revision: row.revision + 1 } : row;
  const theirId = theirs["sessionId"];
  if (theirId !== row.sessionId) {
    // OpenClaw has begun a new session under the key; its transcript is taken over when there is one.
    return typeof theirId === "string" && base?.["sessionId"] === row.sessionId
      ? { ...row, isArchived: true, revision: row.revision + 1 }
      : row;
  }
  const ours = fieldsOf(viewOf(row)) ?? {};
  const isLater = Number(theirs["updatedAt"] ?? 0) >= row.updatedAtMs;
  const entry = new Map(Object.entries(row.entry));
  for (const field of new Set([...Object.keys(theirs), ...Object.keys(base ?? {})])) {
    const isChanged = !isSame(theirs[field], base?.[field]) && !isSame(theirs[field], ours[field]);
    const isConflict = !isSame(ours[field], base?.[field]);
    if (!isChanged || field === "sessionId" || (isConflict && !isLater)) continue;
    if (Object.hasOwn(theirs, field)) entry.set(field, theirs[field]);
    else entry.delete(field);
  }
  const merged = ownEntry(Object.fromEntries(entry));
  const { updatedAtMs } = nextUpdatedAtMs(row.updatedAtMs, theirs["updatedAt"], nowMs);
  const isUnchanged = JSON.stringify(merged) === JSON.stringify(row.entry);
  return isUnchanged && updatedAtMs === row.updatedAtMs
    ? row
    : { ...row, entry: merged, updatedAtMs, revision: row.revision + (isUnchanged ? 0 : 1) };
}

/** Another process of ours may know of later activity than this one has looked at. */
function viewOf(row: SessionRow, written: Fields | null = null): unknown {
  const writtenMs = written?.["sessionId"] === row.sessionId ? Number(written["updatedAt"]) : Number.NaN;
  const updatedAt = writtenMs > row.updatedAtMs ? writtenMs : row.updatedAtMs;
  return Object.fromEntries([...Object.entries(row.entry), ["sessionId", row.sessionId], ["updatedAt", updatedAt]]);
}

function fieldsOf(value: unknown): Fields | null {
  if (value instanceof DeepJson) return null;
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

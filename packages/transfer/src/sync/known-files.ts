import { createHash } from "node:crypto";
import { dirname, sep } from "node:path";
import { createWorkSlices, isFields } from "@throughline/core/internal";
import type { SessionVersion } from "@throughline/foreign-formats/internal";
import { fileFacts, type FileFacts } from "../node/source-files.ts";
import type { SearchLook } from "../search-look.ts";

/**
 * Describes a file as it was when it was imported. The values are size in bytes, time of the last write and of the last
 * change in milliseconds, inode, and the time of the look. Of a session in a database only the last change, a hash in place
 * of the inode, and the time of the look are known. Ids of sessions follow that the file's name does not hold,
 * and `true` if the file states titles of other sessions.
 */
type KnownFile = readonly [...OpenedFile, ids?: readonly string[], hasTitles?: boolean];

type OpenedFile = readonly [
  sizeBytes: number,
  modifiedMs: number,
  changedMs: number,
  inode: number,
  lookedAtMs: number,
];

/**
 * File systems state times in ticks of up to two seconds. A write within the tick of the look may leave the times as
 * they were, so a file that young is looked at again.
 */
const tickMs = 2000;

/** A home that holds more files than this keeps the rest unknown: they are opened again in the next run. */
const mostFiles = 1_000_000;

const mostInText = 500;

/** Names what changed in a folder: some of its files, or any of them. */
export type ChangedNames = ReadonlySet<string> | "any";

/** Limits a search to folders in which something changed. */
export type ChangedFolders = ReadonlyMap<string, ChangedNames>;

/**
 * Remembers the files that an import has read, by what the system states about them. A wrong or lost memory costs time
 * only: a file that is not known is imported again, and that adds nothing.
 */
export class KnownFiles implements SearchLook {
  readonly #nowMs: () => number;
  readonly #files = new Map<string, KnownFile>();
  /** Holds files that this run opens, as they were before. */
  readonly #opened = new Map<string, OpenedFile>();
  readonly #ids = new Map<string, string[]>();
  readonly #titled = new Map<string, boolean>();
  readonly #refused = new Set<string>();
  readonly #read = new Set<string>();
  readonly #entered = new Set<string>();
  /** Holds files that grew, as they are now, and those of them whose growth was imported. */
  readonly #larger = new Map<string, OpenedFile>();
  readonly #grown = new Set<string>();
  readonly #onFolder: (path: string) => void;
  #folders = new Set<string>();
  #changed: ChangedFolders | null = null;
  #above: ReadonlySet<string> = new Set();
  #slices: ReturnType<typeof createWorkSlices> = createWorkSlices();
  #seen: Set<string> | null = null;
  /** Counts the files of the current search that were not opened. */
  unchanged = 0;
  /** True if the memory differs from what `toJson` returned last. */
  isChanged = false;

  /** @param onFolder receives each folder before the search lists it */
  constructor(nowMs: () => number, onFolder: (path: string) => void = () => {}) {
    this.#nowMs = nowMs;
    this.#onFolder = onFolder;
  }

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  /** Lists the folders that the searches listed. */
  get folders(): ReadonlySet<string> {
    return this.#folders;
  }

  /** Yields each known file with the time of its last write. */
  *files(): Generator<readonly [path: string, modifiedMs: number]> {
    for (const [path, [, modifiedMs]] of this.#files) yield [path, modifiedMs];
  }

  /** Begins a search, of all folders or of those in which something changed. */
  begin(changed: ChangedFolders | null): void {
    this.#changed = changed;
    this.#above = new Set([...(changed?.keys() ?? [])].flatMap(foldersAbove));
    this.#opened.clear();
    this.#refused.clear();
    this.#titled.clear();
    this.#entered.clear();
    this.#larger.clear();
    this.#grown.clear();
    this.#slices = createWorkSlices();
    this.unchanged = 0;
    this.#seen = changed === null ? new Set() : null;
    if (changed === null) this.#folders = new Set();
  }

  /** Receives a source that was imported, or refused: its file is then opened again in the next run. */
  took(path: string, isRefused: boolean): void {
    // A session in a database, or one of several in a file, has the path of the file and its own id.
    const at = path.lastIndexOf("#");
    if (!isRefused) this.#read.add(path);
    else for (const each of at > 0 ? [path, path.slice(0, at)] : [path]) this.#refused.add(each);
  }

  /**
   * Remembers files that the search has opened.
   *
   * @param which `all` when the search has ended; `read` for those that gave their only source
   */
  keep(which: "all" | "read"): void {
    for (const [path, facts] of this.#opened) {
      if (this.#refused.has(path) || (which === "read" && !this.#read.has(path))) continue;
      if (which === "read") this.#opened.delete(path);
      if (this.#files.size >= mostFiles && !this.#files.has(path)) continue;
      const ids = this.#ids.get(path) ?? [];
      if (this.#titled.get(path) === true) this.#files.set(path, [...facts, ids, true]);
      else this.#files.set(path, ids.length > 0 ? [...facts, ids] : facts);
      this.isChanged = true;
    }
    if (which === "all") this.#opened.clear();
    this.#read.clear();
  }

  /** Forgets files that a search of all folders did not find. */
  forgetMissing(): void {
    if (this.#seen === null) return;
    for (const path of this.#files.keys()) {
      // The sessions of a database that is as it was are not listed.
      if (this.#seen.has(path) || this.#seen.has(path.slice(0, Math.max(path.lastIndexOf("#"), 0)))) continue;
      this.#files.delete(path);
      this.isChanged = true;
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#files.clear();
    this.isChanged = true;
  }

  entersFolder(path: string): boolean {
    // A search may ask for one folder several times.
    if (this.#entered.has(path)) return true;
    const isListed = this.#folders.has(path) && this.#changed?.has(path) === false && !this.#above.has(path);
    // A place may be a file, and a folder may have been replaced.
    if (isListed && !this.#mayHaveChanged(path)) return false;
    this.#entered.add(path);
    this.#folders.add(path);
    this.#onFolder(path);
    return true;
  }

  async isKnown(path: string, others?: () => Iterable<string> | AsyncIterable<string>): Promise<boolean> {
    if (this.#opened.has(path)) return false;
    const known = this.#files.get(path);
    this.#seen?.add(path);
    // The next pass takes lines that were written since then, because each write is an event.
    if (this.#grown.has(path)) return true;
    if (known !== undefined && !this.#mayHaveChanged(path)) {
      this.unchanged += 1;
      return true;
    }
    const pause = this.#slices.next();
    if (pause !== undefined) await pause;
    const lookedAtMs = this.#nowMs();
    const facts = await factsOf(path, others);
    if (facts === null) return false;
    if (known !== undefined && isSame(known, facts)) {
      this.unchanged += 1;
      return true;
    }
    const { sizeBytes, modifiedMs, changedMs, inode } = facts;
    this.#opened.set(path, [sizeBytes, modifiedMs, changedMs, inode, lookedAtMs]);
    this.#ids.delete(path);
    return false;
  }

  isKnownSession(path: string, { text, changedMs }: SessionVersion): boolean {
    const lookedAtMs = this.#nowMs();
    const inode = shortHash(text);
    const known = this.#files.get(path);
    this.#seen?.add(path);
    if (known !== undefined && isSame(known, { sizeBytes: 0, modifiedMs: 0, changedMs, inode, isFolder: false })) {
      this.unchanged += 1;
      return true;
    }
    this.#opened.set(path, [0, 0, changedMs, inode, lookedAtMs]);
    return false;
  }

  hasNoTitles(path: string): boolean {
    const known = this.#files.get(path);
    return known !== undefined && known[6] !== true && !this.#opened.has(path);
  }

  sawTitles(path: string, hasTitles: boolean): void {
    this.#titled.set(path, hasTitles);
  }

  sessionIdsOf(path: string): readonly string[] {
    const ids = this.#files.get(path)?.[5] ?? [];
    return [...ids, nameOf(path)];
  }

  sawSession(path: string, sessionId: string): void {
    if (nameOf(path) === sessionId) return;
    this.#ids.set(path, [...(this.#ids.get(path) ?? []), sessionId]);
  }

  hasGrown(path: string): boolean {
    const known = this.#files.get(path);
    const lookedAtMs = this.#nowMs();
    const facts = known === undefined ? null : fileFacts(path);
    if (known === undefined || facts === null || facts.inode !== known[3] || facts.sizeBytes <= known[0]) return false;
    const { sizeBytes, modifiedMs, changedMs, inode } = facts;
    this.#larger.set(path, [sizeBytes, modifiedMs, changedMs, inode, lookedAtMs]);
    return true;
  }

  tookGrowth(path: string): void {
    const [known, larger] = [this.#files.get(path), this.#larger.get(path)];
    if (known === undefined || larger === undefined) return;
    const [, , , , , ids = [], hasTitles = false] = known;
    this.#files.set(path, [...larger, ids, hasTitles]);
    this.#grown.add(path);
    this.isChanged = true;
  }

  /** Yields the memory as JSON texts of at most 500 files of one folder each. */
  *texts(): Generator<string> {
    let [folder, files, count]: [string, Record<string, KnownFile>, number] = ["", {}, 0];
    for (const [path, known] of this.#files) {
      const parent = dirname(path);
      if (count > 0 && (parent !== folder || count === mostInText)) {
        yield JSON.stringify({ folder, files });
        [files, count] = [{}, 0];
      }
      folder = parent;
      files[path.slice(parent.length)] = known;
      count += 1;
    }
    if (count > 0) yield JSON.stringify({ folder, files });
    this.isChanged = false;
  }

  /** Takes a text of `texts`. What has another form is left out. */
  take(json: unknown): void {
    if (!isFields(json)) return;
    const { folder, files } = json;
    if (typeof folder !== "string" || !isFields(files)) return;
    for (const [name, known] of Object.entries(files)) if (isKnownFile(known)) this.#files.set(folder + name, known);
  }

  /** Forgets that a folder was listed, because it was removed or replaced. */
  forgetFolder(path: string): void {
    for (const folder of this.#folders)
      if (folder === path || folder.startsWith(`${path}${sep}`)) this.#folders.delete(folder);
  }

  #mayHaveChanged(path: string): boolean {
    if (this.#changed === null) return true;
    const folder = dirname(path);
    const names = this.#changed.get(folder);
    return names !== undefined && (names === "any" || names.has(path.slice(folder.length + 1)));
  }
}

/** Combines a file with those that belong to it. Null when the file is missing. */
async function factsOf(
  path: string,
  others: (() => Iterable<string> | AsyncIterable<string>) | undefined,
): Promise<FileFacts | null> {
  const facts = fileFacts(path);
  if (facts === null || others === undefined) return facts;
  const more: FileFacts[] = [];
  for await (const other of others()) {
    const found = fileFacts(other);
    if (found !== null) more.push(found);
  }
  if (more.length === 0) return facts;
  const all = [facts, ...more];
  return {
    sizeBytes: all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    modifiedMs: Math.max(...all.map(({ modifiedMs }) => modifiedMs)),
    changedMs: Math.max(...all.map(({ changedMs }) => changedMs)),
    inode: shortHash(JSON.stringify(all)),
    isFolder: false,
  };
}

/** Takes the place of an inode, where several facts count as one. */
function shortHash(text: string): number {
  return createHash("sha256").update(text).digest().readUIntBE(0, 6);
}

function isSame(known: KnownFile, facts: FileFacts): boolean {
  const [sizeBytes, modifiedMs, changedMs, inode, lookedAtMs] = known;
  return (
    sizeBytes === facts.sizeBytes &&
    modifiedMs === facts.modifiedMs &&
    changedMs === facts.changedMs &&
    inode === facts.inode &&
    lookedAtMs - changedMs >= tickMs
  );
}

/** Most programs name a file by the id of its session. */
function nameOf(path: string): string {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  return name.replace(/\.jsonl?$/, "");
}

function foldersAbove(path: string): readonly string[] {
  const folders: string[] = [];
  for (let at = dirname(path); ; at = dirname(at)) {
    folders.push(at);
    if (dirname(at) === at) return folders;
  }
}

function isKnownFile(value: unknown): value is KnownFile {
  if (!Array.isArray(value) || value.length < 5 || value.length > 7) return false;
  const [ids, hasTitles] = value.slice(5) as unknown[];
  return (
    value.slice(0, 5).every((each) => typeof each === "number") &&
    (ids === undefined || (Array.isArray(ids) && ids.every((id) => typeof id === "string"))) &&
    (hasTitles === undefined || typeof hasTitles === "boolean")
  );
}

import { constants, lstatSync, type BigIntStats, type Dirent } from "node:fs";
import { lstat, open, opendir, readlink, realpath, rename, unlink, type FileHandle } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import type { RandomSource } from "@throughline/core";
import { isBelow, namesBelow } from "./contained-path.ts";
import { identityOf, lookUpDenied, type DeniedPlaces, type Identity } from "./denied-places.ts";
import { holdFolder, orNull, systemDescriptors, type HeldFolder } from "./held-folder.ts";
import { repositoryMarks, type PlaceUse } from "./hidden-names.ts";
import { allowedDepth, isHiddenPath, isWritable, namesAsWritten, type NameRules } from "./name-rules.ts";
import { quoted, refusalOf, WorkspaceToolRefusal } from "./tool-refusal.ts";

/**
 * Locates a path after every symbolic link was followed. Opening a location does not trust this result: it descends
 * name by name and refuses a name that has become a link meanwhile.
 */
export interface Place {
  /** Holds the path as the model wrote it, for messages. */
  readonly path: string;
  /** Holds the names from the root. None of them was a link at the time of the lookup. */
  readonly names: readonly string[];
}

/** Holds the state of a file, to detect a change by another process. */
export interface FileState {
  readonly mode: number;
  readonly sizeBytes: number;
  readonly version: string;
}

export interface OpenedFile extends FileState {
  readonly handle: FileHandle;
}

export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** Is null for entries that are not files, and for a file that disappeared meanwhile. */
  readonly sizeBytes: number | null;
  /** Holds the target of a link as the link states it; null for other entries. */
  readonly target: string | null;
  /** Is true for entries that no tool opens. */
  readonly isDenied: boolean;
}

/**
 * All access to the files of a workspace goes through this interface. Every method throws WorkspaceToolRefusal for a
 * denied path.
 */
export interface WorkspaceFolder {
  /** @throws {WorkspaceToolRefusal} for a path outside of the workspace, and for an invalid path */
  locate(path: string): Promise<Place>;
  openFile(place: Place): Promise<OpenedFile>;
  /** Reads the state of a file; null when no file exists at the location. */
  stateOf(place: Place): Promise<FileState | null>;
  /**
   * Lists at most `most` entries of a folder, in the order of their names. `isWhole` is false when the folder has more.
   */
  list(place: Place, most: number): Promise<{ readonly entries: readonly FolderEntry[]; readonly isWhole: boolean }>;
  /**
   * Replaces a file in one step, so that no reader sees half of it. Missing folders are created.
   *
   * @param before the state that the file must still have; null when no file may exist. The mode of an existing file is
   * kept. A new file gets mode 0666 reduced by the umask.
   */
  replace(place: Place, content: Uint8Array, before: FileState | null): Promise<void>;
}

export interface WorkspaceFolderOptions {
  readonly root: string;
  /** Denies files and folders with everything below them. @default [] */
  readonly deny?: readonly string[] | undefined;
  /** Denies files and the files beside them whose names extend the denied name. @default [] */
  readonly denyFiles?: readonly string[] | undefined;
  /** Allows names that begin with a dot. @default [] */
  readonly allow?: readonly string[] | undefined;
  /** Limits the folders in which files are written. @default the whole workspace */
  readonly writable?: readonly string[] | undefined;
  readonly random: RandomSource;
  /**
   * Names the directory that lists open folders by descriptor; null when the system has none.
   * @default that of this system
   */
  readonly descriptors?: string | null | undefined;
}

const { O_CREAT, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The kernel's file systems expose the memory and the environment of processes, and switches of the kernel. */
const kernelFolders = ["/proc", "/sys"];

interface Rules extends NameRules {
  readonly denied: DeniedPlaces;
}

interface Opening {
  readonly place: Place;
  readonly use: PlaceUse;
  readonly rules: Rules;
  /** Counts the names that are folders on the way. The rest is the name of the file. */
  readonly depth: number;
}

export function createWorkspaceFolder(options: WorkspaceFolderOptions): WorkspaceFolder {
  const { deny = [], denyFiles = [], allow = [], random, descriptors = systemDescriptors } = options;
  const root = resolve(options.root);
  const trees = [...deny.map((path) => resolve(root, path)), ...kernelFolders];
  const files = denyFiles.map((path) => resolve(root, path));
  const seen = new Set<Identity>();
  const { writable } = options;
  const rulesNow = (): Rules => ({
    denied: lookUpDenied({ trees, files }, seen),
    allowed: namesAsWritten(root, allow),
    writable: writable === undefined ? null : namesAsWritten(root, writable),
  });
  const walk = async <Result>(
    place: Place,
    use: PlaceUse,
    run: (folder: HeldFolder, name: string, opening: Opening) => Promise<Result>,
  ): Promise<Result> => {
    try {
      const name = place.names.at(-1);
      if (name === undefined)
        throw new WorkspaceToolRefusal("not-a-file", "The path is the workspace itself, which is a folder.");
      const opening = { place, use, rules: rulesNow(), depth: place.names.length - 1 };
      await using folder = await holdPlace(root, opening, descriptors);
      return await run(folder, name, opening);
    } catch (error) {
      throw refusalOf(error, place.path);
    }
  };
  return {
    locate: (path) => locate(path, root, { rules: rulesNow, descriptors }),
    openFile: (place) => walk(place, "read", openFile),
    stateOf: (place) => walk(place, "read", (folder, name, opening) => stateAt(folder.at(name), opening)),
    async list(place, most) {
      try {
        const opening: Opening = { place, use: "read", rules: rulesNow(), depth: place.names.length };
        await using folder = await holdPlace(root, opening, descriptors);
        const listed = await listEntries(folder, most, opening);
        assertStillInside(folder, opening);
        return listed;
      } catch (error) {
        throw refusalOf(error, place.path);
      }
    },
    replace: (place, content, before) =>
      walk(place, "write", (folder, name, opening) => replaceFile(folder, name, { opening, content, before, random })),
  };
}

async function realRoot(root: string): Promise<string> {
  try {
    return await realpath(root);
  } catch (error) {
    throw new WorkspaceToolRefusal("missing", "The workspace folder does not exist or cannot be entered.", error);
  }
}

interface Way {
  rules(): Rules;
  readonly descriptors: string | null;
}

async function locate(path: string, root: string, way: Way): Promise<Place> {
  try {
    const real = await realRoot(root);
    const names = namesBelow(path, [root, real]);
    try {
      const place = { path, names: await realNames(real, names, path) };
      if (place.names.join("/") !== names.join("/")) await assertOpenWay(root, names, path, way);
      return place;
    } catch (error) {
      await assertOpenWay(root, names, path, way);
      throw error;
    }
  } catch (error) {
    throw refusalOf(error, path);
  }
}

/** Every name on the way is checked first, so that a refusal does not reveal whether a hidden target exists. */
async function assertOpenWay(
  root: string,
  names: readonly string[],
  path: string,
  { rules, descriptors }: Way,
): Promise<void> {
  const now = rules();
  for (const [index, name] of names.entries()) {
    const above = await realNames(await realRoot(root), names.slice(0, index), path);
    const place = { path, names: [...above, name] };
    await using _folder = await holdPlace(root, { place, use: "read", depth: above.length, rules: now }, descriptors);
  }
}

/** Opens the folder of a location, or the folder that the location is. Every rule is checked on the way. */
async function holdPlace(root: string, opening: Opening, descriptors: string | null): Promise<HeldFolder> {
  const { place, use, depth, rules } = opening;
  const { path, names } = place;
  if (isHiddenPath(names, use, rules)) {
    const what = use === "read" ? "is not for tools" : "may not be written by tools";
    throw new WorkspaceToolRefusal("denied", `${quoted(path)} ${what}: it is hidden, and nobody allowed it by name.`);
  }
  if (use === "write" && !isWritable(names, rules)) {
    const folders = (rules.writable ?? []).map((each) => quoted(each.join("/"))).join(", ");
    throw new WorkspaceToolRefusal("denied", `${quoted(path)} may not be written: tools write only in ${folders}.`);
  }
  // An allowed name may be a repository itself. A repository below it is refused, and so is a HEAD file that would
  // create one.
  const allowedTo = allowedDepth(names, rules);
  const isHead = use === "write" && names.at(-1)?.toUpperCase() === repositoryMarks.head;
  if (isHead && depth > allowedTo) throw obeyedByGit(path);
  const folder = await holdFolder(await realRoot(root), names.slice(0, depth), {
    create: use === "write",
    descriptors,
    admit(held, level) {
      const { denied } = rules;
      if (level === 0 && held.ancestry().some((identity) => denied.holds(identity)))
        throw new WorkspaceToolRefusal("denied", "The workspace lies in a folder that is not for tools.");
      if (denied.holds(held.identity) || denied.leadsInto(held.identity, names.slice(level))) throw notForTools(path);
      if (use === "write" && level > allowedTo && isRepository(held)) throw obeyedByGit(path);
      if (isHead && level === depth && !isRepository(held)) throw obeyedByGit(path);
    },
  });
  try {
    assertStillInside(folder, opening);
    return folder;
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * If another process moves an open folder, the folder may lead outside or into a denied location, although no link
 * does.
 */
function assertStillInside(folder: HeldFolder, { place, depth, rules }: Opening): void {
  const above = folder.ancestry();
  if (above.some((identity) => rules.denied.holds(identity))) throw notForTools(place.path);
  if (above[depth] !== folder.rootIdentity)
    throw new WorkspaceToolRefusal("changed", `A folder of ${quoted(place.path)} was moved while it was used.`);
}

function isRepository(folder: HeldFolder): boolean {
  const isThere = (name: string): boolean => lstatSync(folder.at(name), { throwIfNoEntry: false }) !== undefined;
  return isThere(repositoryMarks.head) && repositoryMarks.others.some(isThere);
}

function notForTools(path: string): WorkspaceToolRefusal {
  return new WorkspaceToolRefusal("denied", `${quoted(path)} is not for tools.`);
}

function obeyedByGit(path: string): WorkspaceToolRefusal {
  return new WorkspaceToolRefusal("denied", `${quoted(path)} may not be written: git obeys what stands there.`);
}

/** Follows every link of the existing part. The rest stays as written. */
async function realNames(root: string, names: readonly string[], path: string): Promise<readonly string[]> {
  for (let count = names.length; count >= 0; count--) {
    const there = join(root, ...names.slice(0, count));
    const found = await orNull(realpath(there), "ENOENT");
    if (found === null) {
      if ((await orNull(lstat(there), "ENOENT"))?.isSymbolicLink() === true) {
        throw new WorkspaceToolRefusal(
          "outside",
          `${quoted(path)} leads through a symbolic link to something that does not exist.`,
        );
      }
      continue;
    }
    const below = relative(root, found);
    if (!isBelow(below))
      throw new WorkspaceToolRefusal("outside", `${quoted(path)} leads outside the workspace through a symbolic link.`);
    return [...(below === "" ? [] : below.split(sep)), ...names.slice(count)];
  }
  throw new WorkspaceToolRefusal("missing", "The workspace folder does not exist.");
}

async function openFile(folder: HeldFolder, name: string, opening: Opening): Promise<OpenedFile> {
  const { path } = opening.place;
  // Opening a pipe would block, and opening a device may have an effect. Both are detected before the file is opened.
  const state = await stateAt(folder.at(name), opening);
  if (state === null) throw new WorkspaceToolRefusal("missing", `${quoted(path)} does not exist.`);
  const handle = await open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    // Another process may have replaced the file before it was opened, so the opened file is checked again.
    const stats = await handle.stat({ bigint: true });
    await assertUsableFile(stats, opening);
    assertStillInside(folder, opening);
    return { handle, ...stateFrom(stats) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function stateAt(entry: string, opening: Opening): Promise<FileState | null> {
  const { path } = opening.place;
  const stats = await orNull(lstat(entry, { bigint: true }), "ENOENT");
  if (stats === null) return null;
  if (opening.rules.denied.holds(identityOf(stats))) throw notForTools(path);
  if (stats.isDirectory()) throw new WorkspaceToolRefusal("not-a-file", `${quoted(path)} is a folder.`);
  if (stats.isSymbolicLink())
    throw new WorkspaceToolRefusal("changed", `${quoted(path)} became a symbolic link meanwhile.`);
  await assertUsableFile(stats, opening);
  return stateFrom(stats);
}

async function assertUsableFile(stats: BigIntStats, { place, rules }: Opening): Promise<void> {
  if (!stats.isFile()) throw new WorkspaceToolRefusal("not-a-file", `${quoted(place.path)} is no regular file.`);
  const isDenied = rules.denied.holds(identityOf(stats)) || (await rules.denied.isSecondName(stats));
  if (isDenied) throw notForTools(place.path);
}

function stateFrom(stats: BigIntStats): FileState {
  const { mode, size, mtimeNs, ctimeNs } = stats;
  return {
    mode: Number(mode & 0o777n),
    sizeBytes: Number(size),
    version: [identityOf(stats), size, mtimeNs, ctimeNs].join(" "),
  };
}

interface Replacement {
  readonly opening: Opening;
  readonly content: Uint8Array;
  readonly before: FileState | null;
  readonly random: RandomSource;
}

async function replaceFile(
  folder: HeldFolder,
  name: string,
  { opening, content, before, random }: Replacement,
): Promise<void> {
  const path = quoted(opening.place.path);
  if (before !== null && (before.mode & 0o222) === 0)
    throw new WorkspaceToolRefusal("permission", `${path} is read-only.`);
  const temporary = folder.at(`.throughline-${random.uuid()}.tmp`);
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, before?.mode ?? 0o666);
  try {
    try {
      await handle.writeFile(content);
      // The umask may have reduced the mode of the new file. The mode never exceeds that of the replaced file.
      if (before !== null) await handle.chmod(before.mode);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    const now = await stateAt(folder.at(name), opening);
    if (now?.version !== before?.version) {
      const how = now === null ? "went away" : before === null ? "came to be" : "changed";
      throw new WorkspaceToolRefusal("changed", `${path} ${how} meanwhile; nothing was written. Read it again.`);
    }
    assertStillInside(folder, opening);
    await rename(temporary, folder.at(name));
  } catch (error) {
    await orNull(unlink(temporary), "ENOENT");
    throw error;
  }
}

/** Limits the entries that are read, because sorting needs all of them in memory. */
const mostLookedAt = 20_000;

async function listEntries(
  folder: HeldFolder,
  most: number,
  opening: Opening,
): Promise<{ readonly entries: readonly FolderEntry[]; readonly isWhole: boolean }> {
  const found: Dirent[] = [];
  let isWhole = true;
  for await (const entry of await opendir(folder.at("."))) {
    isWhole = found.length < mostLookedAt;
    if (!isWhole) break;
    found.push(entry);
  }
  const sorted = found.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const entries = await Promise.all(sorted.slice(0, most).map((entry) => describe(folder, entry, opening)));
  return { entries, isWhole: isWhole && sorted.length <= most };
}

async function describe(folder: HeldFolder, entry: Dirent, { place, rules }: Opening): Promise<FolderEntry> {
  const { name } = entry;
  const path = folder.at(name);
  const stats = await orNull(lstat(path, { bigint: true }), "ENOENT");
  const isDenied =
    isHiddenPath([...place.names, name], "read", rules) ||
    rules.denied.leadsInto(folder.identity, [name]) ||
    (stats !== null && rules.denied.holds(identityOf(stats)));
  const described = { name, sizeBytes: null, target: null, isDenied };
  if (entry.isDirectory()) return { ...described, kind: "folder" };
  if (entry.isSymbolicLink())
    return { ...described, kind: "link", target: await orNull(readlink(path), "ENOENT", "EINVAL") };
  if (!entry.isFile()) return { ...described, kind: "other" };
  return { ...described, kind: "file", sizeBytes: stats === null ? null : Number(stats.size) };
}

import { constants, existsSync, type Dirent } from "node:fs";
import { lstat, mkdir, open, opendir, readlink, realpath, rename, unlink, type FileHandle } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { RandomSource } from "@throughline/core";
import { isBelow, namesBelow } from "./contained-path.ts";
import { quoted, refusalOf, ToolRefusal } from "./tool-refusal.ts";

/**
 * A place in the workspace after every symbolic link was followed. Between finding and opening it nothing is believed:
 * it is opened name by name, and a name that has become a link meanwhile is refused.
 */
export interface Place {
  /** As the model wrote it. */
  readonly path: string;
  /** From the root, none of them a link when they were looked at. */
  readonly names: readonly string[];
}

/** What a file looked like, to tell whether it is still the same. */
export interface FileState {
  readonly mode: number;
  readonly sizeBytes: number;
  readonly identity: string;
}

export interface OpenedFile extends FileState {
  readonly handle: FileHandle;
}

export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** Of a file; null for everything else, and when it went away meanwhile. */
  readonly sizeBytes: number | null;
  /** Where a link points, as it is written there. */
  readonly target: string | null;
}

/** The only way to the files of a workspace. */
export interface WorkspaceFolder {
  /** @throws {ToolRefusal} for what is outside, denied, or no path */
  locate(path: string): Promise<Place>;
  /** Opens a regular file to read. */
  openFile(place: Place): Promise<OpenedFile>;
  /** What stands at a place; null when nothing does. */
  stateOf(place: Place): Promise<FileState | null>;
  /** The entries of a folder in the order of their names, at most so many, and whether there are more. */
  list(place: Place, most: number): Promise<{ readonly entries: readonly FolderEntry[]; readonly isWhole: boolean }>;
  /**
   * Puts a file with this content there in one step, so that nobody ever reads half of it. Missing folders are made.
   * @param before what has to be there still; null: nothing. Its mode is kept; a new file gets what the umask leaves of 0666
   */
  replace(place: Place, content: Uint8Array, before: FileState | null): Promise<void>;
}

export interface WorkspaceFolderOptions {
  readonly root: string;
  readonly deny: readonly string[];
  readonly random: RandomSource;
  /** Where open folders have paths of their own; null where the system gives them none. @default this system's */
  readonly descriptors?: string | null;
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * Linux gives an open folder a path of its own, below which no name can be exchanged for a link on the way. Elsewhere a
 * folder is looked at again after it was opened, which leaves a moment in which somebody else could exchange it.
 */
const systemDescriptors: string | null = existsSync("/proc/self/fd") ? "/proc/self/fd" : null;

export function createWorkspaceFolder(options: WorkspaceFolderOptions): WorkspaceFolder {
  const { root, deny, random, descriptors = systemDescriptors } = options;
  const hold = async (names: readonly string[], create: boolean): Promise<HeldFolder> =>
    holdFolder(await realRoot(root), names, { create, descriptors });
  const walk = async <Result>(
    place: Place,
    run: (folder: HeldFolder, name: string) => Promise<Result>,
    create = false,
  ): Promise<Result> => {
    try {
      const name = place.names.at(-1);
      if (name === undefined)
        throw new ToolRefusal("not-a-file", "The path is the workspace itself, which is a folder.");
      await using folder = await hold(place.names.slice(0, -1), create);
      return await run(folder, name);
    } catch (error) {
      throw refusalOf(error, place.path);
    }
  };
  return {
    locate: (path) => locate(path, root, deny),
    openFile: (place) => walk(place, (folder, name) => openFile(folder, name, place.path)),
    stateOf: (place) => walk(place, (folder, name) => stateAt(folder.at(name), place.path)),
    async list(place, most) {
      try {
        await assertAllowed(place, root, deny);
        await using folder = await hold(place.names, false);
        return await listEntries(folder, most);
      } catch (error) {
        throw refusalOf(error, place.path);
      }
    },
    replace: (place, content, before) =>
      walk(place, (folder, name) => replaceFile(folder, name, { place, content, before, random }), true),
  };
}

async function realRoot(root: string): Promise<string> {
  try {
    return await realpath(root);
  } catch (error) {
    throw new ToolRefusal("missing", "The workspace folder does not exist or cannot be entered.", error);
  }
}

async function locate(path: string, root: string, deny: readonly string[]): Promise<Place> {
  try {
    const real = await realRoot(root);
    const place = { path, names: await realNames(real, namesBelow(path, [root, real]), path) };
    await assertAllowed(place, root, deny);
    return place;
  } catch (error) {
    throw refusalOf(error, path);
  }
}

async function assertAllowed({ path, names }: Place, root: string, deny: readonly string[]): Promise<void> {
  if (deny.length === 0) return;
  const real = await realRoot(root);
  for (const one of deny) {
    const denied = await namesOrNull(real, [root, real], one);
    if (denied?.every((name, index) => names[index] === name) === true) {
      throw new ToolRefusal("denied", `${quoted(path)} is not for tools.`);
    }
  }
}

/** Null for a path outside, which no tool can reach anyway. */
async function namesOrNull(root: string, roots: readonly string[], path: string): Promise<readonly string[] | null> {
  try {
    return await realNames(root, namesBelow(path, roots), path);
  } catch (error) {
    if (error instanceof ToolRefusal && error.reason === "outside") return null;
    throw error;
  }
}

/** Follows every link of the part that exists; the rest is taken as it is written. */
async function realNames(root: string, names: readonly string[], path: string): Promise<readonly string[]> {
  for (let count = names.length; count >= 0; count--) {
    const there = join(root, ...names.slice(0, count));
    const found = await orNull(realpath(there), "ENOENT");
    if (found === null) {
      if ((await orNull(lstat(there), "ENOENT"))?.isSymbolicLink() === true) {
        throw new ToolRefusal(
          "outside",
          `${quoted(path)} leads through a symbolic link to something that does not exist.`,
        );
      }
      continue;
    }
    const below = relative(root, found);
    if (!isBelow(below))
      throw new ToolRefusal("outside", `${quoted(path)} leads outside the workspace through a symbolic link.`);
    return [...(below === "" ? [] : below.split(sep)), ...names.slice(count)];
  }
  throw new ToolRefusal("missing", "The workspace folder does not exist.");
}

/** A folder that stays the same one while it is used, whatever happens to its path. */
interface HeldFolder extends AsyncDisposable {
  /** The path of one of its entries. */
  at(name: string): string;
}

interface Holding {
  /** Make folders that are missing. */
  readonly create: boolean;
  readonly descriptors: string | null;
}

/** Goes down name by name, never through a link. */
async function holdFolder(
  root: string,
  names: readonly string[],
  { create, descriptors }: Holding,
): Promise<HeldFolder> {
  let path = root;
  let handle = await open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    for (const name of names) {
      const next = descriptors !== null ? `${descriptors}/${handle.fd}/${name}` : join(path, name);
      const inner = await openFolder(next, create);
      await handle.close();
      handle = inner;
      path = join(path, name);
    }
    if (descriptors === null) await assertUnmoved(handle, path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  const base = descriptors !== null ? `${descriptors}/${handle.fd}` : path;
  return { at: (name) => `${base}/${name}`, [Symbol.asyncDispose]: () => handle.close() };
}

async function openFolder(path: string, create: boolean): Promise<FileHandle> {
  const flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  const found = create ? await orNull(open(path, flags), "ENOENT") : await open(path, flags);
  if (found !== null) return found;
  // Another call may make it first.
  await orNull(mkdir(path), "EEXIST");
  return open(path, flags);
}

/** Elsewhere the path is all there is: it must still lead to the folder that was opened, through no link. */
async function assertUnmoved(handle: FileHandle, path: string): Promise<void> {
  const [held, named, real] = await Promise.all([handle.stat(), lstat(path), realpath(path)]);
  if (held.ino === named.ino && held.dev === named.dev && real === path) return;
  throw new ToolRefusal("changed", "A folder of the path was exchanged while it was opened.");
}

async function openFile(folder: HeldFolder, name: string, path: string): Promise<OpenedFile> {
  // A pipe would wait for its other end, and a device may do something on being opened: both are seen before.
  const state = await stateAt(folder.at(name), path);
  if (state === null) throw new ToolRefusal("missing", `${quoted(path)} does not exist.`);
  const handle = await open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new ToolRefusal("not-a-file", `${quoted(path)} is no regular file.`);
    return { handle, ...stateFrom(stats) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function stateAt(entry: string, path: string): Promise<FileState | null> {
  const stats = await orNull(lstat(entry), "ENOENT");
  if (stats === null) return null;
  if (stats.isDirectory()) throw new ToolRefusal("not-a-file", `${quoted(path)} is a folder.`);
  if (stats.isSymbolicLink()) throw new ToolRefusal("changed", `${quoted(path)} became a symbolic link meanwhile.`);
  if (!stats.isFile()) throw new ToolRefusal("not-a-file", `${quoted(path)} is no regular file.`);
  return stateFrom(stats);
}

interface Stats {
  readonly mode: number;
  readonly size: number;
  readonly dev: number;
  readonly ino: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

function stateFrom({ mode, size, dev, ino, mtimeMs, ctimeMs }: Stats): FileState {
  return { mode: mode & 0o777, sizeBytes: size, identity: [dev, ino, size, mtimeMs, ctimeMs].join(" ") };
}

interface Replacement {
  readonly place: Place;
  readonly content: Uint8Array;
  readonly before: FileState | null;
  readonly random: RandomSource;
}

async function replaceFile(
  folder: HeldFolder,
  name: string,
  { place, content, before, random }: Replacement,
): Promise<void> {
  if (before !== null && (before.mode & 0o222) === 0) {
    throw new ToolRefusal("permission", `${quoted(place.path)} is read-only.`);
  }
  const temporary = folder.at(`.throughline-${random.uuid()}.tmp`);
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, before?.mode ?? 0o666);
  try {
    try {
      await handle.writeFile(content);
      // What the umask took from the mode of the file it replaces; it is never more than that file had.
      if (before !== null) await handle.chmod(before.mode);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    const now = await stateAt(folder.at(name), place.path);
    if (now?.identity !== before?.identity) {
      const how = now === null ? "went away" : before === null ? "came to be" : "changed";
      throw new ToolRefusal("changed", `${quoted(place.path)} ${how} meanwhile; nothing was written. Read it again.`);
    }
    await rename(temporary, folder.at(name));
  } catch (error) {
    await orNull(unlink(temporary), "ENOENT");
    throw error;
  }
}

/** So many entries are looked at before a folder is said to hold more; sorting needs them all at once. */
const mostLookedAt = 20_000;

async function listEntries(
  folder: HeldFolder,
  most: number,
): Promise<{ readonly entries: readonly FolderEntry[]; readonly isWhole: boolean }> {
  const found: Dirent[] = [];
  let isWhole = true;
  for await (const entry of await opendir(folder.at("."))) {
    isWhole = found.length < mostLookedAt;
    if (!isWhole) break;
    found.push(entry);
  }
  const sorted = found.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const entries = await Promise.all(sorted.slice(0, most).map((entry) => describe(folder, entry)));
  return { entries, isWhole: isWhole && sorted.length <= most };
}

async function describe(folder: HeldFolder, entry: Dirent): Promise<FolderEntry> {
  const { name } = entry;
  const path = folder.at(name);
  if (entry.isDirectory()) return { name, kind: "folder", sizeBytes: null, target: null };
  if (entry.isSymbolicLink()) {
    return { name, kind: "link", sizeBytes: null, target: await orNull(readlink(path), "ENOENT", "EINVAL") };
  }
  if (!entry.isFile()) return { name, kind: "other", sizeBytes: null, target: null };
  return { name, kind: "file", sizeBytes: (await orNull(lstat(path), "ENOENT"))?.size ?? null, target: null };
}

/** Null for the one failure that is an answer. */
async function orNull<Value>(promise: Promise<Value>, ...codes: readonly string[]): Promise<Value | null> {
  try {
    return await promise;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (typeof code === "string" && codes.includes(code)) return null;
    throw error;
  }
}

import { constants, existsSync, fstatSync, statSync, type BigIntStats } from "node:fs";
import { lstat, mkdir, open, realpath, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { identityOf, type Identity } from "./denied-places.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";

/** Holds an open folder, which stays the same folder even when its path changes. */
export interface HeldFolder extends AsyncDisposable {
  readonly identity: Identity;
  /** Identifies the root folder at which the descent began. */
  readonly rootIdentity: Identity;
  /** Returns the path of an entry of the folder. */
  at(name: string): string;
  /**
   * Reads the identities of the folder and of every folder above it at this moment, up to the root of the file system.
   */
  ancestry(): readonly Identity[];
}

export interface HoldOptions {
  readonly create: boolean;
  /** Names the directory in which the system lists open folders by descriptor; null when the system has none. */
  readonly descriptors: string | null;
  /**
   * Runs for each folder on the way, before any entry of the folder is read. An error that it throws ends the descent.
   */
  admit(folder: HeldFolder, depth: number): void;
}

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const folderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

/**
 * Linux gives each open folder a path of its own. Below that path no other process can replace a name on the way by a
 * link. Other systems compare the folder after opening it, which leaves a short race.
 */
export const systemDescriptors: string | null = existsSync("/proc/self/fd") ? "/proc/self/fd" : null;

/** Descends name by name and never through a link, because a link could lead outside. */
export async function holdFolder(root: string, names: readonly string[], options: HoldOptions): Promise<HeldFolder> {
  const { create, descriptors, admit } = options;
  let path = root;
  let handle = await open(root, folderFlags);
  try {
    const rootIdentity = identityOf(fstatSync(handle.fd, { bigint: true }));
    let held = heldFolder(handle, path, { descriptors, rootIdentity });
    admit(held, 0);
    for (const [index, name] of names.entries()) {
      const inner = await openFolder(held.at(name), create);
      await handle.close();
      handle = inner;
      path = join(path, name);
      held = heldFolder(handle, path, { descriptors, rootIdentity });
      admit(held, index + 1);
    }
    if (descriptors === null) await assertUnmoved(handle, path);
    return held;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function heldFolder(
  handle: FileHandle,
  path: string,
  { descriptors, rootIdentity }: { readonly descriptors: string | null; readonly rootIdentity: Identity },
): HeldFolder {
  const base = descriptors === null ? path : `${descriptors}/${handle.fd}`;
  return {
    identity: identityOf(fstatSync(handle.fd, { bigint: true })),
    rootIdentity,
    at: (name) => `${base}/${name}`,
    ancestry: () => (descriptors === null ? ancestryOf(path) : ancestryBelow(`${base}/.`)),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

/** This is deeper than any path the system accepts. */
const mostLevels = 2048;

/** Walks up from the open folder with `..`. A stored path could lead through a link that was replaced meanwhile. */
function ancestryBelow(start: string): readonly Identity[] {
  const top = identityOf(statSync("/", { bigint: true }));
  const chain: Identity[] = [];
  for (let path = start; chain.length < mostLevels; path += "/..") {
    const identity = identityOf(statSync(path, { bigint: true }));
    // The parent of the file system's root is the root again. A mount may show the root in another location too, so
    // only a repetition ends the walk.
    if (identity === top && chain.at(-1) === top) return chain;
    chain.push(identity);
  }
  throw new WorkspaceToolRefusal("changed", "A folder of the path lies nowhere any more.");
}

function ancestryOf(folder: string): readonly Identity[] {
  const chain: Identity[] = [];
  for (let path = folder; ; path = dirname(path)) {
    chain.push(identityOf(statSync(path, { bigint: true })));
    if (path === dirname(path)) return chain;
  }
}

async function openFolder(path: string, create: boolean): Promise<FileHandle> {
  const found = create ? await orNull(open(path, folderFlags), "ENOENT") : await open(path, folderFlags);
  if (found !== null) return found;
  // Another call may create the folder first.
  await orNull(mkdir(path), "EEXIST");
  return open(path, folderFlags);
}

/**
 * Without descriptors only the path protects the access. The path must still lead to the opened folder, through no
 * link.
 */
async function assertUnmoved(handle: FileHandle, path: string): Promise<void> {
  const held: BigIntStats = fstatSync(handle.fd, { bigint: true });
  const [named, real] = await Promise.all([lstat(path, { bigint: true }), realpath(path)]);
  if (identityOf(held) === identityOf(named) && real === path) return;
  throw new WorkspaceToolRefusal("changed", "A folder of the path was exchanged while it was opened.");
}

/** Resolves to null for the listed error codes, which are expected results. Other errors are rethrown. */
export async function orNull<Value>(promise: Promise<Value>, ...codes: readonly string[]): Promise<Value | null> {
  try {
    return await promise;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (typeof code === "string" && codes.includes(code)) return null;
    throw error;
  }
}

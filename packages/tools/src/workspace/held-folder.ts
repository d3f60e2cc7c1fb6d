import { constants, existsSync, fstatSync, statSync, type BigIntStats } from "node:fs";
import { lstat, mkdir, open, realpath, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { identityOf, type Identity } from "./denied-places.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";

/** A folder that stays the same one while it is used, whatever happens to its path. */
export interface HeldFolder extends AsyncDisposable {
  readonly identity: Identity;
  /** Of the folder the way began with. */
  readonly rootIdentity: Identity;
  /** The path of one of its entries. */
  at(name: string): string;
  /** What it and every folder above it is at this moment, from it up to the root of the file system. */
  ancestry(): readonly Identity[];
}

export interface HoldOptions {
  /** Make folders that are missing. */
  readonly create: boolean;
  /** Where open folders have paths of their own; null where the system gives them none. */
  readonly descriptors: string | null;
  /** Called with each folder on the way, before anything in it is looked at. What it throws ends the way. */
  admit(folder: HeldFolder, depth: number): void;
}

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const folderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

/**
 * Linux gives an open folder a path of its own, below which no name can be exchanged for a link on the way. Elsewhere a
 * folder is looked at again after it was opened, which leaves a moment in which somebody else could exchange it.
 */
export const systemDescriptors: string | null = existsSync("/proc/self/fd") ? "/proc/self/fd" : null;

/** Goes down name by name, never through a link. */
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

/** Deeper than any path the system takes. */
const mostLevels = 2048;

/** From the open folder upwards: no path is asked for, so no link can lie about it. */
function ancestryBelow(start: string): readonly Identity[] {
  const top = identityOf(statSync("/", { bigint: true }));
  const chain: Identity[] = [];
  for (let path = start; chain.length < mostLevels; path += "/..") {
    const identity = identityOf(statSync(path, { bigint: true }));
    // Above the root of the file system lies the root again; a mount may show it in another place too.
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
  // Another call may make it first.
  await orNull(mkdir(path), "EEXIST");
  return open(path, folderFlags);
}

/** Elsewhere the path is all there is: it must still lead to the folder that was opened, through no link. */
async function assertUnmoved(handle: FileHandle, path: string): Promise<void> {
  const held: BigIntStats = fstatSync(handle.fd, { bigint: true });
  const [named, real] = await Promise.all([lstat(path, { bigint: true }), realpath(path)]);
  if (identityOf(held) === identityOf(named) && real === path) return;
  throw new WorkspaceToolRefusal("changed", "A folder of the path was exchanged while it was opened.");
}

/** Null for the one failure that is an answer. */
export async function orNull<Value>(promise: Promise<Value>, ...codes: readonly string[]): Promise<Value | null> {
  try {
    return await promise;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (typeof code === "string" && codes.includes(code)) return null;
    throw error;
  }
}

import { lstatSync, readlinkSync, statSync, type BigIntStats } from "node:fs";
import { opendir } from "node:fs/promises";
import { dirname, isAbsolute, join, parse, sep } from "node:path";

/** Identifies a file or folder by device and inode, because any path or link may reach it. */
export type Identity = string;

export function identityOf({ dev, ino }: Pick<BigIntStats, "dev" | "ino">): Identity {
  return `${dev}:${ino}`;
}

/** Holds absolute paths that no tool may touch. They need not exist. */
export interface DeniedPaths {
  /** Denies files and folders with everything below them. */
  readonly trees: readonly string[];
  /**
   * Denies files and the files beside them whose names extend the denied name: a database's journal, an editor's
   * backup.
   */
  readonly files: readonly string[];
}

/** Holds the denied locations at the time of the lookup. Each call looks them up again, because links may move. */
export interface DeniedPlaces {
  /** States whether a file or folder is denied. The caller must also check every folder above it. */
  holds(identity: Identity): boolean;
  /** States whether the names below a folder lead to a denied location, which need not exist yet. */
  leadsInto(folder: Identity, names: readonly string[]): boolean;
  /** States whether a file with several hard links is one of the denied files. */
  isSecondName(file: BigIntStats): Promise<boolean>;
}

/** Holds names below an existing folder. For a file, names that extend the last name match as well. */
interface DeniedNames {
  readonly folder: Identity;
  readonly names: readonly string[];
  readonly isFile: boolean;
}

interface FollowedPath {
  /** Holds the existing part of the path, with all links resolved. */
  readonly path: string;
  /** Holds the names that do not exist yet. */
  readonly rest: readonly string[];
  /** Holds the location itself and every link that stands for it, so that all of these names are denied. */
  readonly names: readonly { readonly folder: string; readonly name: string }[];
}

/** Linux follows at most this many links too. */
const mostLinks = 40;
/** Limits the search for hard links. When the limit is reached, the file counts as denied. */
const mostEntries = 200_000;

/**
 * Looks up where the denied paths lead now. `seen` keeps every denied folder, so that the folder stays denied when a
 * link to it moves.
 */
export function lookUpDenied({ trees, files }: DeniedPaths, seen: Set<Identity>): DeniedPlaces {
  const found: Identity[] = [];
  const denied: DeniedNames[] = [];
  const folders: string[] = [];
  const beside: { readonly folder: string; readonly name: string }[] = [];
  // One call checks a file before and after it opens the file, so the answer is cached.
  const secondNames = new Map<Identity, Promise<boolean>>();
  for (const tree of trees) {
    const { path, rest } = follow(tree);
    const identity = identityOf(statSync(path, { bigint: true }));
    if (rest.length > 0) denied.push({ folder: identity, names: rest.map(folded), isFile: false });
    else {
      seen.add(identity);
      folders.push(path);
    }
  }
  for (const file of files) {
    const { path, rest, names } = follow(file);
    const identity = identityOf(statSync(path, { bigint: true }));
    if (rest.length > 0) denied.push({ folder: identity, names: rest.map(folded), isFile: true });
    else found.push(identity);
    // A deleted file may have left its journal behind.
    if (rest.length === 1) beside.push({ folder: path, name: folded(rest[0] ?? "") });
    for (const { folder, name } of names) {
      const parent = identityOf(statSync(folder, { bigint: true }));
      denied.push({ folder: parent, names: [folded(name)], isFile: true });
      beside.push({ folder, name: folded(name) });
    }
  }
  return {
    holds: (identity) => seen.has(identity) || found.includes(identity),
    leadsInto: (folder, names) => denied.some((each) => each.folder === folder && matches(each, names)),
    isSecondName(file) {
      if (file.nlink <= 1n) return Promise.resolve(false);
      const known = secondNames.get(identityOf(file)) ?? isAmong(file, folders, beside);
      secondNames.set(identityOf(file), known);
      return known;
    },
  };
}

function matches({ names: wanted, isFile }: DeniedNames, names: readonly string[]): boolean {
  if (names.length < wanted.length) return false;
  return wanted.every((each, index) => {
    const name = folded(names[index] ?? "");
    return name === each || (isFile && index === wanted.length - 1 && isBesideName(name, each));
  });
}

/** Matches `sessions.db-journal` and `config.json~` beside their files, but not `sessions.dbx`. */
function isBesideName(name: string, base: string): boolean {
  return name.startsWith(base) && /^[^\p{L}\p{N}]/u.test(name.slice(base.length));
}

/** Unifies names that some file system treats as the same name: by case, normalization or ignorable characters. */
function folded(name: string): string {
  const plain = name.normalize("NFC").replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "");
  return plain.toUpperCase().toLowerCase().normalize("NFC");
}

/**
 * Follows every link of a path. Unlike `realpath` it also follows a link whose target does not exist, because a tool
 * could create the target.
 */
function follow(path: string): FollowedPath {
  const { root } = parse(path);
  const names: { readonly folder: string; readonly name: string }[] = [];
  let at = root;
  let rest = namesOf(path.slice(root.length));
  for (let links = 0; ;) {
    const [name, ...others] = rest;
    if (name === undefined) break;
    if (name === "..") {
      at = dirname(at);
      rest = others;
      continue;
    }
    const next = join(at, name);
    const stats = lookAt(next);
    if (stats === null || links > mostLinks) break;
    if (others.length === 0) names.push({ folder: at, name });
    if (stats.isSymbolicLink()) {
      links += 1;
      const target = readlinkSync(next);
      if (isAbsolute(target)) at = parse(target).root;
      rest = [...namesOf(target), ...others];
    } else {
      at = next;
      rest = others;
    }
  }
  return { path: at, rest, names };
}

function namesOf(path: string): string[] {
  return path.split(sep).filter((name) => name !== "" && name !== ".");
}

const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "EACCES", "ENAMETOOLONG"]);

/** Returns null when the path does not exist or cannot be examined. */
function lookAt(path: string): BigIntStats | null {
  try {
    return lstatSync(path, { bigint: true });
  } catch (error) {
    if (absent.has((error as { readonly code?: unknown }).code)) return null;
    throw error;
  }
}

/** Compares by device and inode, because a hard link gives the same file another name. */
async function isAmong(
  file: BigIntStats,
  folders: readonly string[],
  beside: readonly { readonly folder: string; readonly name: string }[],
): Promise<boolean> {
  const identity = identityOf(file);
  for (const { folder, name } of beside) {
    for await (const entry of await opendir(folder)) {
      const other = folded(entry.name);
      if (other !== name && !isBesideName(other, name)) continue;
      const stats = lookAt(join(folder, entry.name));
      if (stats !== null && identityOf(stats) === identity) return true;
    }
  }
  let left = mostEntries;
  const waiting = [...folders];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const stats = lookAt(path);
    // All hard links of a file are on one device, so other devices are skipped.
    if (stats === null || stats.dev !== file.dev) continue;
    if (identityOf(stats) === identity) return true;
    if (!stats.isDirectory()) continue;
    for await (const entry of await opendir(path)) {
      if (--left === 0) return true;
      const inner = join(path, entry.name);
      if (entry.isDirectory()) waiting.push(inner);
      else if (entry.isFile()) {
        const other = lookAt(inner);
        if (other !== null && identityOf(other) === identity) return true;
      }
    }
  }
  return false;
}

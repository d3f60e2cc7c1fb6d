import { lstatSync, readlinkSync, statSync, type BigIntStats } from "node:fs";
import { opendir } from "node:fs/promises";
import { dirname, isAbsolute, join, parse, sep } from "node:path";

/** A file or folder by its device and inode: what it is, by whatever path or name it was reached. */
export type Identity = string;

export function identityOf({ dev, ino }: Pick<BigIntStats, "dev" | "ino">): Identity {
  return `${dev}:${ino}`;
}

/** Absolute paths that no tool may touch. None of them has to exist. */
export interface DeniedPaths {
  /** Files and folders, with everything below them. */
  readonly trees: readonly string[];
  /** Files, with everything beside them whose name is theirs and more: a database's journal, an editor's backup. */
  readonly files: readonly string[];
}

/** What is denied, as the file system was when it was looked up. */
export interface DeniedPlaces {
  /** Whether this file or folder is denied. Whoever opens a file asks this of every folder above it too. */
  holds(identity: Identity): boolean;
  /** Whether these names below this folder lead to something denied, which need not exist yet. */
  leadsInto(folder: Identity, names: readonly string[]): boolean;
  /** Whether a file with more than one name is one of the denied ones. */
  isSecondName(file: BigIntStats): Promise<boolean>;
}

/** Names below a folder that exists; of a file also the names that begin with the last one. */
interface DeniedNames {
  readonly folder: Identity;
  readonly names: readonly string[];
  readonly isFile: boolean;
}

/** Where a path leads. */
interface FollowedPath {
  /** The part that exists, without a link in it. */
  readonly path: string;
  /** What is left of the path when the rest of it does not exist. */
  readonly rest: readonly string[];
  /** The place itself and every link that stands for it. */
  readonly names: readonly { readonly folder: string; readonly name: string }[];
}

/** As many as Linux follows. */
const mostLinks = 40;
/** Of a folder with more entries no file with a second name is let through. */
const mostEntries = 200_000;

/** Looks up where the denied paths lead now. `seen` keeps the folders found, so that one stays denied when a link to it moves. */
export function lookUpDenied({ trees, files }: DeniedPaths, seen: Set<Identity>): DeniedPlaces {
  const found: Identity[] = [];
  const denied: DeniedNames[] = [];
  const folders: string[] = [];
  const beside: { readonly folder: string; readonly name: string }[] = [];
  // One call asks of a file before and after opening it.
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
    // A file that is gone may have left its journal.
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

/** `sessions.db-journal`, `config.json~`, but not `sessions.dbx`. */
function isBesideName(name: string, base: string): boolean {
  return name.startsWith(base) && /^[^\p{L}\p{N}]/u.test(name.slice(base.length));
}

/** Names that some file system takes for the same one. */
function folded(name: string): string {
  const plain = name.normalize("NFC").replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "");
  return plain.toUpperCase().toLowerCase().normalize("NFC");
}

/** Follows every link of a path, those too that lead to what does not exist. */
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

/** Null for what is not there, or cannot be looked at. */
function lookAt(path: string): BigIntStats | null {
  try {
    return lstatSync(path, { bigint: true });
  } catch (error) {
    if (absent.has((error as { readonly code?: unknown }).code)) return null;
    throw error;
  }
}

/** Whether a file is in one of these folders, or is one of these files or stands beside one under its name. */
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
    // All names of a file are on one device.
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

import type { SessionRow } from "./session-row.ts";

/** Selects sessions by what a list shows of them. */
export interface SessionFilter {
  /** Holds words that must all occur in the name, the folder, the program or the key; case does not matter. */
  readonly words?: string;
  /** Names formats of programs; `own` stands for sessions of our own. */
  readonly programs?: readonly string[];
  /** Names a folder, which stands for itself and all below it. It is compared as text: no file is looked at. */
  readonly folder?: string;
  /** True for spawned sessions only, false for all others. */
  readonly isSpawned?: boolean;
}

/** Returns whether a session passes every given part of a filter. */
export function sessionFilter({
  words = "",
  programs,
  folder,
  isSpawned,
}: SessionFilter): (row: SessionRow) => boolean {
  const wanted = words
    .toLowerCase()
    .split(/\s/)
    .filter((word) => word !== "");
  const isBelow = folder === undefined ? null : folderFilter(folder);
  return (row) =>
    (isSpawned === undefined || (row.spawnedBy !== null) === isSpawned) &&
    (programs === undefined || programs.includes(row.program ?? "own")) &&
    (isBelow === null || isBelow(row.cwd)) &&
    (wanted.length === 0 || holdsWords(row, wanted));
}

function holdsWords({ name, cwd, program, key }: SessionRow, words: readonly string[]): boolean {
  const text = [name, cwd ?? "", program ?? "own", key].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function folderFilter(folder: string): (cwd: string | null) => boolean {
  const wanted = withoutEnd(folder);
  return (cwd) => {
    if (cwd === null) return false;
    const own = withoutEnd(cwd);
    return own === wanted || own.startsWith(`${wanted}/`) || own.startsWith(`${wanted}\\`);
  };
}

function withoutEnd(folder: string): string {
  let end = folder.length;
  while (end > 0 && (folder.charAt(end - 1) === "/" || folder.charAt(end - 1) === "\\")) end--;
  return folder.slice(0, end);
}

import { eachSourceName } from "./node/source-files.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";

export interface FolderNames extends Disposable {
  has(name: string): boolean;
  take(name: string): void;
  isTaken(name: string): boolean;
  /** Returns the file of that name, else a file that ends with an underscore and the name; null if neither exists. */
  endingWith(name: string): string | null;
  /** Yields the files that `take` has not marked, in order. */
  rest(): Iterable<string>;
}

/** @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE */
export async function readFolderNames(folder: string): Promise<FolderNames> {
  const names = createScratchMap();
  try {
    await eachSourceName(folder, ({ name, isDirectory }) => {
      if (!isDirectory) names.set(name, "");
    });
  } catch (error) {
    names[Symbol.dispose]();
    throw error;
  }
  let endings: ScratchMap | null = null;
  return {
    has: (name) => names.has(name),
    take(name) {
      if (names.has(name)) names.set(name, "taken");
    },
    isTaken: (name) => names.get(name) === "taken",
    endingWith(name) {
      if (names.has(name)) return name;
      endings ??= endingsOf(names);
      return endings.get(name);
    },
    *rest() {
      for (const [name, taken] of names.entries()) if (taken === "") yield name;
    },
    [Symbol.dispose]: () => {
      names[Symbol.dispose]();
      endings?.[Symbol.dispose]();
    },
  };
}

/** Indexes names by the text after each underscore; on a conflict the first name in order wins. */
function endingsOf(names: ScratchMap): ScratchMap {
  const endings = createScratchMap();
  for (const [name] of names.entries()) {
    for (const { index } of name.matchAll(/_/g)) {
      const ending = name.slice(index + 1);
      if (!endings.has(ending)) endings.set(ending, name);
    }
  }
  return endings;
}

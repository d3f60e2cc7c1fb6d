import { eachSourceName } from "./node/source-files.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";

/** The files in a folder, however many there are, and which of them an index has named. */
export interface FolderNames extends Disposable {
  has(name: string): boolean;
  take(name: string): void;
  isTaken(name: string): boolean;
  /** The file of that name, or of one that ends with an underscore and it; null when there is none. */
  endingWith(name: string): string | null;
  /** Those nobody has taken, in order. */
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

/** By what follows each underscore of a name; the first name in order counts. */
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

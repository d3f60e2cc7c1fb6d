import { eachSourceName } from "./node/source-files.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";
import { detectDirectoryLayout, type DirectoryLayout } from "@throughline/openclaw-format/internal";

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

/** Describes a directory without its transcript names, because a folder may hold more names than memory should. */
export interface FolderSurvey {
  readonly layout: DirectoryLayout;
  readonly folders: readonly string[];
  readonly databases: readonly string[];
}

const databaseNames: ReadonlySet<string> = new Set(["openclaw-agent.sqlite", "sessions.db"]);

/** Returns null when the path is no directory. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE */
export async function surveyFolder(path: string): Promise<FolderSurvey | null> {
  const folders: string[] = [];
  const databases: string[] = [];
  // One file per layout is enough to detect the directory's layout, so the other names are dropped.
  const telling = new Map<DirectoryLayout, string>();
  const isFolder = await eachSourceName(path, ({ name, isDirectory }) => {
    if (isDirectory) folders.push(name);
    else if (databaseNames.has(name)) databases.push(name);
    else telling.set(detectDirectoryLayout([{ name, isDirectory }]), name);
  });
  if (!isFolder) return null;
  const names = [
    ...folders.map((name) => ({ name, isDirectory: true })),
    ...[...telling.values()].map((name) => ({ name, isDirectory: false })),
  ];
  return { layout: detectDirectoryLayout(names), folders: folders.toSorted(), databases: databases.toSorted() };
}

import { detectDirectoryLayout, type DirectoryLayout } from "@throughline/openclaw-format/internal";
import { eachSourceName } from "./node/source-files.ts";

/** What a directory is, without the names of its transcripts: there may be very many of them. */
export interface FolderSurvey {
  readonly layout: DirectoryLayout;
  /** In order. */
  readonly folders: readonly string[];
  /** Files that go by the name of a database of another program, in order. */
  readonly databases: readonly string[];
}

/** Databases of other programs, by the names those give them. */
const databaseNames: ReadonlySet<string> = new Set(["openclaw-agent.sqlite", "sessions.db"]);

/** Null when the path is no directory. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE */
export async function surveyFolder(path: string): Promise<FolderSurvey | null> {
  const folders: string[] = [];
  const databases: string[] = [];
  // Of the files that say the same of their directory, one is enough.
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

import { detectDirectoryLayout, type DirectoryLayout } from "@throughline/openclaw-format/internal";
import { eachSourceName } from "./node/source-files.ts";

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

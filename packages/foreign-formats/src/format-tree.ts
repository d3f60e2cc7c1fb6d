/** Describes folders in which a session is many small files, and one file of them leads to the others. */
export interface FormatTree {
  /** Returns the location of a session by the path of its main file; null for any other file. */
  placeOf(path: string): TreePlace | null;
  /** Reads the session at a location that `placeOf` returned. */
  session(files: TreeFiles, place: TreePlace): Promise<TreeSession>;
  /** Yields the paths of the session's files apart from its main file. Opens none of them. */
  filePaths(files: TreeFiles, place: TreePlace): AsyncIterable<string>;
}

/** Describes the location of a session. */
export interface TreePlace {
  /** States the path of the session's main file. */
  readonly path: string;
  /** States the folder that holds all sessions of the program. */
  readonly root: string;
  /** States the program's id of the session, from the path. */
  readonly sessionId: string;
}

/** Reads files without changing them. */
export interface TreeFiles {
  /** Returns the names of the files in a folder, in order; empty for a missing folder. */
  names(folder: string): Promise<readonly string[]>;
  /** Returns the whole text of a file; null when it cannot be read. */
  text(path: string): Promise<string | null>;
}

/** Holds one session of such folders. */
interface TreeSession {
  /** Holds fields of the session's entry. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** States the program's id of the session that spawned this one, or null. */
  readonly spawnedBy: string | null;
  /** Holds one sentence for each part of the session that no line contains. @default none */
  readonly unread?: readonly string[];
  /** Returns a JSON object without line feeds for each item. The same files give the same texts. */
  lines(): AsyncIterable<string>;
}

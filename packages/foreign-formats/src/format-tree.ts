/** Folders in which a program keeps a session as many small files, of which one names the others. */
export interface FormatTree {
  /** Where a session lies, by the path of its own file; null for any other file. */
  placeOf(path: string): TreePlace | null;
  /** Reads the session at a place that `placeOf` gave. */
  session(files: TreeFiles, place: TreePlace): Promise<TreeSession>;
}

/** Where a session lies. */
export interface TreePlace {
  /** The session's own file. */
  readonly path: string;
  /** The folder of all sessions of the program. */
  readonly root: string;
  /** The program's id of the session, taken from the path. */
  readonly sessionId: string;
}

/** Reads files, and changes none. */
export interface TreeFiles {
  /** The names of the files in a folder, in order; empty for a missing folder. */
  names(folder: string): Promise<readonly string[]>;
  /** The whole of a file; null where it cannot be read. */
  text(path: string): Promise<string | null>;
}

/** A session in such folders. */
export interface TreeSession {
  /** Fields of the entry. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** The session that spawned it, by its id in the program. */
  readonly spawnedBy: string | null;
  /** Sentences on the parts of the session that are not among the lines. @default nothing */
  readonly unread?: readonly string[];
  /** A JSON object for each unit, without line feeds. The same files give the same texts. */
  lines(): AsyncIterable<string>;
}

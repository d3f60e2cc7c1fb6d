import type { StoredRecord } from "@throughline/core";

/** What is not in a written session as it is in the log. */
export interface FormatLoss {
  /** `left-out`: has no place in the format. `changed`: is there in another form. `made`: the format needs it, the log has none. */
  readonly what: "left-out" | "changed" | "made";
  /** What it is, in a word or two: `thinking`, `image`, `branch`. */
  readonly kind: string;
  /** Null for what was made, and for a number of records. */
  readonly recordId: string | null;
  /** The number of records. @default 1 */
  readonly records?: number;
}

/** A session that is to be written. */
export interface WrittenSession {
  /** In order of seq: all of them, or the end of them that holds the context. */
  readonly records: readonly StoredRecord[];
  /** The record at the end of the branch to write; null when the session has no main record. */
  readonly headId: string | null;
  /** Up to this seq everything stands in the file already, as it came in. @default 0 */
  readonly writtenSeq?: number;
  /** The last unit of the file that it is added to, where the file is a text: a message may be open in it. */
  readonly lastUnit?: string;
  /** The id the session goes by in the file. */
  readonly sessionId: string;
  /** The folder it works in; empty where none is known. */
  readonly cwd: string;
  /** What a person called it; null for none. */
  readonly label: string | null;
  /** What it was called by its content; null for none. */
  readonly title: string | null;
  /** When it began, UTC milliseconds. */
  readonly createdAtMs: number;
}

/** What the path of a session's file is made of. */
export interface PlacedSession extends Pick<WrittenSession, "sessionId" | "cwd" | "createdAtMs"> {
  /** The folder of the project, where the program notes it; null where it notes none. */
  readonly projectFolder: string | null;
}

/** Options of a format's writer. */
export interface WriteOptions {
  /** Called for everything that is not in the file as it is in the log, once a record. */
  readonly onLoss: (loss: FormatLoss) => void;
}

/** Writes sessions as a program keeps them. */
export interface FormatWriter {
  /** Whether all of the branch is written, compactions included; else what a model would be sent now. */
  readonly writesHistory: boolean;
  /** Whether the file is a text, whose units stand next to each other. @default false */
  readonly isText?: boolean;
  /**
   * The text of the file, in pieces: lines with their line feed, or with `frame` the elements of the list. A step of work that
   * gives no piece gives undefined: others may have a turn after it. The same session always gives the same text.
   */
  write(session: WrittenSession, options: WriteOptions): Iterable<string | undefined>;
  /** What stands before and behind the list of a document. Absent: the file is one of lines. */
  readonly frame?: (session: WrittenSession) => { readonly head: string; readonly tail: string };
  /** An id of the form that the program's own have, made of another id. */
  readonly sessionId: (session: Pick<WrittenSession, "sessionId" | "createdAtMs">) => string;
  /** The path of a session below the program's folder, where the program finds it; null where that is not known. */
  readonly path: (session: PlacedSession) => readonly string[] | null;
  /**
   * Where the program notes which project a folder belongs to. Below `folders`, each project has a folder, and the `file` in it
   * holds the project's path. Absent: the project's path says the folder.
   */
  readonly projectNotes?: {
    /** A path below the folder of `FormatPlace`, by its parts: `[".gemini", "tmp"]`. */
    readonly folders: readonly string[];
    /** The name of the file in a project's folder: `.project_root`. */
    readonly file: string;
  };
  /** The command that resumes the session in the program; null where it has none. */
  readonly resume: ((sessionId: string) => readonly string[]) | null;
}

import type { SessionRecord, StoredRecord } from "@throughline/core";

/** Describes a difference between a written session and its log. */
export interface FormatLoss {
  /**
   * Names the kind of difference. `left-out` means that the format cannot hold the data, and `changed` that it has
   * another form there. `made` means that the format needs data that the log lacks.
   */
  readonly what: "left-out" | "changed" | "made";
  /** Names the data in a word or two: `thinking`, `image`, `branch`. */
  readonly kind: string;
  /** States the record; null for created data and for a count of records. */
  readonly recordId: string | null;
  /** States the number of records. @default 1 */
  readonly records?: number;
}

/** Holds a session to write. */
export interface WrittenSession {
  /** Holds the records in order of seq: all of them, or the end of the log that holds the context. */
  readonly records: readonly StoredRecord[];
  /** States the last record of the branch to write; null when the session has no main record. */
  readonly headId: string | null;
  /** States the seq up to which the file already holds the records unchanged. @default 0 */
  readonly writtenSeq?: number;
  /**
   * Holds the last item of the file that is continued, when the file is a text. A message in the item may be
   * incomplete.
   */
  readonly lastUnit?: string;
  /** States the id of the session in the file. */
  readonly sessionId: string;
  /** States the folder that the session works in; empty when it is unknown. */
  readonly cwd: string;
  /** States the name that a person gave the session; null for none, and for a name that the file has already. */
  readonly label: string | null;
  /** States the name that was derived from the session's content; null for none. */
  readonly title: string | null;
  /** States when the session began, in UTC milliseconds. */
  readonly createdAtMs: number;
}

/** Holds the facts that the path of a session's file depends on. */
interface PlacedSession extends Pick<WrittenSession, "sessionId" | "cwd" | "createdAtMs"> {
  /** States the project's folder as the program noted it; null when it noted none. */
  readonly projectFolder: string | null;
}

/** Holds the options of a format's writer. */
export interface WriteOptions {
  /** Receives each difference between the file and the log, once for each record. */
  readonly onLoss: (loss: FormatLoss) => void;
}

/** Writes sessions in a program's format. */
export interface FormatWriter {
  /**
   * States whether the whole branch is written, including compactions. Otherwise only the messages that a model would
   * get now are written.
   */
  readonly writesHistory: boolean;
  /** States whether the file is a text whose items follow each other directly. @default false */
  readonly isText?: boolean;
  /**
   * Yields the text of the file in pieces: lines with their line feed, or the elements of the list when `frame` is
   * present. A step without a piece yields undefined, so that the caller can pause. The same session always gives the
   * same text.
   */
  write(session: WrittenSession, options: WriteOptions): Iterable<string | undefined>;
  /** Returns the text before and after the list of a document. Absent when the file consists of lines. */
  readonly frame?: (session: WrittenSession) => { readonly head: string; readonly tail: string };
  /** Returns an id in the program's form, derived from the session's id. */
  readonly sessionId: (session: Pick<WrittenSession, "sessionId" | "createdAtMs">) => string;
  /**
   * Returns the path of a session below the program's folder, at which the program finds it; null when the path cannot
   * be known.
   */
  readonly path: (session: PlacedSession) => readonly string[] | null;
  /**
   * Describes the program's notes about the project of each folder. Below `folders`, each project has a folder, and its
   * `file` holds the project's path. Absent when the project's path determines the folder.
   */
  readonly projectNotes?: {
    /** States a path below the folder of `FormatPlace`, by its parts: `[".gemini", "tmp"]`. */
    readonly folders: readonly string[];
    /** Names the file in a project's folder: `.project_root`. */
    readonly file: string;
  };
  /**
   * Returns the name that an imported record gives the session; null for any other record. Absent when a file cannot be
   * given another name.
   */
  readonly nameIn?: (record: SessionRecord) => string | null;
  /**
   * Describes the program's list of names, which has a line for each new name. Absent when the program keeps names in
   * the files of its sessions, or keeps none.
   */
  readonly nameList?: {
    /** Names the file in the folder of `FormatPlace`: `session_index.jsonl`. */
    readonly file: string;
    /** Returns the line with its line feed. */
    line(named: { readonly sessionId: string; readonly name: string; readonly atMs: number }): string;
  };
}

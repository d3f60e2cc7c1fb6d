import type { Finding, SessionRecord } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { UnparsedReason } from "@throughline/openclaw-format/internal";
import type { DocumentPart, ListPlace } from "./document-units.ts";
import type { FormatDatabase } from "./format-database.ts";
import type { FormatTree } from "./format-tree.ts";
import type { FormatWriter } from "./format-writer.ts";
import type { ForeignFormatName } from "./names.ts";
import type { TextCutter } from "./text-units.ts";

/** Describes how a program stores its sessions, and how they convert to records. */
export interface ForeignFormat {
  /** Names the format as `import --from` takes it. */
  readonly name: ForeignFormatName;
  /** Names the program for messages to people. */
  readonly program: string;
  /** Returns how a file is cut into items, from its beginning and its name. */
  layout(sample: FormatSample): FileLayout;
  /** Lists the program's default folders. */
  readonly places: readonly FormatPlace[];
  /** Describes where the program stores sessions beside secrets. They are read only when a person names the program. */
  readonly askedPlaces?: readonly FormatPlace[];
  /** Recognizes a file of the program by its beginning and its name. Never reads the whole file. */
  detect(sample: FormatSample): FormatMatch | null;
  /**
   * Returns whether the rest of a file that is cut off may show another format, although the file is likely of this
   * one. An imported session keeps its format, so an import waits for the rest. Absent when no beginning is shared with another
   * format.
   */
  readonly mayTurnOut?: (sample: FormatSample) => boolean;
  /**
   * Returns whether a file can be read in the format when the caller names the format. Absent when only recognized
   * files can be read.
   */
  readonly canRead?: (sample: FormatSample) => boolean;
  /** Creates the reader of one session. The reader starts empty and serves no other session. */
  createReader(options: ForeignReaderOptions): ForeignReader;
  /** Describes the program's database of sessions, whose rows are items. Absent when the program has none. */
  readonly database?: FormatDatabase;
  /**
   * Describes folders in which each session is many files. A message with its parts is an item. Absent when the program
   * has none.
   */
  readonly tree?: FormatTree;
  /** Describes a file beside the program's sessions with facts about them. Absent when the program has none. */
  readonly companion?: FormatCompanion;
  /** Reads titles that the program writes into the file of another session. Absent when the program writes none. */
  readonly strayTitles?: StrayTitles;
  /** Writes sessions in the format. Absent when sessions can only be read. */
  readonly writer?: FormatWriter;
  /**
   * Returns the command that resumes a session in the program, word by word; null for a session that has none. It runs
   * in the session's folder. The path is that of the session's file. Absent when the program has no such command.
   */
  readonly resume?: (sessionId: string, path: string) => readonly string[] | null;
}

/** Describes how a file is cut into items. */
export interface FileLayout {
  /** Names the kind of item: lines, elements of the document's list, or pieces of a text. */
  readonly unit: "line" | "document" | "text";
  /** Lists the locations of the list in a document. */
  readonly lists: readonly ListPlace[];
  /**
   * States the form of each session in a file with several sessions. Each of them is a document by itself. Null when
   * the file is one session.
   */
  readonly sessions: "lines" | "elements" | null;
  /** Creates the function that finds the ends of a text's pieces. Present for a text only. */
  readonly createCutter?: () => TextCutter;
}

export const fileOfLines: FileLayout = { unit: "line", lists: [], sessions: null };

/**
 * States how certain a match is. `certain` means that no other program writes such a file. `likely` means that the
 * sample fits the format and contains no contrary evidence.
 */
export type FormatMatch = "certain" | "likely";

/** Describes a file beside sessions that names or describes them. */
interface FormatCompanion {
  /** Returns the paths of the files for a session's file; null for a session without one. */
  path(file: string): string | readonly string[] | null;
  /** Returns fields of the session's entry, from the text of one of the files. */
  entryOf(text: string, sessionId: string, file: string): Readonly<Record<string, unknown>>;
  /**
   * Returns a sentence about data of a session that an import ignores; null for none. Absent when the format never has
   * such data.
   */
  noteOf?(text: string, sessionId: string): string | null;
}

/** Reads titles at the beginning of a session's file that belong to other sessions of the same folder. */
export interface StrayTitles {
  /** Returns whether a file of that name is a session that may contain such titles or have one. */
  isSession(name: string): boolean;
  /** Returns the titles in the beginning of a file, each with the id of a line in the session that it describes. */
  titlesIn(head: string): readonly (readonly [lineId: string, title: string])[];
}

/** Describes a folder of a program and the files in it that are sessions. No other file there is opened or listed. */
export interface FormatPlace {
  /**
   * Lists the environment variables that may state the folder, or a folder above it. The first one that is set counts;
   * without one, `home` counts.
   */
  readonly variables: readonly (string | FolderVariable)[];
  /**
   * States the path below the user's home when no variable is set, such as `.codex`. Null when the place exists only if
   * a variable is set.
   */
  readonly home: string | null;
  /**
   * Lists the paths of sessions below the folder. Each part is a name, or an expression that names match. A path without
   * parts is the file that the variable states.
   */
  readonly files: readonly (readonly (string | RegExp)[])[];
}

/** Names an environment variable that states a folder above the one with the sessions. */
interface FolderVariable {
  /** Names the variable: `CLINE_DIR`. */
  readonly name: string;
  /** States the path from that folder: `data`. */
  readonly below: string;
}

/** Holds the beginning of a file, to detect its format. */
export interface FormatSample {
  /** States the path with `/` as separator, as far as it is known. */
  readonly path: string;
  /** Holds the beginning of the file, at most 64 KiB. Long JSON texts are shortened (`createHeadSampler`). */
  readonly head: Uint8Array;
  /** States whether the sample reaches the end of the file. */
  readonly isWhole: boolean;
}

/** Holds the facts that a reader gets about its file. */
export interface ForeignReaderOptions {
  /** States the path that the findings name. Some programs state facts about a session in its path. @default null */
  readonly path?: string | null | undefined;
  /** States the key of the target session, which the findings name. @default null */
  readonly key?: string | null | undefined;
  /** Limits the length of items that are parsed, in bytes. A longer item is kept but not parsed. @default 16 MiB */
  readonly maxUnitBytes?: number | undefined;
  /**
   * Maps ids of lines to titles from other files. Each title belongs to the session that has the line.
   * @default none
   */
  readonly strayTitles?: ReadonlyMap<string, string> | undefined;
}

/** Describes the position of an item in its file. */
export interface UnitPlace {
  /** States the number of the item in its file, from 1. */
  readonly line: number;
  /** States the byte offset of the item in its file, from 0. */
  readonly byteOffset: number;
  /** States the length of the whole item in bytes, when it was cut. @default the length of the source */
  readonly sizeBytes?: number;
  /** States whether a line feed ends the line. @default true */
  readonly isTerminated?: boolean;
  /** Names the part of a document that the item holds. Absent when the item is a line. */
  readonly part?: DocumentPart;
}

/** Holds the records of one item. Every item gives a record, also a blank or broken one. */
export interface ForeignItem {
  /** Holds the records. The first has the item as its source, and the others are derived from it. */
  readonly records: readonly [SessionRecord, ...SessionRecord[]];
  /** States why the item gives no record of its own; null when it gives one. */
  readonly unparsed: UnparsedReason | null;
}

/**
 * Reads the items of one session in order. Later items never change earlier results. Memory grows with the number of
 * ids only.
 */
export interface ForeignReader {
  /**
   * Reads the next item. An item that cannot be read becomes a record with its source, and `unparsed` states the
   * reason.
   */
  push(unit: RecordSource, place: UnitPlace): ForeignItem;
  /**
   * Ends the reading and returns all findings. Call it after the last item, because some findings need the whole
   * session.
   */
  finish(): readonly Finding[];
  /** Lists the findings about the items so far, with their positions. `finish` returns the complete list. */
  readonly findings: readonly Finding[];
  /** States the id of the record that the program would continue from; null when there is none. */
  readonly headId: string | null;
  /** Holds fields of the session's entry, from the items so far. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** States the session's id as the items state it; null when they state none. */
  readonly sessionId: string | null;
  /** States the program's id of the session that spawned this one; null when no such session is known. */
  readonly spawnedBy: string | null;
}

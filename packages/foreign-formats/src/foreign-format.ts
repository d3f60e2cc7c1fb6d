import type { Finding, SessionRecord } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { UnparsedReason } from "@throughline/openclaw-format/internal";
import type { DocumentPart, ListPlace } from "./document-units.ts";
import type { FormatDatabase } from "./format-database.ts";
import type { FormatTree } from "./format-tree.ts";
import type { FormatWriter } from "./format-writer.ts";
import type { ForeignFormatName } from "./names.ts";
import type { TextCutter } from "./text-units.ts";

/** How a program keeps its sessions, and what that means as records. */
export interface ForeignFormat {
  /** The name that `import --from` takes. */
  readonly name: ForeignFormatName;
  /** The program, as messages name it. */
  readonly program: string;
  /** What a file is cut into, by its beginning and its name. */
  layout(sample: FormatSample): FileLayout;
  /** Where the program keeps its files when nobody told it otherwise. */
  readonly places: readonly FormatPlace[];
  /** Recognizes a file of the program by its beginning and its name. Never reads the whole file. */
  detect(sample: FormatSample): FormatMatch | null;
  /** Whether a file can be read in the format when somebody names it. Absent: when it is recognized. */
  readonly canRead?: (sample: FormatSample) => boolean;
  /** Creates the reader of one session. It starts empty and is not used for another session. */
  createReader(options: ForeignReaderOptions): ForeignReader;
  /** A database that the program keeps its sessions in; its rows are units as lines are. Absent: it keeps none. */
  readonly database?: FormatDatabase;
  /** Folders in which the program keeps each session as many files; a message with its parts is a unit. Absent: none. */
  readonly tree?: FormatTree;
  /** A file that the program keeps beside its sessions. Absent: it keeps none that says something of them. */
  readonly companion?: FormatCompanion;
  /** Titles that the program writes into the file of another session than they are of. Absent: it writes none. */
  readonly strayTitles?: StrayTitles;
  /** Absent where sessions can only be read. */
  readonly writer?: FormatWriter;
}

/** What a file is cut into. */
export interface FileLayout {
  /** Lines, the elements of the one list that a document holds, or pieces of a text. */
  readonly unit: "line" | "document" | "text";
  /** In a document: where the list may be. */
  readonly lists: readonly ListPlace[];
  /** Where a file holds several sessions: what each of them is, a document by itself. Null: the file is one session. */
  readonly sessions: "lines" | "elements" | null;
  /** Of a text: finds where its pieces end. */
  readonly createCutter?: () => TextCutter;
}

/** A file of lines that is one session. */
export const fileOfLines: FileLayout = { unit: "line", lists: [], sessions: null };

/**
 * How sure a format is. `certain`: no other program writes this. `likely`: it reads like this, and nothing that is read
 * speaks against it.
 */
export type FormatMatch = "certain" | "likely";

/** A file beside sessions, which names them or says what they are. */
export interface FormatCompanion {
  /** Its path, by that of a session's file; null for a session that has none. */
  path(file: string): string | null;
  /** What it says of a session: fields of the entry. */
  entryOf(text: string, sessionId: string): Readonly<Record<string, unknown>>;
  /** A sentence on data of a session that an import does not follow; null for none. Absent: there is never one. */
  noteOf?(text: string, sessionId: string): string | null;
}

/** Titles at the beginning of a session's file, of other sessions of the same folder. */
export interface StrayTitles {
  /** Whether a file of that name is one of the sessions that may have or hold such titles. */
  isSession(name: string): boolean;
  /** The titles in the beginning of a file, each with the id of a line of the session it is of. */
  titlesIn(head: string): readonly (readonly [lineId: string, title: string])[];
}

/** A folder of a program, and which files in it are sessions. No other file there is opened or listed. */
export interface FormatPlace {
  /** Environment variables that name the folder, the first one that is set counts; then a path below the user's home. */
  readonly variables: readonly string[];
  /** The path below the user's home that counts when none of the variables is set, such as `.codex`. */
  readonly home: string;
  /** Paths of sessions below the folder. Each part is a name, or an expression that names match. */
  readonly files: readonly (readonly (string | RegExp)[])[];
}

/** The beginning of a file, for telling its format. */
export interface FormatSample {
  /** The path as far as it is known, with `/`. */
  readonly path: string;
  /** The beginning, at most 64 KiB; long JSON texts are shortened (`createHeadSampler`). */
  readonly head: Uint8Array;
  /** Whether it reaches the end of the file. */
  readonly isWhole: boolean;
}

/** What a reader gets about the file that it reads. */
export interface ForeignReaderOptions {
  /** Named in findings, and part of what some programs say of a session. */
  readonly path?: string | null;
  /** The key of the session that is read into, named in findings. @default null */
  readonly key?: string | null;
  /** Longer units are kept and not read. @default 16 MiB */
  readonly maxUnitBytes?: number;
  /** Titles from other files, by the id of a line of the session that they are of. @default none */
  readonly strayTitles?: ReadonlyMap<string, string>;
}

/** Where a unit stands in its file. */
export interface UnitPlace {
  /** The unit's number in its file, from 1. */
  readonly line: number;
  /** Where the unit begins in its file, in bytes from 0. */
  readonly byteOffset: number;
  /** The whole unit's length, when it was cut off. @default the length of the source */
  readonly sizeBytes?: number;
  /** False for a last line without a line feed. @default true */
  readonly isTerminated?: boolean;
  /** In a document: what the unit holds. Absent: the unit is a line. */
  readonly part?: DocumentPart;
}

/** What one unit stands for. Every unit stands for a record, also a blank or broken one. */
export interface ForeignUnit {
  /** The first has the unit as its source; the others are derived from it. */
  readonly records: readonly [SessionRecord, ...SessionRecord[]];
  /** Why the unit stands for no record of its own; null when it does. */
  readonly unparsed: UnparsedReason | null;
}

/** Reads the units of one session in order. What follows never changes what was read. Memory grows by ids only. */
export interface ForeignReader {
  /** Reads the next unit. A unit that cannot be read becomes a record with its source, and `unparsed` says why. */
  push(unit: RecordSource, place: UnitPlace): ForeignUnit;
  /** Call after the last unit: some findings are known only then. */
  finish(): readonly Finding[];
  /** What was odd in the units so far, with their places. `finish` returns the complete list. */
  readonly findings: readonly Finding[];
  /** The record that the program would continue from. */
  readonly headId: string | null;
  /** What the units so far say of the session: fields of its entry. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** The session's id as the units state it; null when they state none. */
  readonly sessionId: string | null;
  /** The session that spawned this one, by its id in the program; null when none did or nothing says so. */
  readonly spawnedBy: string | null;
}

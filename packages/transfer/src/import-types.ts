import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { Durability, Finding, ThroughlineError } from "@throughline/core";
import type { ForeignFormatName } from "@throughline/foreign-formats/internal";
import type { TranscriptFormat } from "@throughline/openclaw-format/internal";

/** Names the kind of a source: a transcript format, or a database that holds sessions. */
export type SourceFormat = TranscriptFormat | "openclaw-sqlite" | "goclaw" | "clawcode" | ForeignFormatName;

/** Names a format that an import reads. */
export type ImportFormat = Exclude<SourceFormat, "unknown">;

/** Sets what an import reads, and where in the store it writes. */
export interface ImportOptions {
  /** Sets the format of the files. @default "auto": detected by location and first lines */
  readonly from?: "auto" | ImportFormat | undefined;
  /** Sets the session's key in the store. Valid for a single session only. */
  readonly key?: string | undefined;
  /**
   * Imports only the session with this key in the source. With `key` it gets another key here, so that the two programs
   * never write the same session. @default every session
   */
  readonly readKey?: string | undefined;
  /** Names the agent for files whose location and key name none. @default "main" */
  readonly agentId?: string | undefined;
  /** Sets the namespace of the sessions in the store. @default "" */
  readonly namespace?: string | undefined;
  /**
   * Leaves a source alone whose session was purged at or after this time, in UTC milliseconds of the store's clock.
   * @default 0; Infinity with `key`, which asks for the session
   */
  readonly purgedSinceMs?: number | undefined;
  /** Reads and reports without writing. @default false */
  readonly dryRun?: boolean | undefined;
  /**
   * Names the directory of the store, if it has one. Sources inside it are refused, because every session would exist
   * twice. @default null
   */
  readonly storeRoot?: string | null | undefined;
  /** States what each append must survive: the death of the process, or a power cut. @default the store's */
  readonly durability?: Durability | undefined;
  /** Receives the progress after each batch and at the end of each file. */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Ends the import between two batches; the next run resumes there. */
  readonly signal?: AbortSignal | undefined;
}

/** Reports how much of one source has been imported. */
interface ImportProgress {
  /** Names the file, or the database and the session in it. */
  readonly path: string;
  /** Holds the session's key in the store. */
  readonly key: string;
  /** Counts the bytes of the source that have been read. */
  readonly readBytes: number;
  /** Holds the size of the source in bytes, as far as it is known. */
  readonly sizeBytes: number;
  /** Counts the records that this run has appended so far. */
  readonly records: number;
}

/** Describes a line of a source that the store does not hold. */
export interface LostLine {
  /** Holds the line number, from 1. */
  readonly line: number;
  /** Holds the length of the line in bytes, without its line feed. */
  readonly bytes: number;
  /** States why the store lacks the line: `too-long` for a line larger than the store's largest record. */
  readonly reason: string;
}

/**
 * States the outcome of an import for one source.
 * `imported`: a new session. `grown`: lines added since the last import, or the rest of an interrupted one.
 * `unchanged`: nothing to import. `skipped`: not a session, or a session that was purged after an earlier import.
 * `refused`: see `error`; the source is unchanged, and lines imported before the refusal stay in the store.
 */
type ImportState = "imported" | "grown" | "unchanged" | "skipped" | "refused";

/** Describes the outcome for one source. */
export interface ImportSource {
  /** Names the file, or the database and the session in it. */
  readonly path: string;
  /** Names the detected format; `unknown` for a file in no known format. */
  readonly format: SourceFormat;
  /** Holds the session's key in the store; null when the source does not lead to a key. */
  readonly key: string | null;
  /** Names the session's agent; null when the source does not lead to an agent. */
  readonly agentId: string | null;
  /** Holds the session's id in the store; null when the source does not lead to a session. */
  readonly sessionId: string | null;
  /** States the outcome of the import. */
  readonly state: ImportState;
  /** States whether the session is archived. */
  readonly archived: boolean;
  /** Counts the lines read that had not been imported before: `records` plus the number of lost lines. */
  readonly lines: number;
  /** Counts the lines whose record was appended; with `dryRun`, the lines whose record would be. */
  readonly records: number;
  /** Counts the additional records of lines that hold several, such as the second and third of three tool results. */
  readonly derived: number;
  /** Counts the lines in `records` that had to be repaired or could not be read. The store keeps the original line. */
  readonly repaired: number;
  /** Lists the lines of this run that the store does not hold, in the file's order. */
  readonly lost: readonly LostLine[];
  /** Lists the problems of the source by line, and how the import handled them. */
  readonly findings: readonly Finding[];
  /** States why the source was refused; null when it was not. */
  readonly error: ThroughlineError | null;
}

const { callback, flag, number, orNull, signal, text } = optionKinds;

export const importTable: OptionTable<ImportOptions> = {
  from: text,
  key: text,
  readKey: text,
  agentId: text,
  namespace: text,
  purgedSinceMs: number(),
  dryRun: flag,
  storeRoot: orNull(text),
  durability: text,
  onProgress: callback,
  signal,
};

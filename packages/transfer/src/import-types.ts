import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { Durability, Finding, ThroughlineError } from "@throughline/core";
import type { ForeignFormatName } from "@throughline/foreign-formats/internal";
import type { TranscriptFormat } from "@throughline/openclaw-format/internal";

/** What a source is: a transcript of one of the formats, or a database that holds sessions. */
export type SourceFormat = TranscriptFormat | "openclaw-sqlite" | "goclaw" | "clawcode" | ForeignFormatName;

/** A format that an import reads. */
export type ImportFormat = Exclude<SourceFormat, "unknown">;

/** Options of an import. */
export interface ImportOptions {
  /** What the files are. @default "auto": by their place and their first lines */
  readonly from?: "auto" | ImportFormat;
  /** The session's key in the store. Only for a single session. */
  readonly key?: string;
  /**
   * Imports only the session with this key in the source. With `key` it gets another one here, so that the two programs
   * never write the same session. @default every session
   */
  readonly readKey?: string;
  /** For files whose place and key name no agent. @default "main" */
  readonly agentId?: string;
  /** The namespace that the sessions get in the store. @default "" */
  readonly namespace?: string;
  /** Reads and reports, and writes nothing. @default false */
  readonly dryRun?: boolean;
  /**
   * The directory the store itself lies in, if it has one: what is in it is refused, because every session would be
   * there twice. @default null
   */
  readonly storeRoot?: string | null;
  /** What each append must survive: the death of the process, or a power cut. @default the store's */
  readonly durability?: Durability;
  /** Called after each batch and at the end of each file. */
  readonly onProgress?: (progress: ImportProgress) => void;
  /** Ends the import between two batches; the next run goes on from there. */
  readonly signal?: AbortSignal;
}

/** How far the import of one source is. */
interface ImportProgress {
  /** The file, or the database and the session in it. */
  readonly path: string;
  /** The session's key in the store. */
  readonly key: string;
  /** How many bytes of the source have been read. */
  readonly readBytes: number;
  /** The size of the source in bytes, as far as it is known. */
  readonly sizeBytes: number;
  /** How many records this run has appended so far. */
  readonly records: number;
}

/** A line that is not in the store. */
export interface LostLine {
  /** From 1. */
  readonly line: number;
  /** The length of the line in bytes, without its line feed. */
  readonly bytes: number;
  /** Why it is not in the store: `too-long` for a line larger than the store's largest record. */
  readonly reason: string;
}

/**
 * `imported`: a session that was not there. `grown`: what came since the last import, or the rest of one that was cut
 * off. `unchanged`: nothing to do. `skipped`: not a session, or
 * one that was purged after an earlier import. `refused`: see `error`; the source is as it was, and what had been read
 * before stays in the store.
 */
export type ImportState = "imported" | "grown" | "unchanged" | "skipped" | "refused";

/** What became of one source. */
export interface ImportSource {
  /** The file, or the database and the session in it. */
  readonly path: string;
  /** What the source was recognized as; `unknown` for a file in no known format. */
  readonly format: SourceFormat;
  /** The session's key in the store; null when the source does not lead to one. */
  readonly key: string | null;
  /** The agent whose session it is; null when the source does not lead to one. */
  readonly agentId: string | null;
  /** The session's id in the store; null when the source does not lead to one. */
  readonly sessionId: string | null;
  /** What the import did with the source. */
  readonly state: ImportState;
  /** Whether the session is an archived one. */
  readonly archived: boolean;
  /** Lines read that had not been imported before: `records` plus the number of lost ones. */
  readonly lines: number;
  /** Lines whose record was appended; with `dryRun`, would be. */
  readonly records: number;
  /** Further records of lines that hold several, such as the second and third of three tool results. */
  readonly derived: number;
  /** Of `records`, how many stand for a line that had to be put right or could not be read. The line itself is kept. */
  readonly repaired: number;
  /** Lines of this run that are not in the store, in the file's order. */
  readonly lost: readonly LostLine[];
  /** What is wrong with the source, by line, and what was made of it. */
  readonly findings: readonly Finding[];
  /** Why the source was refused; null when it was not. */
  readonly error: ThroughlineError | null;
}

const { callback, flag, orNull, signal, text } = optionKinds;

/** The kinds of the options of `importPaths`. */
export const importTable: OptionTable<ImportOptions> = {
  from: text,
  key: text,
  readKey: text,
  agentId: text,
  namespace: text,
  dryRun: flag,
  storeRoot: orNull(text),
  durability: text,
  onProgress: callback,
  signal,
};

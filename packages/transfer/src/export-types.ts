import type { RandomSource } from "@throughline/core";
import { optionKinds, type OptionTable, portKinds } from "@throughline/core/internal";
import { foreignFormatNames, type WritableFormatName } from "@throughline/foreign-formats/internal";

/**
 * Selects the format that an export writes. `jsonl`: the exact lines; lines of other programs as the records they stand
 * for. `openclaw`, `pi`: version 3 as those programs read it. `claw0`: the context as flat lines, which claw0 replays.
 * `otlp-json`: turns and calls as OpenTelemetry spans. Every other name: the session file of that program.
 * `exportTranscript` writes pages for people.
 */
export type ExportFormat = "jsonl" | "openclaw" | "pi" | "claw0" | "otlp-json" | WritableFormatName;

/** Reports one difference between the export and the store. */
export interface ExportRemark {
  /** Holds the record's seq; null for a line that was added. */
  readonly seq: number | null;
  /** Holds the record's id; null when the remark concerns no single record. */
  readonly id: string | null;
  /**
   * States the kind of difference. `left-out`: the format cannot hold the record. `added`: a header or head row that
   * the format needs. `changed`: the file holds the record in another form.
   */
  readonly what: "left-out" | "added" | "changed";
  /** States the reason for people, such as `a second header`. */
  readonly reason: string;
  /** Names the kind of the affected content in a word or two; set only if the format belongs to another program. */
  readonly kind?: string;
  /** Counts the records concerned. @default 1 */
  readonly records?: number;
}

/** Sets the format and the contents of an export. */
export interface ExportOptions {
  /** Selects the format to write. */
  readonly to: ExportFormat;
  /** Receives a remark for every record left out and every line added; for `claw0` one for each reason. */
  readonly onRemark?: ((remark: ExportRemark) => void) | undefined;
  /**
   * Sets the folder that a header of `openclaw` or `pi` names. It applies if neither the session's header nor its entry
   * (`cwd`) names one. pi resumes a session in that folder. @default none
   */
  readonly workingDirectory?: string | undefined;
  /**
   * Sets the session id in the file; `jsonl`, `claw0` and `otlp-json` ignore it.
   * @default the session's own id, or an id derived from it in the program's form
   */
  readonly sessionId?: string | undefined;
  /** Includes the content of prompts and replies in the spans of `otlp-json`. @default false */
  readonly includeContent?: boolean | undefined;
  /** Ends the export with ABORTED; an unfinished file is removed. */
  readonly signal?: AbortSignal | undefined;
}

/** Prefers the folder that the header states, then the entry's folder, then the caller's. */
export function workingDirectoryOf(
  stated: unknown,
  entry: Readonly<Record<string, unknown>>,
  { workingDirectory = "" }: ExportOptions,
): string {
  const known = [stated, entry["cwd"]].find((cwd) => typeof cwd === "string" && cwd !== "");
  return typeof known === "string" ? known : workingDirectory;
}

const ownFormats: readonly ExportFormat[] = ["jsonl", "openclaw", "pi", "claw0", "otlp-json"];

export const exportTable: OptionTable<ExportOptions> = {
  // A format that is only read is here too: a session that came in it is written as it came.
  to: optionKinds.required(optionKinds.oneOf([...ownFormats, ...foreignFormatNames])),
  onRemark: optionKinds.callback,
  workingDirectory: optionKinds.text,
  sessionId: optionKinds.text,
  includeContent: optionKinds.flag,
  signal: optionKinds.signal,
};

/** Sets the format and the contents of an export into a file. */
export interface ExportFileOptions extends ExportOptions {
  /** Supplies the random part of temporary file names. @default the system's */
  readonly random?: RandomSource;
}

/** Selects the sessions that `exportAll` writes, and their format. */
export interface ExportAllOptions extends Omit<ExportFileOptions, "sessionId"> {
  /** Exports the sessions of this namespace only. @default "" */
  readonly namespace?: string;
  /** Exports the sessions of this agent only. @default all agents */
  readonly agentId?: string;
  /** Includes archived sessions, under OpenClaw's names for archives. @default false */
  readonly archived?: boolean;
}

export const fileTable: OptionTable<ExportFileOptions> = { ...exportTable, random: portKinds.random };

const { sessionId: _oneSession, ...tableOfEach } = fileTable;

export const allTable: OptionTable<ExportAllOptions> = {
  ...tableOfEach,
  namespace: optionKinds.text,
  agentId: optionKinds.text,
  archived: optionKinds.flag,
};

import type { RandomSource } from "@throughline/core";
import { optionKinds, type OptionTable, portKinds } from "@throughline/core/internal";
import type { WritableFormatName } from "@throughline/foreign-formats/internal";

/**
 * `jsonl`: the exact lines; of lines of other programs the records they stand for. `openclaw`, `pi`: version 3 as those
 * programs read it. `claw0`: the context as flat lines, which claw0 replays. `otlp-json`: turns and calls as OpenTelemetry spans. The
 * others: as that program keeps its sessions.
 */
export type ExportFormat = "jsonl" | "openclaw" | "pi" | "claw0" | "otlp-json" | WritableFormatName;

/** A record that is not in the export as it is in the store. */
export interface ExportRemark {
  /** Null for a line that was added. */
  readonly seq: number | null;
  /** The record's id; null when the remark concerns no single record. */
  readonly id: string | null;
  /**
   * `left-out`: has no place in the format. `added`: a header or head row the format needs. `changed`: is in the file in
   * another form.
   */
  readonly what: "left-out" | "added" | "changed";
  /** Why, for people, such as `a second header`. */
  readonly reason: string;
  /** What it is in a word or two, the same for all of its kind; only where the format is that of another program. */
  readonly kind?: string;
  /** How many records it concerns. @default 1 */
  readonly records?: number;
}

/** Options of an export. */
export interface ExportOptions {
  /** The format to write. */
  readonly to: ExportFormat;
  /** Called for every record left out and every line added; for `claw0` once for each reason. */
  readonly onRemark?: (remark: ExportRemark) => void;
  /**
   * The folder a header of `openclaw` or `pi` names when neither the session's own header nor its entry (`cwd`) names one: pi
   * resumes a session in that folder. @default none
   */
  readonly workingDirectory?: string;
  /**
   * The id of the session in the file; not for `jsonl` and `claw0`.
   * @default the session's own, or one made of it in the form of the program's
   */
  readonly sessionId?: string;
  /** For `otlp-json`: whether spans have what was sent and said. @default false */
  readonly includeContent?: boolean;
  /** Ends the export with ABORTED; an unfinished file is removed. */
  readonly signal?: AbortSignal;
}

/** The folder that a session's header is to name: the one it states itself, else its entry's, else the caller's. */
export function workingDirectoryOf(
  stated: unknown,
  entry: Readonly<Record<string, unknown>>,
  { workingDirectory = "" }: ExportOptions,
): string {
  const known = [stated, entry["cwd"]].find((cwd) => typeof cwd === "string" && cwd !== "");
  return typeof known === "string" ? known : workingDirectory;
}

/** The kinds of the options of `exportSession`. */
export const exportTable: OptionTable<ExportOptions> = {
  to: optionKinds.required(optionKinds.filledText),
  onRemark: optionKinds.callback,
  workingDirectory: optionKinds.text,
  sessionId: optionKinds.text,
  includeContent: optionKinds.flag,
  signal: optionKinds.signal,
};

/** Options of an export into a file. */
export interface ExportFileOptions extends ExportOptions {
  /** For temporary names. @default the system's */
  readonly random?: RandomSource;
}

/** Options of `exportAll`. */
export interface ExportAllOptions extends ExportFileOptions {
  /** Exports the sessions of this namespace only. @default "" */
  readonly namespace?: string;
  /** Exports the sessions of this agent only. @default all agents */
  readonly agentId?: string;
  /** Also archived sessions, under OpenClaw's names for archives. @default false */
  readonly archived?: boolean;
}

/** The kinds of the options of `exportToFile`. */
export const fileTable: OptionTable<ExportFileOptions> = { ...exportTable, random: portKinds.random };

/** The kinds of the options of `exportAll`. */
export const allTable: OptionTable<ExportAllOptions> = {
  ...fileTable,
  namespace: optionKinds.text,
  agentId: optionKinds.text,
  archived: optionKinds.flag,
};

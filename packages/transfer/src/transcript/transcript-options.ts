import type { Clock, SessionState } from "@throughline/core";
import { optionKinds, type OptionTable, portKinds } from "@throughline/core/internal";
import { type TranscriptLevel, transcriptLevels } from "@throughline/transcript-view/internal";

/** Lists the formats of a transcript for people. */
export const transcriptFormats = ["html", "markdown"] as const;
export type TranscriptFormat = (typeof transcriptFormats)[number];

/** Sets what a transcript for people holds. */
export interface TranscriptOptions {
  /** Selects the format. */
  readonly to: TranscriptFormat;
  /**
   * Sets how much is shown: `full`, `compact` (results to 20 lines), or `words` (only what people and models said).
   * @default "compact"
   */
  readonly level?: TranscriptLevel | undefined;
  /** Replaces secrets of known shapes, and home directories by `~`. @default true */
  readonly redact?: boolean | undefined;
  /**
   * Replaces what these expressions match, too. They have the syntax of `RegExp` without back references, named groups and
   * `\p`, and match within one line.
   * @default none
   */
  readonly patterns?: readonly string[] | undefined;
  /** Includes PNG, JPEG, GIF and WebP images; without it, their type and size. @default false */
  readonly images?: boolean | undefined;
  /** Names the home directory that becomes `~`, beside those of usual places. @default none */
  readonly home?: string | undefined;
  /** Names the first file; the others have `-1`, `-2` before the ending. @default a name from the session and the day */
  readonly fileName?: string | undefined;
  /** Limits the records of one file. @default 5000 */
  readonly recordsPerFile?: number | undefined;
  /** Supplies the time of the export. @default the system's */
  readonly clock?: Clock | undefined;
  /** Ends the export with ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

export const transcriptTable: OptionTable<TranscriptOptions> = {
  to: optionKinds.required(optionKinds.oneOf(transcriptFormats)),
  level: optionKinds.oneOf(transcriptLevels),
  redact: optionKinds.flag,
  patterns: optionKinds.listOf(optionKinds.text),
  images: optionKinds.flag,
  home: optionKinds.text,
  fileName: optionKinds.filledText,
  recordsPerFile: optionKinds.integer({ min: 1 }),
  clock: portKinds.clock,
  signal: optionKinds.signal,
};

const endings: Readonly<Record<TranscriptFormat, string>> = { html: "html", markdown: "md" };
const mostNameCharacters = 60;

/** Returns `NAME-SESSIONID8-DATE.html`. The name has letters, digits and `-` only. */
export function transcriptFileName(
  name: string,
  { sessionId }: SessionState,
  to: TranscriptFormat,
  nowMs: number,
): string {
  const words = name.normalize("NFC").match(/[\p{L}\p{N}]{1,60}/gu) ?? [];
  let shown = "";
  for (const word of words) {
    if (shown.length + word.length > mostNameCharacters) break;
    shown += shown === "" ? word : `-${word}`;
  }
  const id = sessionId.replace(/[^A-Za-z0-9]/g, "").slice(0, 8);
  const day = new Date(nowMs).toISOString().slice(0, 10);
  return `${[shown.toLowerCase(), id, day].filter((part) => part !== "").join("-")}.${endings[to]}`;
}

/** Returns the names of all files: that of the first one, then with `-1`, `-2` before the ending. */
export function partNames(first: string, count: number): readonly string[] {
  const dot = first.lastIndexOf(".");
  const [stem, ending] = dot <= 0 ? [first, ""] : [first.slice(0, dot), first.slice(dot)];
  return Array.from({ length: count }, (_each, index) => (index === 0 ? first : `${stem}-${index}${ending}`));
}

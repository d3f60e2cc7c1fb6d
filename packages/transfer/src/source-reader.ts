import { type Finding, isRecordOfType, type SessionRecord } from "@throughline/core";
import { isSideRecord, type RecordSource } from "@throughline/core/internal";
import { createTranscriptReader } from "@throughline/openclaw-format";
import type { TranscriptLine } from "@throughline/openclaw-format/internal";
import type { ForeignFormat } from "@throughline/foreign-formats";
import type { UnitPlace } from "@throughline/foreign-formats/internal";
import { oneLineSource } from "./one-line-source.ts";

export interface SourceLine extends TranscriptLine {
  /** Holds the records after the first; absent when the line has one record. */
  readonly derived?: readonly SessionRecord[];
}

export interface SourceReader {
  push(unit: RecordSource, place: UnitPlace): SourceLine;
  /** Must be called after the last line, because some findings depend on the end. */
  finish(): void;
  readonly findings: readonly Finding[];
  readonly headId: string | null;
  /** Holds the entry fields that the lines so far state. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** Holds earlier session names from the lines. A label that equals one of them came from the source. */
  readonly earlierNames: ReadonlySet<string>;
}

export interface SourceReaderOptions {
  readonly key?: string;
  readonly maxLineBytes?: number;
}

interface ReadSource {
  readonly path: string;
  /** Holds the id from the file name; null if the name does not decide. */
  readonly nameSessionId: string | null;
  /** Sets the format of another program's lines. Absent for lines that openclaw-format reads. */
  readonly foreign?: ForeignFormat;
  /** Maps ids of the session's lines to titles from other files of its folder. @default none */
  readonly strayTitles?: ReadonlyMap<string, string>;
}

/**
 * Creates the reader of a source. Equal lines must give equal records in every process, because an import compares
 * them.
 */
export function createSourceReader(source: ReadSource, options: SourceReaderOptions = {}): SourceReader {
  return source.foreign === undefined ? ownReader(source, options) : foreignReader(source.foreign, source, options);
}

const noNames: ReadonlySet<string> = new Set();

function ownReader(source: ReadSource, options: SourceReaderOptions): SourceReader {
  const { path, nameSessionId: sessionId } = source;
  const reader = createTranscriptReader({ path, sessionId, ...options });
  const names: string[] = [];
  return {
    push: (unit, place) => {
      const line = reader.push(unit, place);
      // pi's `/name` command writes this record.
      const name = isRecordOfType(line.record, "session_info") ? line.record.name : undefined;
      if (typeof name === "string" && name.trim() !== "") names.push(name.trim());
      return line;
    },
    finish: () => void reader.finish(),
    get findings() {
      return reader.findings;
    },
    get headId() {
      return reader.headId;
    },
    get entry() {
      const label = names.at(-1);
      return label === undefined ? {} : { label };
    },
    get earlierNames() {
      return new Set(names.slice(0, -1));
    },
  };
}

function foreignReader(
  format: ForeignFormat,
  { path, strayTitles }: ReadSource,
  { key, maxLineBytes }: SourceReaderOptions,
): SourceReader {
  const reader = format.createReader({
    path,
    ...(key === undefined ? {} : { key }),
    ...(maxLineBytes === undefined ? {} : { maxUnitBytes: maxLineBytes }),
    ...(strayTitles === undefined ? {} : { strayTitles }),
  });
  return {
    push: (source, place) => {
      const { records, unparsed } = reader.push(source, place);
      const [record, ...derived] = records;
      const tsMs = Date.parse(record.timestamp);
      return {
        line: place.line,
        byteOffset: place.byteOffset,
        source: place.part === undefined ? source : oneLineSource(source),
        record,
        isSourceCanonical: false,
        side: isSideRecord(record),
        tsMs: Number.isFinite(tsMs) ? tsMs : null,
        headId: reader.headId,
        setsHead: false,
        envelope: null,
        isHeader: false,
        unparsed,
        derived,
      };
    },
    finish: () => void reader.finish(),
    get findings() {
      return reader.findings;
    },
    get headId() {
      return reader.headId;
    },
    get entry() {
      return reader.entry;
    },
    earlierNames: noNames,
  };
}

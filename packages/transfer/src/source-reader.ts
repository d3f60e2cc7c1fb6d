import { type Finding, isRecordOfType, type SessionRecord } from "@throughline/core";
import { isSideRecord, type RecordSource } from "@throughline/core/internal";
import { createTranscriptReader } from "@throughline/openclaw-format";
import { type TranscriptLine } from "@throughline/openclaw-format/internal";
import type { ForeignFormat } from "@throughline/foreign-formats";
import type { UnitPlace } from "@throughline/foreign-formats/internal";
import { oneLineSource } from "./one-line-source.ts";

/** A line of a source, and the records it stands for. */
export interface SourceLine extends TranscriptLine {
  /** Behind the record that has the line as its source; absent where there is that record alone. */
  readonly derived?: readonly SessionRecord[];
}

/** Reads the lines of a source in order, whichever program wrote them. */
export interface SourceReader {
  push(unit: RecordSource, place: UnitPlace): SourceLine;
  /** Call after the last line: some findings are known only then. */
  finish(): void;
  readonly findings: readonly Finding[];
  /** The head after the last line. */
  readonly headId: string | null;
  /** What the lines so far say of the session: fields of its entry. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** The names that lines gave the session before the last one: a label that is one of these came from the source. */
  readonly earlierNames: ReadonlySet<string>;
}

export interface SourceReaderOptions {
  readonly key?: string;
  readonly maxLineBytes?: number;
}

/** What the reader needs to know of a source. */
interface ReadSource {
  readonly path: string;
  /** The id that the file name states; null where the name does not decide. */
  readonly nameSessionId: string | null;
  /** The format of another program's lines. Absent: lines that openclaw-format reads. */
  readonly foreign?: ForeignFormat;
  /** Titles from other files of its folder, by the id of a line of the session that they are of. @default none */
  readonly strayTitles?: ReadonlyMap<string, string>;
}

/** Creates the reader of a source. The same lines give the same records in every process. */
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
      // The record that pi's `/name` writes.
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

import type { Finding, RecordSource, SessionRecord } from "@throughline/core";
import { isSideRecord } from "@throughline/core/internal";
import { createTranscriptReader, type TranscriptLine } from "@throughline/openclaw-format";
import type { ForeignFormat, UnitPlace } from "@throughline/foreign-formats";
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
}

/** Creates the reader of a source. The same lines give the same records in every process. */
export function createSourceReader(source: ReadSource, options: SourceReaderOptions = {}): SourceReader {
  return source.foreign === undefined ? ownReader(source, options) : foreignReader(source.foreign, source, options);
}

const noEntry: Readonly<Record<string, unknown>> = {};

function ownReader(source: ReadSource, options: SourceReaderOptions): SourceReader {
  const { path, nameSessionId: sessionId } = source;
  const reader = createTranscriptReader({ path, sessionId, ...options });
  return {
    push: (line, place) => reader.push(line, place),
    finish: () => void reader.finish(),
    get findings() {
      return reader.findings;
    },
    get headId() {
      return reader.headId;
    },
    entry: noEntry,
  };
}

function foreignReader(
  format: ForeignFormat,
  { path }: ReadSource,
  { key, maxLineBytes }: SourceReaderOptions,
): SourceReader {
  const reader = format.createReader({
    path,
    ...(key === undefined ? {} : { key }),
    ...(maxLineBytes === undefined ? {} : { maxUnitBytes: maxLineBytes }),
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
  };
}

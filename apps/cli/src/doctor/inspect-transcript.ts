import {
  assertKnownOptions,
  createFinding,
  optionKinds,
  type OptionTable,
  runInSlices,
} from "@throughline/core/internal";
import type { Finding, StoredRecord } from "@throughline/core";
import { createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import { numberedLines, strangeTranscript } from "@throughline/openclaw-format/internal";
import type { TranscriptHeader, TranscriptLine } from "@throughline/openclaw-format/internal";
import { lightRecord, mergeSteps, recordSteps } from "@throughline/transfer/internal";
import type { RecordPlace } from "@throughline/transfer/internal";

/** Holds the options of `inspectTranscript`. */
export interface InspectTranscriptOptions {
  /** States the path that the findings name. @default null */
  readonly path?: string | null;
  /**
   * States the session id in the file's name. A header with another id is a finding.
   * @default null: the name states no id
   */
  readonly sessionId?: string | null;
  /** Ends the check between two chunks; the call rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** Reports the result of checking one transcript. */
export interface TranscriptReport {
  /** Lists the findings in the order of the file. Each problem of a record appears once. */
  readonly findings: readonly Finding[];
  /** Holds the first header of the file; null when the file has none or is not a transcript. */
  readonly header: TranscriptHeader | null;
  /** Counts the lines, including the header and unreadable lines. */
  readonly lineCount: number;
}

const transcriptTable: OptionTable<InspectTranscriptOptions> = {
  path: optionKinds.orNull(optionKinds.text),
  sessionId: optionKinds.orNull(optionKinds.text),
  signal: optionKinds.signal,
};

/**
 * Reads a transcript of any version and reports problems in its lines, in its tree, and in the context that a model
 * would get.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option, and any error of the chunks
 */
export async function inspectTranscript(
  chunks: AsyncIterable<Uint8Array>,
  options: InspectTranscriptOptions = {},
): Promise<TranscriptReport> {
  assertKnownOptions<InspectTranscriptOptions>("inspectTranscript", options, transcriptTable);
  const path = options.path ?? null;
  const reader = createTranscriptReader({ path, sessionId: options.sessionId ?? null });
  const records: StoredRecord[] = [];
  const places = new Map<string, RecordPlace>();
  const unparsedIds = new Set<string>();
  const pieces = chunks[Symbol.asyncIterator]();
  const first = await pieces.next();
  const strange = first.done === true ? null : strangeTranscript(first.value);
  if (strange !== null) {
    await pieces.return?.();
    const finding = createFinding("TRANSCRIPT_FOREIGN", `The file ${strange.what}.`, { path });
    return { findings: [{ ...finding, remedy: strange.remedy }], header: null, lineCount: 0 };
  }
  for await (const { bytes, place } of numberedLines(following(first, pieces), options.signal)) {
    const line = reader.push(decodeLine(bytes), place);
    records.push(storedRecord(line, place.sizeBytes));
    places.set(line.record.id, { line: line.line, byteOffset: line.byteOffset });
    if (line.unparsed !== null) unparsedIds.add(line.record.id);
  }
  const readerFindings = reader.finish().map(inFile);
  // The reader has reported each unreadable line already. The record that replaces the line adds no finding.
  const recordFindings = (await runInSlices(recordSteps(records, reader.headId))).filter(
    ({ recordId }) => recordId === null || !unparsedIds.has(recordId),
  );
  const findings = await runInSlices(mergeSteps([readerFindings, recordFindings], { path, places }));
  return { findings, header: reader.header, lineCount: records.length };
}

/** The standard remedy is to raise a limit, but a check has none. The import decides about lines that are too long. */
function inFile(finding: Finding): Finding {
  if (finding.code !== "LINE_TOO_LONG") return finding;
  return { ...finding, remedy: "Keep the file: no store takes a line so long, and an import leaves it there." };
}

async function* following(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    for (let piece = first; piece.done !== true; piece = await rest.next()) yield piece.value;
  } finally {
    await rest.return?.();
  }
}

function storedRecord({ line, record, side, tsMs }: TranscriptLine, bytes: number): StoredRecord {
  const { id, parentId, type } = record;
  const light = lightRecord(record, bytes);
  return { seq: line, id, parentId, type, side, tsMs, storedAtMs: null, bytes, crc: null, record: light };
}

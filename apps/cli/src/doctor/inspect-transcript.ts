import {
  abortedBefore,
  assertKnownOptions,
  createFinding,
  optionKinds,
  type OptionTable,
  runInSlices,
} from "@throughline/core/internal";
import type { Finding, StoredRecord } from "@throughline/core";
import { createLineSplitter, createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import { strangeTranscript } from "@throughline/openclaw-format/internal";
import type { SplitLine, TranscriptHeader } from "@throughline/openclaw-format/internal";
import type { TranscriptLine } from "@throughline/openclaw-format";
import { lightRecord, mergeSteps, recordSteps } from "@throughline/transfer/internal";
import type { RecordPlace } from "@throughline/transfer/internal";

/** Options of `inspectTranscript`. */
export interface InspectTranscriptOptions {
  /** Named in the findings. */
  readonly path?: string | null;
  /** The id the file's name states, if it states one; a header with another is a finding. @default null */
  readonly sessionId?: string | null;
  /** Ends the check between two chunks; the call rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** What a check found in one transcript. */
export interface TranscriptReport {
  /** The findings in the order of the file, each problem of a record once. */
  readonly findings: readonly Finding[];
  /** The first header of the file; null when it has none, or is not a transcript. */
  readonly header: TranscriptHeader | null;
  /** Lines, the header and unreadable ones included. */
  readonly lineCount: number;
}

const transcriptTable: OptionTable<InspectTranscriptOptions> = {
  path: optionKinds.orNull(optionKinds.text),
  sessionId: optionKinds.orNull(optionKinds.text),
  signal: optionKinds.signal,
};

/**
 * Reads a transcript of any version and says what is odd about it: its lines, its tree, and what a model would get.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option, and what the chunks throw
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
  for await (const split of splitLines(following(first, pieces), options.signal)) {
    const line = reader.push(decodeLine(split.bytes), placeOf(split));
    records.push(storedRecord(line, split.sizeBytes));
    places.set(line.record.id, { line: line.line, byteOffset: line.byteOffset });
    if (line.unparsed !== null) unparsedIds.add(line.record.id);
  }
  const readerFindings = reader.finish().map(inFile);
  // Of a line that cannot be read the reader has said why; its stand-in has nothing to add.
  const recordFindings = (await runInSlices(recordSteps(records, reader.headId))).filter(
    ({ recordId }) => recordId === null || !unparsedIds.has(recordId),
  );
  const findings = await runInSlices(mergeSteps([readerFindings, recordFindings], { path, places }));
  return { findings, header: reader.header, lineCount: records.length };
}

/** What becomes of a line that is too long is for whoever imports the file; looking at it has no limit to be raised. */
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

export interface NumberedLine extends SplitLine {
  /** From 1. */
  readonly line: number;
}

/** The lines of a file with their numbers. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<NumberedLine, void, void> {
  const splitter = createLineSplitter();
  let line = 0;
  for await (const chunk of chunks) {
    if (signal?.aborted) throw abortedBefore("the whole transcript was read", signal);
    for (const split of splitter.push(chunk)) yield { ...split, line: (line += 1) };
  }
  const rest = splitter.end();
  if (rest !== null) yield { ...rest, line: line + 1 };
}

/** What the reader wants to know of a line's place. */
export function placeOf({ line, byteOffset, sizeBytes, isTerminated }: NumberedLine): {
  readonly line: number;
  readonly byteOffset: number;
  readonly sizeBytes: number;
  readonly isTerminated: boolean;
} {
  return { line, byteOffset, sizeBytes, isTerminated };
}

function storedRecord({ line, record, side, tsMs }: TranscriptLine, bytes: number): StoredRecord {
  const { id, parentId, type } = record;
  const light = lightRecord(record, bytes);
  return { seq: line, id, parentId, type, side, tsMs, storedAtMs: null, bytes, crc: null, record: light };
}

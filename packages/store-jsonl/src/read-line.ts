import type { SessionRecord } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { decodeLine } from "@throughline/openclaw-format";
import { ownLine, type FramedLine } from "./framed-lines.ts";
import { isDamagedOwn } from "./line-damage.ts";
import { decodeStoredLine, foreignHead, outlineOf, renamedLine, type ReadLine } from "./stored-line.ts";
import type { Transcript } from "./transcript.ts";

/**
 * Signals that a line cannot be read alone: the record of another program's line depends on earlier lines that were not
 * loaded.
 */
export class NeedsWholeTranscript extends Error {}

/** Accepts a line of another program. @throws {ThroughlineError} STORE_CORRUPT for a damaged line of this store */
export function assertNotOurs(seq: number, line: Pick<FramedLine, "bytes">): void {
  if (isDamagedOwn(line.bytes())) throw damagedLine(seq, {});
}

export function damagedLine(seq: number, details: Readonly<Record<string, unknown>>): Error {
  return refused("STORE_CORRUPT", `Record ${seq} is damaged: its line is not what was written.`, { seq, ...details });
}

export function readLine(transcript: Transcript, seq: number, bytes: Uint8Array): ReadLine {
  return readFramed(transcript, seq, { own: () => ownLine(bytes), bytes: () => bytes, sizeBytes: bytes.length });
}

export function readFramed(
  transcript: Transcript,
  seq: number,
  line: Pick<FramedLine, "own" | "bytes" | "sizeBytes">,
): ReadLine {
  const { codec, owner } = transcript.options;
  const read = line.own();
  if (read?.isIntact === false) {
    // The error would lack the line number, which only a read of the whole transcript can report.
    if (transcript.base !== null) throw new NeedsWholeTranscript();
    throw damagedLine(seq, { path: transcript.options.path });
  }
  const own = read === null || read.envelope.seq === 0 ? null : decodeStoredLine(read, codec, owner);
  const meaning = transcript.meanings.get(seq);
  if (own !== null) return meaning === undefined ? own : renamedLine(own, meaning.id);
  if (transcript.base !== null) throw new NeedsWholeTranscript();
  const bytes = line.bytes();
  const record = structuredClone(meaning) ?? (JSON.parse(Buffer.from(bytes).toString()) as SessionRecord);
  const source = decodeLine(bytes);
  const isSourceCanonical = meaning === undefined;
  return {
    ...foreignHead(record, line.sizeBytes),
    payload: () => ({ record, source, isSourceCanonical }),
    outline: () => outlineOf(record),
  };
}

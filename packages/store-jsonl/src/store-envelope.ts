import { crc32 } from "node:zlib";
import type { OpenTurn, SessionHead } from "@throughline/core";
import { decodeLine } from "@throughline/openclaw-format";
import {
  attachEnvelopeText,
  detachEnvelope,
  envelopeText,
  type LineEnvelope,
} from "@throughline/openclaw-format/internal";

/** The line envelope with the members this store adds; `docs/formats/records.md` describes them all. */
export interface StoreEnvelope extends LineEnvelope {
  /** The entry's revision after the append; with `entry`, `unset`, `entryEnc` or `idem`. */
  readonly revision?: number;
  /** The activity time the patch claimed, where it claimed one. */
  readonly updated?: number;
  /** In the header of a fork: whose records it begins with, as its entry and its line in the entries log say it. */
  readonly forkedFrom?: ForkSource;
  readonly origins?: readonly (readonly [sessionId: string, seq: number])[];
  /** With `window`: what the session adds up to after this line, so that nobody has to read what lies before. */
  readonly mark?: WindowMark;
  /** Under a codec: the entry's patch, coded. */
  readonly entryEnc?: string;
  /** Under a codec: what can no longer be seen in the line. */
  readonly side?: boolean;
  readonly bytes?: number;
  /** Under a codec: `sourceBase64` holds coded text rather than coded bytes. */
  readonly isSourceText?: boolean;
  /** On a tombstone that this version or a later one wrote. */
  readonly erased?: true;
}

/** Where a fork comes from. */
export interface ForkSource {
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  /** The last record it shares. */
  readonly atSeq: number;
}

/** A session's state at a line, beside what the line's own envelope says. */
export interface WindowMark {
  readonly messages: number;
  readonly head: string | null;
  readonly fence: number;
  readonly turn: OpenTurn | null;
  readonly updated: number;
  /** The entry's. */
  readonly revision: number;
}

/** A place in a transcript and what everything before it adds up to: reading can begin there. */
export interface TranscriptBase {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  /** Entry patches up to this revision lie before the place. */
  readonly revision: number;
  readonly endBytes: number;
  /** Where the line of the window's first record begins, where that is known. Whoever reads there looks at its seq. */
  readonly windowAt?: number | undefined;
}

/** A change of the entry that traveled with records. */
export interface EntryPatch {
  readonly revision: number;
  readonly envelope: StoreEnvelope;
  readonly atMs: number;
}

/** A line without its envelope, as `detachEnvelope` gives it. */
export interface OwnLine {
  readonly text: string;
  readonly envelope: StoreEnvelope;
  /** As many bytes as characters. Not said of every line. */
  readonly isAscii: boolean;
  /** False where the envelope does not fit its checksum. */
  readonly isIntact: boolean;
}

const marker = '"_tl":';
const sealStart = ',"sum":';
const sealEnd = /,"sum":(\d{1,10})\}\}[ \t\r]*$/;

/** Writes a record and its envelope as one line. The last member of the envelope is a checksum of those before it. */
export function sealLine(text: string, envelope: StoreEnvelope): string {
  const json = envelopeText(envelope.sum === undefined ? envelope : withoutSum(envelope)).slice(0, -1);
  return attachEnvelopeText(text, `${json}${sealStart}${crc32(json)}}`);
}

function withoutSum({ sum: _sum, ...members }: StoreEnvelope): StoreEnvelope {
  return members;
}

/**
 * Whether the envelope that begins at a place of a line is as it was written. Those of earlier versions have no checksum. `text`:
 * the line without it.
 */
export function isSealWhole(line: string, from: number, envelope: StoreEnvelope, text: () => string): boolean {
  const { sum } = envelope;
  if (sum === undefined || crc32(line.slice(from, line.lastIndexOf(sealStart))) === sum) return true;
  return envelope.erased !== true && isEarlierTombstone(text(), envelope);
}

const tombstoneMembers = ['"customType":"throughline.redaction"', '"originalType":"compaction"'];

/** An earlier version that redacts a record knows nothing of the checksum, and leaves that of the line before. */
function isEarlierTombstone(text: string, { crc }: StoreEnvelope): boolean {
  return tombstoneMembers.some((member) => text.includes(member)) && crc === crc32(text);
}

/** A line that a store of ours wrote, or what damage left of it; null for a line of another program. */
export function readSealedLine(bytes: Uint8Array): OwnLine | null {
  const source = decodeLine(bytes);
  const text = typeof source === "string" ? source : Buffer.from(bytes).toString();
  const read = readSealedText(text);
  // Bytes that are no UTF-8 are kept as another program's, unless a checksum says whose they were.
  if (read === null || (typeof source !== "string" && read.envelope.sum === undefined)) return null;
  return { ...read, isAscii: text.length === bytes.length };
}

/** Reads a line that is a text, as `readSealedLine` reads one of bytes. */
export function readSealedText(line: string): OwnLine | null {
  const { text, envelope } = detachEnvelope(line);
  if (envelope === null) return damagedSeal(line);
  const isIntact = isSealWhole(line, line.lastIndexOf(marker) + marker.length, envelope, () => text);
  return { text, envelope, isAscii: false, isIntact };
}

/**
 * A line with our checksum at its end whose envelope cannot be taken off: its name, its JSON or the start of the line is
 * damaged. A line with zeros is what a power cut left, and may never have been acknowledged.
 */
function damagedSeal(line: string): OwnLine | null {
  const found = sealEnd.exec(line);
  if (found === null || line.includes("\0")) return null;
  const named = line.lastIndexOf(`${marker}{`, found.index);
  const start = named === -1 ? line.lastIndexOf('{"seq":', found.index) : named + marker.length;
  if (start < marker.length) return null;
  const json = line.slice(start, found.index);
  if (named === -1 && crc32(json) !== Number(found[1])) return null;
  const before = line.slice(0, start - marker.length);
  const text = `${before.endsWith(",") ? before.slice(0, -1) : before}}`;
  return { text, envelope: envelopeOf(json), isAscii: false, isIntact: false };
}

function envelopeOf(json: string): StoreEnvelope {
  try {
    return { seq: unknownSeq, ...(JSON.parse(`${json}}`) as Partial<StoreEnvelope>) };
  } catch {
    return { seq: unknownSeq };
  }
}

/** The seq of an envelope that cannot be read. */
const unknownSeq = -1;

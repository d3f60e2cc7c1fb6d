import { crc32 } from "node:zlib";
import type { OpenTurn, SessionHead } from "@throughline/core";
import { decodeLine } from "@throughline/openclaw-format";
import {
  attachEnvelopeText,
  detachEnvelope,
  envelopeText,
  type LineEnvelope,
} from "@throughline/openclaw-format/internal";

/** Describes the line envelope with the members of this store. `docs/formats/records.md` specifies all of them. */
export interface StoreEnvelope extends LineEnvelope {
  /** States the entry's revision after the append; present with `entry`, `unset`, `entryEnc` or `idem`. */
  readonly revision?: number;
  readonly updated?: number;
  /** States the origin of a fork, in its header. The entry and the log repeat it, and may be lost. */
  readonly forkedFrom?: ForkSource;
  readonly origins?: readonly (readonly [sessionId: string, seq: number])[];
  /** States the session after this line, so that earlier lines need not be read. It is present with `window`. */
  readonly mark?: WindowMark;
  readonly entryEnc?: string;
  /** Repeats fields of the record, because an encoded line hides them. */
  readonly side?: boolean;
  readonly bytes?: number;
  /** Is true when `sourceBase64` holds encoded text rather than encoded bytes. */
  readonly isSourceText?: boolean;
  /** Is true on tombstones of this version or a later one. */
  readonly erased?: true;
}

export interface ForkSource {
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly atSeq: number;
}

/** Holds a session's state at a line, without the values that the line's envelope states anyway. */
export interface WindowMark {
  readonly messages: number;
  readonly head: string | null;
  readonly fence: number;
  readonly turn: OpenTurn | null;
  readonly updated: number;
  readonly revision: number;
}

/** Holds a position in a transcript and the state there, so that reading can start at it. */
export interface TranscriptBase {
  readonly head: SessionHead;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  readonly revision: number;
  readonly endBytes: number;
  /** States where the line of the window's first record starts, if known. A reader must check the seq there. */
  readonly windowAt?: number | undefined;
}

export interface EntryPatch {
  readonly revision: number;
  readonly envelope: StoreEnvelope;
  readonly atMs: number;
}

export interface OwnLine {
  readonly text: string;
  readonly envelope: StoreEnvelope;
  /** Is true when the line has as many bytes as characters. False may also mean that this was not determined. */
  readonly isAscii: boolean;
  readonly isIntact: boolean;
}

const marker = '"_tl":';
const sealStart = ',"sum":';
const sealEnd = /,"sum":(\d{1,10})\}\}[ \t\r]*$/;

/** Joins a record and its envelope to one line. The envelope's last member is a checksum of the members before it. */
export function sealLine(text: string, envelope: StoreEnvelope): string {
  const json = envelopeText(envelope.sum === undefined ? envelope : withoutSum(envelope)).slice(0, -1);
  return attachEnvelopeText(text, `${json}${sealStart}${crc32(json)}}`);
}

function withoutSum({ sum: _sum, ...members }: StoreEnvelope): StoreEnvelope {
  return members;
}

/**
 * Tests whether the envelope at a position is unchanged. Envelopes of earlier versions have no checksum. `text` returns
 * the line without the envelope.
 */
export function isSealWhole(line: string, from: number, envelope: StoreEnvelope, text: () => string): boolean {
  const { sum } = envelope;
  if (sum === undefined || crc32(line.slice(from, line.lastIndexOf(sealStart))) === sum) return true;
  return envelope.erased !== true && isEarlierTombstone(text(), envelope);
}

const tombstoneMembers = ['"customType":"throughline.redaction"', '"originalType":"compaction"'];

/** An earlier version that redacts a record does not know the checksum, and keeps the one of the previous line. */
function isEarlierTombstone(text: string, { crc }: StoreEnvelope): boolean {
  return tombstoneMembers.some((member) => text.includes(member)) && crc === crc32(text);
}

/** Reads a line of this store, even a damaged one; returns null for a line of another program. */
export function readSealedLine(bytes: Uint8Array): OwnLine | null {
  const source = decodeLine(bytes);
  const text = typeof source === "string" ? source : Buffer.from(bytes).toString();
  const read = readSealedText(text);
  // Bytes that are not UTF-8 count as another program's, unless a checksum shows that this store wrote them.
  if (read === null || (typeof source !== "string" && read.envelope.sum === undefined)) return null;
  return { ...read, isAscii: text.length === bytes.length };
}

export function readSealedText(line: string): OwnLine | null {
  const { text, envelope } = detachEnvelope(line);
  if (envelope === null) return damagedSeal(line);
  const isIntact = isSealWhole(line, line.lastIndexOf(marker) + marker.length, envelope, () => text);
  return { text, envelope, isAscii: false, isIntact };
}

/**
 * Reads a damaged line that ends with the store's checksum: its marker, its JSON or its start is damaged. A line with
 * zeros is excluded, because a power cut left it and it may never have been acknowledged.
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

const unknownSeq = -1;

import { setImmediate as pause } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { type LinkedRecord, quote, refused, serializeRecord, throughlineKind } from "@throughline/core/internal";
import type { SessionHead, ThroughlineError } from "@throughline/core";
import { decodeLine } from "@throughline/openclaw-format";
import { detachEnvelope } from "@throughline/openclaw-format/internal";
import type { OpenTranscript } from "./open-transcript.ts";
import { appendAll, fileError, openIfThere, readRange } from "./file-work.ts";
import type { Files } from "./files.ts";
import { readLine } from "./read-line.ts";
import { sealLine, type StoreEnvelope } from "./store-envelope.ts";
import type { StoreContext } from "./store-context.ts";
import { encodeStoredLine, type LineOwner, type LinePayload, type ReadLine, type StoredLine } from "./stored-line.ts";
import type { Transcript } from "./transcript.ts";

export interface ForkCopy {
  readonly from: OpenTranscript;
  readonly toSeq: number;
  readonly owner: LineOwner;
  readonly header: string;
  readonly temporary: string;
}

const chunkBytes = 1024 * 1024;

/**
 * Copies the records of a session into a new file and flushes it, without a lock. The lines of a transcript never
 * change, except in a redaction, which creates another file. Other work runs in between. Every line of the copy gets an
 * envelope with its seq, id and text. Effects on the entry, the turn and the remembered keys are left out.
 * @throws {ThroughlineError} STORE_CORRUPT for a damaged line, because a fork must not lose it silently
 */
export async function copyForFork(context: StoreContext, copy: ForkCopy): Promise<void> {
  const { files } = context;
  const { from, temporary, header, toSeq } = copy;
  const source = openIfThere(files, from.path);
  if (source === null)
    throw refused("STORE_CORRUPT", `The transcript ${quote(from.path)} is gone.`, { path: from.path });
  try {
    const target = files.open(temporary, "create");
    try {
      let sizeBytes = 0;
      const write = (lines: readonly string[]): void => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        appendAll(files, target, bytes, sizeBytes, temporary);
        sizeBytes += bytes.length;
      };
      write([header]);
      for (const seq of from.transcript.overlong) if (seq <= toSeq) throw damagedError(from, seq);
      for (let seq = 1; seq <= toSeq;) {
        const bytes = readChunk(files, source, from.transcript, seq, toSeq);
        write(bytes.map((line, index) => forkedLine(context, copy, seq + index, line)));
        seq += bytes.length;
        await pause();
      }
      await files.flush(target);
    } finally {
      files.close(target);
    }
  } catch (error) {
    files.remove(temporary);
    throw fileError(error, temporary);
  } finally {
    files.close(source);
  }
}

/** Reads lines from a seq on, without their line feeds: as many as fit into a chunk, and at least one. */
function readChunk(
  files: Files,
  handle: number,
  transcript: Transcript,
  fromSeq: number,
  toSeq: number,
): readonly Uint8Array[] {
  const start = transcript.startOf(fromSeq);
  let next = fromSeq + 1;
  while (next <= toSeq && transcript.startOf(next + 1) - start <= chunkBytes) next++;
  const bytes = readRange(files, handle, start, transcript.startOf(next));
  return Array.from({ length: next - fromSeq }, (_, index) => {
    const line = bytes.subarray(
      transcript.startOf(fromSeq + index) - start,
      transcript.startOf(fromSeq + index + 1) - start,
    );
    return line.at(-1) === 0x0a ? line.subarray(0, -1) : line;
  });
}

function forkedLine(context: StoreContext, copy: ForkCopy, seq: number, bytes: Uint8Array): string {
  const { from, owner } = copy;
  const isPlain = !context.codec.isCoded && !from.transcript.meanings.has(seq);
  const plain = isPlain ? plainLine(bytes, seq) : null;
  if (plain !== null) return plain;
  const read: ReadLine & Partial<StoredLine> = readLine(from.transcript, seq, bytes);
  const { envelope, crc } = read;
  const { record, source, isSourceCanonical } = read.payload();
  const isDamaged = envelope === undefined ? isUnreadable(record) : crc !== null && crc !== read.actualCrc?.();
  if (isDamaged) throw damagedError(from, seq, read.id);
  const text = isSourceCanonical && typeof source === "string" ? source : serializeRecord(record);
  const { side, tsMs, storedAtMs } = read;
  const item: LinkedRecord = { record, text, side, tsMs, source, isSourceCanonical };
  const at = storedAtMs === null ? {} : { at: storedAtMs };
  return encodeStoredLine(item, { ...at, ...envelopeOfFork(envelope, seq) }, context.codec, owner, {
    keepsHeader: false,
  }).line;
}

function damagedError({ path, transcript }: OpenTranscript, seq: number, id?: string): ThroughlineError {
  const recordId = id ?? transcript.meanings.get(seq)?.id;
  const details = { path, seq, recordId, byteOffset: transcript.startOf(seq) };
  return refused("STORE_CORRUPT", `Record ${seq} of ${quote(path)} is damaged.`, details);
}

/**
 * Copies a line of this store without parsing it when its checksum fits, which saves time. Returns null for other
 * lines.
 */
function plainLine(bytes: Uint8Array, seq: number): string | null {
  const line = decodeLine(bytes);
  if (typeof line !== "string") return null;
  const { text, envelope } = detachEnvelope(line);
  if (envelope?.crc === undefined || envelope.seq === 0 || envelope.crc !== crc32(text)) return null;
  // In the fork, an imported header becomes a record behind the fork's header, so it needs a new line.
  if (seq === 1 && envelope.source === undefined && /^\s*\{\s*"type"\s*:\s*"session"/.test(text)) return null;
  const { source, sourceBase64, crc, at } = envelope;
  const kept = { ...(at === undefined ? {} : { at }), crc, ...(source === undefined ? {} : { source }) };
  const bytesKept = sourceBase64 === undefined ? {} : { sourceBase64 };
  return sealLine(text, { ...envelopeOfFork(envelope, seq), ...kept, ...bytesKept });
}

/**
 * Keeps head moves, which belong to the records. Turns, keys and entry patches belong to the session that they occurred
 * in.
 */
function envelopeOfFork(envelope: StoreEnvelope | undefined, seq: number): StoreEnvelope {
  const { head, window, mark, erased } = envelope ?? {};
  return {
    seq,
    ...(head === undefined ? {} : { head }),
    ...(window === undefined ? {} : { window }),
    ...(erased === undefined ? {} : { erased }),
    ...(mark === undefined ? {} : { mark: { ...mark, fence: 0, turn: null, revision: 1 } }),
  };
}

function isUnreadable(record: HeldRecord): boolean {
  const reason = (record["data"] as { readonly reason?: unknown } | undefined)?.reason;
  return throughlineKind(record) === "unparsed" && reason !== "blank";
}

type HeldRecord = LinePayload["record"];

/**
 * Returns the fork's head if appends without records have moved the head; null when the lines state it. Such a move
 * stays in effect for later records.
 */
export function headOfFork(
  saved: SessionHead | undefined,
  head: SessionHead,
  sessionId: string,
  toSeq: number,
): SessionHead | null {
  const said = saved === undefined ? null : [head, saved].find(({ lastSeq }) => lastSeq === toSeq);
  return said == null ? null : { ...said, sessionId, fence: 0, turn: null };
}

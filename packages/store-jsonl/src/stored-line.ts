import { crc32 } from "node:zlib";
import { isSideRecord, isTombstone, lineBytes, type RecordSource } from "@throughline/core/internal";
import { type SessionRecord, ThroughlineError } from "@throughline/core";
import { noPromotedColumns, promotedColumns, type PromotedColumns } from "@throughline/store-kit/internal";
import type { LinkedRecord } from "@throughline/core/internal";
import type { PayloadCoder, PayloadOwner } from "@throughline/store-kit/internal";
import { createTranscriptReader } from "@throughline/openclaw-format";
import type { LineEnvelope } from "@throughline/openclaw-format/internal";
import { parseObject } from "./json-members.ts";
import { type OwnLine, sealLine, type StoreEnvelope } from "./store-envelope.ts";

export interface LineHead {
  readonly id: string;
  readonly parentId: string | null;
  readonly type: string;
  readonly side: boolean;
  readonly tsMs: number | null;
  readonly storedAtMs: number | null;
  readonly bytes: number;
  readonly crc: number | null;
}

export interface LinePayload {
  readonly record: SessionRecord;
  readonly source: RecordSource;
  readonly isSourceCanonical: boolean;
}

/** Holds a line that was read. Its content is decoded on demand, because many readers need only the head. */
export interface ReadLine extends LineHead {
  payload(): LinePayload;
  outline(): PromotedColumns;
  actualCrc?(): number;
}

export interface StoredLine extends ReadLine {
  readonly envelope: StoreEnvelope;
  actualCrc(): number;
}

export type LineOwner = Pick<PayloadOwner, "ref" | "sessionId">;

export interface LineCodec {
  readonly coder: PayloadCoder;
  readonly isCoded: boolean;
}

export interface EncodedLine {
  readonly line: string;
  readonly sizeBytes: number;
  readonly text: string;
  readonly stored: StoredLine;
}

/** Encodes a record as a line. With `keepsHeader`, an imported header may stay the header of the file. */
export function encodeStoredLine(
  item: LinkedRecord,
  envelope: StoreEnvelope,
  codec: LineCodec,
  owner: LineOwner,
  { keepsHeader = true }: { readonly keepsHeader?: boolean } = {},
): EncodedLine {
  const { record, text, side } = item;
  const members = isTombstone(record) ? { ...envelope, erased: true as const } : envelope;
  // A source that equals the record's text is stored only once, to save space.
  const source = item.source === text ? null : item.source;
  if (codec.isCoded) {
    const coded = codec.coder.encode(text, { ...owner, id: record.id, part: "record" });
    const kept = source === null ? null : codec.coder.encode(source, { ...owner, id: record.id, part: "source" });
    const { type, id, parentId, timestamp } = record;
    const crc = crc32(coded);
    const sourceMembers = kept === null ? {} : { sourceBase64: base64(kept), isSourceText: typeof source === "string" };
    const full = { ...members, crc, side, bytes: lineBytes(item), enc: base64(coded), ...sourceMembers };
    return encoded(item, JSON.stringify({ type, id, parentId, timestamp }), full);
  }
  const isHeaderLine = keepsHeader && typeof source === "string" && isFaithfulHeader(source, record);
  const kept = isHeaderLine ? source : text;
  const crc = crc32(kept);
  const sourceMembers: Partial<LineEnvelope> =
    item.isSourceCanonical || source === null || isHeaderLine
      ? {}
      : typeof source === "string"
        ? { source }
        : { sourceBase64: base64(source) };
  return encoded(item, kept, { ...members, crc, ...sourceMembers });
}

function encoded(item: LinkedRecord, text: string, envelope: StoreEnvelope & { readonly crc: number }): EncodedLine {
  const { record, source, isSourceCanonical, side, tsMs } = item;
  const { id, parentId, type } = record;
  const isCanonical = isSourceCanonical || source === null || source === item.text;
  const payload = { record, source: source ?? text, isSourceCanonical: isCanonical };
  const head = {
    id,
    parentId,
    type,
    side,
    tsMs,
    storedAtMs: envelope.at ?? null,
    bytes: lineBytes(item),
    crc: envelope.crc,
  };
  const line = sealLine(text, envelope);
  // Counting bytes walks the whole line, so the earlier count of a plain text is reused.
  const isCounted = source === null && text === item.text && isAscii(envelope);
  return {
    line,
    sizeBytes: isCounted ? head.bytes + line.length - text.length : Buffer.byteLength(line),
    text,
    stored: {
      ...head,
      envelope,
      actualCrc: () => envelope.crc,
      payload: () => payload,
      outline: () => (envelope.enc === undefined ? outlineOf(record) : noPromotedColumns),
    },
  };
}

function isAscii(envelope: StoreEnvelope): boolean {
  for (const member of Object.keys(envelope))
    if (member !== "batch" && typeof envelope[member as keyof StoreEnvelope] !== "number") return false;
  return true;
}

/**
 * Decodes a line of this store. Returns null when its JSON is not a record, because another program then wrote the
 * envelope.
 */
export function decodeStoredLine(line: OwnLine, codec: LineCodec, owner: LineOwner): StoredLine | null {
  const { text, envelope } = line;
  const parsed = parseObject(text);
  if (parsed === null) return null;
  if (envelope.enc !== undefined) return codedLine(parsed as SessionRecord, envelope, codec, owner);
  const record = isBareHeader(parsed, envelope) ? headerRecordOf(text) : (parsed as SessionRecord);
  if (typeof record.id !== "string" || typeof record.type !== "string") return null;
  return new PlainLine(line, record, record === parsed);
}

/** Reads a plain line. The object is also its own payload, because every record that is read needs both. */
class PlainLine implements StoredLine, LinePayload {
  readonly id: string;
  readonly parentId: string | null;
  readonly type: string;
  readonly tsMs: number | null;
  readonly storedAtMs: number | null;
  readonly crc: number | null;
  readonly side: boolean;
  readonly bytes: number;
  readonly envelope: StoreEnvelope;
  readonly record: SessionRecord;
  readonly source: RecordSource;
  readonly isSourceCanonical: boolean;
  readonly #text: string;

  /**
   * `isParsed` is true when the record equals the text. Otherwise the record was built from it, and the source is not
   * canonical.
   */
  constructor({ text, envelope, isAscii }: OwnLine, record: SessionRecord, isParsed: boolean) {
    const { source, sourceBase64 } = envelope;
    const isOwnText = source === undefined && sourceBase64 === undefined;
    this.id = record.id;
    this.parentId = record.parentId;
    this.type = record.type;
    this.tsMs = timeOf(record);
    this.storedAtMs = envelope.at ?? null;
    this.crc = envelope.crc ?? null;
    this.side = isSideRecord(record);
    this.envelope = envelope;
    this.record = record;
    this.source = source ?? (sourceBase64 === undefined ? text : fromBase64(sourceBase64));
    this.bytes = isOwnText && isAscii ? text.length : sizeOf(this.source);
    this.isSourceCanonical = isOwnText && isParsed;
    this.#text = text;
  }

  actualCrc(): number {
    return crc32(this.#text);
  }

  payload(): LinePayload {
    return this;
  }

  outline(): PromotedColumns {
    return outlineOf(this.record);
  }
}

export function outlineOf(record: SessionRecord): PromotedColumns {
  return record.type === "message" ? promotedColumns(record["message"]) : noPromotedColumns;
}

function codedLine(record: SessionRecord, envelope: StoreEnvelope, codec: LineCodec, owner: LineOwner): StoredLine {
  const coded = fromBase64(envelope.enc ?? "");
  const { id } = record;
  return {
    id,
    parentId: record.parentId,
    type: record.type,
    tsMs: timeOf(record),
    storedAtMs: envelope.at ?? null,
    crc: envelope.crc ?? null,
    envelope,
    side: envelope.side ?? false,
    bytes: envelope.bytes ?? 0,
    actualCrc: () => crc32(coded),
    outline: () => noPromotedColumns,
    payload() {
      const text = utf8(codec.coder.decode(coded, { ...owner, id, part: "record" }));
      const plain = parseDecoded(text, "record", id) as SessionRecord;
      if (envelope.sourceBase64 === undefined) return { record: plain, source: text, isSourceCanonical: true };
      const source = codec.coder.decode(fromBase64(envelope.sourceBase64), { ...owner, id, part: "source" });
      return {
        record: plain,
        source: envelope.isSourceText === true ? utf8(source) : source,
        isSourceCanonical: false,
      };
    },
  };
}

let lastTime: { readonly text: unknown; readonly tsMs: number | null } = { text: "", tsMs: null };

/**
 * Caches the last time, because the records of an append mostly have the same one. Parsing it takes as long as the rest
 * of a short record.
 */
function timeOf({ timestamp }: SessionRecord): number | null {
  if (lastTime.text === timestamp) return lastTime.tsMs;
  const tsMs = Date.parse(timestamp);
  lastTime = { text: timestamp, tsMs: Number.isFinite(tsMs) ? tsMs : null };
  return lastTime.tsMs;
}

/**
 * Tests whether an imported header may stay the file's header, so that pi and OpenClaw find the session's own id there.
 * The record must be derivable from it. A header of an older version is excluded, because pi would rewrite the whole
 * file.
 */
function isFaithfulHeader(source: string, record: SessionRecord): boolean {
  if (record.type !== "session") return false;
  const parsed = parseObject(source);
  if (parsed === null || parsed["parentId"] !== undefined || !(Number(parsed["version"]) >= 3)) return false;
  return JSON.stringify(headerRecordOf(source)) === JSON.stringify(record);
}

function isBareHeader(parsed: Readonly<Record<string, unknown>>, envelope: StoreEnvelope): boolean {
  return parsed["type"] === "session" && parsed["parentId"] === undefined && envelope.source === undefined;
}

function headerRecordOf(text: string): SessionRecord {
  return createTranscriptReader().push(text, { line: 1, byteOffset: 0, envelope: null }).record;
}

/** Parses decoded text. A wrong codec may return nonsense instead of failing. */
export function parseDecoded(text: string, part: string, id: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new ThroughlineError("CODEC_FAILED", `The ${part} of ${id} is not what this codec has written.`, {
      outcome: "not-applied",
      details: { part, id },
      cause,
    });
  }
}

function sizeOf(source: RecordSource): number {
  return typeof source === "string" ? Buffer.byteLength(source) : source.byteLength;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}

function utf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

export function foreignHead(record: SessionRecord, bytes: number): LineHead {
  const tsMs = Date.parse(record.timestamp);
  const { id, parentId, type } = record;
  return {
    id,
    parentId,
    type,
    side: isSideRecord(record),
    tsMs: Number.isFinite(tsMs) ? tsMs : null,
    storedAtMs: null,
    bytes,
    crc: null,
  };
}

/** Returns a line under another id, because an earlier line has the same id. */
export function renamedLine(line: StoredLine, id: string): StoredLine {
  const { parentId, type, tsMs, storedAtMs, crc, side, bytes, envelope } = line;
  return {
    id,
    parentId,
    type,
    tsMs,
    storedAtMs,
    crc,
    side,
    bytes,
    envelope,
    actualCrc: () => line.actualCrc(),
    outline: () => line.outline(),
    payload() {
      const { record, source } = line.payload();
      return { record: { ...record, id }, source, isSourceCanonical: false };
    },
  };
}

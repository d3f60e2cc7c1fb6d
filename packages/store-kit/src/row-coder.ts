import type { PayloadCodec, SessionEntry, SessionRecord, StoredRecord } from "@throughline/core";
import {
  crc32,
  isTombstone,
  lineBytes,
  type LinkedRecord,
  maskedRecord,
  maskedSource,
  redactionTombstone,
  refused,
  serializeRecord,
} from "@throughline/core/internal";
import { createPayloadCoder, type PayloadOwner } from "./payload-coder.ts";
import { noPromotedColumns, promotedColumns } from "./promoted-columns.ts";
import type { ReadPayload, RecordFor, RecordHead, RecordSource, SourcedRecord } from "@throughline/core/internal";

/** Holds plain text, or the bytes that a codec encoded it to. */
export type KeptPayload = string | Uint8Array;

/**
 * Holds a record in the form that a store keeps: plain columns and encoded content. Every read parses the content
 * again, so that no object is shared.
 */
export interface RecordRow extends RecordHead {
  /** Holds the record as one line of JSON. */
  readonly text: KeptPayload;
  /** Holds the imported line when it differs from the text; null otherwise. */
  readonly source: KeptPayload | null;
  /** States whether the imported line in `source` is text; false when the line is bytes, and when `source` is null. */
  readonly isSourceText: boolean;
}

/** Names the session that a payload belongs to; an entry is bound to the key in the ref. */
export type PayloadPlace = Pick<PayloadOwner, "ref" | "sessionId">;

/**
 * Converts records and entries to their stored form, and back.
 * @throws {ThroughlineError} CODEC_FAILED
 */
export interface RowCoder {
  /** Returns the row of a record at this position. */
  encodeRecord(
    place: PayloadPlace,
    item: LinkedRecord,
    at: { readonly seq: number; readonly storedAtMs: number | null },
  ): RecordRow;
  /** Returns the record of a row, with the content that `payload` selects. */
  decodeRecord<Payload extends ReadPayload>(place: PayloadPlace, row: RecordRow, payload: Payload): RecordFor<Payload>;
  /** Returns the row that replaces a redacted record; null when nothing of it changes. */
  redactRecord(place: PayloadPlace, row: RecordRow, info: RedactionInfo): RecordRow | null;
  /** Returns the stored form of an entry. */
  encodeEntry(place: PayloadPlace, entry: SessionEntry): KeptPayload;
  /** Returns the entry of its stored form. */
  decodeEntry(place: PayloadPlace, kept: KeptPayload): SessionEntry;
  /** Returns the stored form of a turn's open reply, which is JSON. */
  encodePartial(place: PayloadPlace, turnId: string, text: string): KeptPayload;
  /** Returns the open reply of a turn as JSON. */
  decodePartial(place: PayloadPlace, turnId: string, kept: KeptPayload): string;
}

export interface RedactionInfo {
  readonly reason: string;
  /** States the time of the store's clock, in milliseconds since 1970. */
  readonly redactedAtMs: number;
  /** Lists the texts to replace inside of the record. Absent when a tombstone replaces it. */
  readonly texts?: readonly string[] | undefined;
}

/** Creates a coder for a store that keeps columns and content apart. */
export function createRowCoder(codec: PayloadCodec | undefined): RowCoder {
  const coder = createPayloadCoder(codec);
  const keep = (plain: RecordSource, owner: PayloadOwner): KeptPayload =>
    codec === undefined && typeof plain === "string" ? plain : coder.encode(plain, owner);
  const textOf = (kept: KeptPayload, owner: PayloadOwner): string => {
    if ((codec === undefined) !== (typeof kept === "string")) throw wrongCodec(codec, owner);
    return typeof kept === "string" ? kept : Buffer.from(coder.decode(kept, owner)).toString();
  };
  const self: RowCoder = {
    encodeRecord(place, item, { seq, storedAtMs }) {
      const { record, text: plain, side, tsMs } = item;
      const { id, parentId, type } = record;
      const text = keep(plain, { ...place, id, part: "record" });
      const given = item.source === plain ? null : item.source;
      const source = given === null ? null : keep(given, { ...place, id, part: "source" });
      // The checksum covers the text and the source behind it.
      const crc = source === null ? crc32(text) : crc32(source, crc32(text));
      const head = { seq, id, parentId, type, side, tsMs, storedAtMs, bytes: lineBytes(item), crc };
      const { role, toolName } =
        type === "message" && codec === undefined ? promotedColumns(record["message"]) : noPromotedColumns;
      return { ...head, role, toolName, text, source, isSourceText: typeof given === "string" };
    },
    decodeRecord<Payload extends ReadPayload>(place: PayloadPlace, row: RecordRow, payload: Payload) {
      const { text, source, isSourceText } = row;
      // The fields are named one by one for speed. A page has thousands of rows, and a rest pattern takes as long as
      // parsing a short row.
      const { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc } = row;
      const head = { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc };
      const read = (): RecordHead | StoredRecord | SourcedRecord => {
        if (payload === "head") return { ...head, role: row.role ?? null, toolName: row.toolName ?? null };
        const owner = { ...place, id: row.id, part: "record" } as const;
        const line = textOf(text, owner);
        const stored = { ...head, record: parsed(line, codec, owner) as SessionRecord };
        if (payload === "record") return stored;
        if (source === null) return { ...stored, source: line, isSourceCanonical: true };
        const from = { ...owner, part: "source" } as const;
        const given = isSourceText ? textOf(source, from) : coder.decode(source as Uint8Array, from);
        return { ...stored, source: given, isSourceCanonical: false };
      };
      return read() as RecordFor<Payload>;
    },
    redactRecord(place, row, info) {
      const item = redactedRecord(self.decodeRecord(place, row, "source"), info);
      return item === null ? null : self.encodeRecord(place, item, row);
    },
    encodeEntry: (place, entry) => keep(JSON.stringify(entry), entryOwner(place)),
    decodeEntry(place, kept) {
      const owner = entryOwner(place);
      const entry = parsed(textOf(kept, owner), codec, owner);
      if (typeof entry !== "object" || entry === null || Array.isArray(entry)) throw wrongCodec(codec, owner);
      return entry as SessionEntry;
    },
    encodePartial: (place, turnId, text) => keep(text, { ...place, id: turnId, part: "partial" }),
    decodePartial: (place, turnId, kept) => textOf(kept, { ...place, id: turnId, part: "partial" }),
  };
  return self;
}

function parsed(text: string, codec: PayloadCodec | undefined, owner: PayloadOwner): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw wrongCodec(codec, owner, cause);
  }
}

/** Returns the record that replaces a redacted record, in its place; null when nothing of it changes. */
export function redactedRecord(
  stored: Pick<SourcedRecord, "record" | "source" | "isSourceCanonical" | "side" | "tsMs" | "bytes">,
  { texts, ...info }: RedactionInfo,
): LinkedRecord | null {
  const { record: before, source: line, isSourceCanonical, side, tsMs, bytes } = stored;
  if (isTombstone(before)) return null;
  if (texts === undefined) {
    const record = redactionTombstone(before, { ...info, side, bytes });
    return { record, text: serializeRecord(record), side, tsMs, source: null, isSourceCanonical: false };
  }
  const record = maskedRecord(before, texts);
  const text = serializeRecord(record);
  const source = maskedSource(line, texts);
  if (source === line && text === serializeRecord(before)) return null;
  return { record, text, side, tsMs, source: isSourceCanonical ? null : source, isSourceCanonical: false };
}

function entryOwner(place: PayloadPlace): PayloadOwner {
  return { ...place, id: place.ref.key, part: "entry" };
}

function wrongCodec(codec: PayloadCodec | undefined, { id, part }: PayloadOwner, cause?: unknown): Error {
  const by = codec === undefined ? "without a codec" : `with the codec ${codec.name}`;
  return refused("CODEC_FAILED", `The ${part} of ${id} cannot be read ${by}.`, { codec: codec?.name, part, id }, cause);
}

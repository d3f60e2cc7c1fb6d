import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import {
  noPromotedColumns,
  type PayloadCoder,
  type PayloadOwner,
  promotedColumns,
} from "@throughline/store-kit/internal";
import { type PreparedRecord, quote, refused, serializeRecord } from "@throughline/core/internal";
import { headMarker, separator, type BatchField } from "./append-request.ts";

/** Encodes payloads for storage, and decodes them. */
export interface RowCoder {
  readonly coder: PayloadCoder;
  readonly isCoded: boolean;
}

export type PayloadPlace = Pick<PayloadOwner, "ref" | "sessionId">;

export interface ContentColumns {
  readonly form: 0 | 1 | 2 | null;
  readonly rest: string | null;
  readonly coded: Uint8Array | null;
  readonly source: Uint8Array | null;
  readonly restHash: Uint8Array | null;
  readonly sourceHash: Uint8Array | null;
  readonly payloads: readonly { readonly hash: Uint8Array; readonly content: Uint8Array }[];
  readonly crc: number;
  /** Counts the bytes of the line, without the parent where that is the head. */
  readonly bytes: number;
}

/** A larger content is stored in `payloads` under its hash, so that the records stay small. */
const asideBytes = 256 * 1024;

/** Writes the start of a record's line. The rest, from the timestamp on, does not depend on the head. */
export function lineStart(type: string, id: string, parentId: string | null): string {
  return `${serializeRecord({ type, id, parentId }).slice(0, -1)},`;
}

function restOf({ timestamp, fieldsText }: PreparedRecord): string {
  const own = fieldsText === null || fieldsText === "{}" ? "}" : `,${fieldsText.slice(1)}`;
  return `"timestamp":${serializeRecord(timestamp)}${own}`;
}

export function contentColumns(
  { coder, isCoded }: RowCoder,
  place: PayloadPlace,
  item: PreparedRecord,
  parentId: string | null | undefined,
): ContentColumns {
  const owner = { ...place, id: item.id };
  const rest = item.isSourceCanonical ? String(item.source) : restOf(item);
  const kept = isCoded ? coder.encode(rest, { ...owner, part: "record" }) : rest;
  const isSourced = item.source !== null && !item.isSourceCanonical;
  const source = isSourced ? coder.encode(item.source, { ...owner, part: "source" }) : null;
  const payloads: { hash: Uint8Array; content: Uint8Array }[] = [];
  const aside = (content: Uint8Array | string): Uint8Array | null => {
    if (content.length * (typeof content === "string" ? 3 : 1) <= asideBytes) return null;
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    if (bytes.length <= asideBytes) return null;
    const hash = createHash("sha256").update(bytes).digest();
    payloads.push({ hash, content: bytes });
    return hash;
  };
  const restHash = aside(kept);
  const sourceHash = source === null ? null : aside(source);
  return {
    form: item.isSourceCanonical ? 0 : isSourced ? (typeof item.source === "string" ? 1 : 2) : null,
    rest: typeof kept === "string" && restHash === null ? kept : null,
    coded: typeof kept !== "string" && restHash === null ? kept : null,
    source: sourceHash === null ? source : null,
    restHash,
    sourceHash,
    payloads,
    // The checksum covers the kept text followed by the source.
    crc: source === null ? crc32(kept) : crc32(source, crc32(kept)),
    bytes: item.source === null ? ownBytes(item, rest, parentId) : Buffer.byteLength(item.source),
  };
}

function ownBytes(item: PreparedRecord, rest: string, parentId: string | null | undefined): number {
  const start = Buffer.byteLength(lineStart(item.type, item.id, parentId ?? null));
  return start + Buffer.byteLength(rest) - (parentId === undefined ? "null".length : 0);
}

export type BatchColumns = Pick<
  Record<BatchField, unknown>,
  | "ids"
  | "parents"
  | "types"
  | "sides"
  | "message_numbers"
  | "ts_ms"
  | "bytes"
  | "crcs"
  | "roles"
  | "tools"
  | "joined_rests"
  | "rests"
  | "codeds"
  | "forms"
  | "sources"
  | "rest_hashes"
  | "source_hashes"
  | "payload_hashes"
  | "payloads"
> & {
  readonly joined_rests: string | null;
  readonly lastMainId: string | null;
  readonly messages: number;
  readonly totalBytes: readonly number[];
};

export function batchColumns(rows: RowCoder, place: PayloadPlace, prepared: readonly PreparedRecord[]): BatchColumns {
  let lastMainId: string | null = null;
  let messages = 0;
  const items = prepared.map((item) => {
    // Records behind the first main record of the batch have that record as their parent. Records before it follow the
    // head, which the client does not know.
    const parentId = item.parentId === undefined && lastMainId !== null ? lastMainId : item.parentId;
    const isOnHead = parentId === undefined;
    if (!item.side) lastMainId = item.id;
    if (item.type === "message") messages += 1;
    const content = contentColumns(rows, place, item, parentId);
    const isShown = !rows.isCoded && item.type === "message";
    const { role, toolName } = isShown ? promotedColumns(item.fields["message"]) : noPromotedColumns;
    return { item, parent: isOnHead ? headMarker : columnText(parentId), content, messages, role, toolName };
  });
  const column = <Value>(pick: (each: (typeof items)[number]) => Value): Value[] => items.map(pick);
  // An array of nulls costs as much to send and read as a full one, so it is left out.
  const rare = <Value>(pick: (each: (typeof items)[number]) => Value | null): (Value | null)[] | null => {
    const values = column(pick);
    return values.some((value) => value !== null) ? values : null;
  };
  const payloads = items.flatMap(({ content }) => content.payloads);
  // Lines that Throughline wrote are JSON, which escapes control characters. An imported line may contain the
  // separator.
  const isOwn = items.length > 0 && items.every(({ content }) => content.rest !== null && content.form === null);
  return {
    ids: column(({ item }) => item.id),
    parents: column(({ parent }) => parent),
    types: column(({ item }) => item.type),
    sides: column(({ item }) => item.side),
    message_numbers: column((each) => each.messages),
    ts_ms: column(({ item }) => wholeNumber(item.tsMs)),
    bytes: column(({ content }) => content.bytes),
    crcs: column(({ content }) => content.crc),
    roles: rare(({ role }) => role),
    tools: rare(({ toolName }) => toolName),
    joined_rests: isOwn ? items.map(({ content }) => content.rest).join(separator) : null,
    rests: isOwn ? null : rare(({ content }) => content.rest),
    codeds: rare(({ content }) => content.coded),
    forms: rare(({ content }) => content.form),
    sources: rare(({ content }) => content.source),
    rest_hashes: rare(({ content }) => content.restHash),
    source_hashes: rare(({ content }) => content.sourceHash),
    payload_hashes: payloads.length === 0 ? null : payloads.map(({ hash }) => hash),
    payloads: payloads.length === 0 ? null : payloads.map(({ content }) => content),
    lastMainId,
    messages,
    totalBytes: column(({ content }) => content.bytes),
  };
}

/**
 * Writes a text with a NUL or a lone surrogate as JSON behind a marker. The server refuses a NUL, and the driver
 * changes a lone surrogate silently.
 */
export function columnText(text: string | null): string | null {
  if (text === null || (text.isWellFormed() && !text.includes("\0") && !text.startsWith(headMarker))) return text;
  return headMarker + JSON.stringify(text);
}

/** Reverses `columnText`. */
export function fromColumnText(kept: string | null): string | null {
  if (kept === null || !kept.startsWith(headMarker)) return kept;
  try {
    return String(JSON.parse(kept.slice(headMarker.length)));
  } catch (cause) {
    throw refused("STORE_CORRUPT", `The column ${quote(kept)} is damaged.`, {}, cause);
  }
}

/** Cuts a time to whole milliseconds, because times of other programs may be any number that a Date accepts. */
function wholeNumber(value: number | null): number | null {
  return value === null ? null : Math.trunc(value);
}

import { crc32 } from "node:zlib";
import { serializeRecord } from "../../packages/core/src/store.ts";
import type { PreparedRecord } from "../../packages/core/src/store.ts";

/** A batch as parallel arrays, the way the statement takes it. */
export interface RecordColumns {
  readonly ids: readonly string[];
  readonly parentIds: readonly (string | null)[];
  /** True where the parent is the head, which only the statement knows. */
  readonly onHead: readonly boolean[];
  readonly types: readonly string[];
  readonly sides: readonly boolean[];
  readonly timestamps: readonly string[];
  readonly tsMs: readonly (number | null)[];
  /** Of the line, without the parent where it is the head. */
  readonly bytes: readonly number[];
  readonly crcs: readonly number[];
  readonly rests: readonly (string | null)[];
  readonly sources: readonly (Buffer | null)[];
  readonly lastMainId: string | null;
}

/**
 * The text of a record's line after its first four fields, which are columns. It does not depend on the head, so the
 * writer can check-sum (and encode) it before the store's exclusion.
 */
export function textAfterColumns(fields: Readonly<Record<string, unknown>>): string {
  const text = serializeRecord(fields);
  return text === "{}" ? "}" : `,${text.slice(1)}`;
}

/** The line, from the columns and the rest: the inverse. */
export function assembleLine(
  type: string,
  id: string,
  parentId: string | null,
  timestamp: string,
  rest: string,
): string {
  return serializeRecord({ type, id, parentId, timestamp }).slice(0, -1) + rest;
}

export function toColumns(prepared: readonly PreparedRecord[]): RecordColumns {
  let mainId: string | null = null;
  const rows = prepared.map((item) => {
    const onHead = item.parentId === undefined && mainId === null;
    const parentId = item.parentId === undefined ? mainId : item.parentId;
    if (!item.side) mainId = item.id;
    const source = item.source === null ? null : Buffer.from(item.source);
    const rest = item.isSourceCanonical ? null : textAfterColumns(item.fields);
    const kept = source ?? Buffer.from(rest ?? "");
    const opening = assembleLine(item.type, item.id, parentId, item.timestamp, "");
    const bytes = source?.length ?? Buffer.byteLength(opening) + kept.length - (onHead ? "null".length : 0);
    return { item, onHead, parentId, source, rest, bytes, crc: crc32(kept) };
  });
  return {
    ids: rows.map((row) => row.item.id),
    parentIds: rows.map((row) => row.parentId),
    onHead: rows.map((row) => row.onHead),
    types: rows.map((row) => row.item.type),
    sides: rows.map((row) => row.item.side),
    timestamps: rows.map((row) => row.item.timestamp),
    tsMs: rows.map((row) => row.item.tsMs),
    bytes: rows.map((row) => row.bytes),
    crcs: rows.map((row) => row.crc),
    rests: rows.map((row) => row.rest),
    sources: rows.map((row) => row.source),
    lastMainId: mainId,
  };
}

import type { ReadPayload, RecordHead, SourcedRecord } from "@throughline/core/internal";

/**
 * A record as JSON. Its line is copied, so that numbers such as `1e3` and `-0`, and members that occur twice, are sent as
 * they are kept.
 */
export function recordText(record: SourcedRecord): string {
  return `${headText(record)},"record":${lineOf(record)}}`;
}

/** A record as JSON with the line it came in. */
export function sourceText(record: SourcedRecord): string {
  const { source, isSourceCanonical } = record;
  const line =
    typeof source === "string"
      ? `"source":${JSON.stringify(source)}`
      : `"sourceBase64":"${Buffer.from(source).toString("base64")}"`;
  const meaning = isSourceCanonical ? "" : `,"record":${JSON.stringify(record.record)}`;
  return `${headText(record)},"isSourceCanonical":${isSourceCanonical},${line}${meaning}}`;
}

/** A record without its content. */
export function bareText(record: RecordHead): string {
  return `${headText(record)}}`;
}

/** What a payload has to be read as, to be written by these functions. */
export function readAs(payload: ReadPayload): "source" | "head" {
  return payload === "head" ? "head" : "source";
}

function headText({ seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName }: RecordHead): string {
  const head = { kind: "record", seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName };
  return JSON.stringify(head).slice(0, -1);
}

function lineOf({ source, record, isSourceCanonical }: SourcedRecord): string {
  return isSourceCanonical && typeof source === "string" ? source : JSON.stringify(record);
}

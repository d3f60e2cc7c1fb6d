import type { ReadPayload, RecordHead, SourcedRecord } from "@throughline/core/internal";

/**
 * Formats a record as JSON. Its stored line is copied, because parsing would change numbers such as `1e3` and `-0` and
 * drop repeated members.
 */
export function recordText(record: SourcedRecord): string {
  return `${headText(record)},"record":${lineOf(record)}}`;
}

/** Formats a record whose content was changed for the answer, with further members of the item. */
export function recordTextWith(
  stored: SourcedRecord,
  record: Readonly<Record<string, unknown>>,
  members: Readonly<Record<string, unknown>>,
): string {
  return `${headText(stored)},"record":${JSON.stringify(record)},${JSON.stringify(members).slice(1)}`;
}

export function sourceText(record: SourcedRecord): string {
  const { source, isSourceCanonical } = record;
  const line =
    typeof source === "string"
      ? `"source":${JSON.stringify(source)}`
      : `"sourceBase64":"${Buffer.from(source).toString("base64")}"`;
  const meaning = isSourceCanonical ? "" : `,"record":${JSON.stringify(record.record)}`;
  return `${headText(record)},"isSourceCanonical":${isSourceCanonical},${line}${meaning}}`;
}

export function bareText(record: RecordHead): string {
  return `${headText(record)}}`;
}

/** Returns the payload that the store must read so that these functions can format it. */
export function readAs(payload: ReadPayload | "preview"): "source" | "head" {
  return payload === "head" ? "head" : "source";
}

function headText({ seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName }: RecordHead): string {
  const head = { kind: "record", seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName };
  return JSON.stringify(head).slice(0, -1);
}

function lineOf({ source, record, isSourceCanonical }: SourcedRecord): string {
  return isSourceCanonical && typeof source === "string" ? source : JSON.stringify(record);
}

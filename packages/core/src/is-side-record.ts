import { throughlineKind, throughlineRecordRules, type ThroughlineRecordKind } from "./throughline-record.ts";

const sideTypes: ReadonlySet<string> = new Set(["checkpoint", "label", "session_info", "usage", "leaf", "session"]);

/**
 * A main record moves the head of its session. A side record is attached to the head and does not move it, so that
 * background work never breaks a turn. The answer depends on the record alone, so that all stores agree.
 *
 * `appendMode: "side"` makes any record a side record (OpenClaw's own field). A tombstone keeps the answer of the
 * record that it replaced.
 */
export function isSideRecord(record: { readonly [field: string]: unknown }): boolean {
  if (record["appendMode"] === "side") return true;
  const kind = throughlineKind(record);
  if (kind === null) return typeof record["type"] === "string" && sideTypes.has(record["type"]);
  if (kind === "redaction") return redactedWasSide(record["data"]);
  const known = Object.hasOwn(throughlineRecordRules, kind);
  return known ? throughlineRecordRules[kind as ThroughlineRecordKind].side : true;
}

function redactedWasSide(data: unknown): boolean {
  return typeof data === "object" && data !== null && (data as { side?: unknown }).side === true;
}

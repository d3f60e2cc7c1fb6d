import type { Finding, SessionRecord, StoredRecord } from "@throughline/core";
import { isSideRecord } from "@throughline/core/internal";
import {
  createDocumentSplitter,
  type ForeignFormat,
  foreignFormats,
  type ForeignReader,
} from "@throughline/foreign-formats";
import { createTextSplitter } from "../src/text-units.ts";
import type { ForeignFormatName } from "../src/names.ts";
import type { UnitPlace } from "../src/foreign-format.ts";
import { buildContext, type Context } from "@throughline/history";
import { historyTargets, type NeutralBlock, type NeutralMessage } from "@throughline/history/internal";
import { createLineSplitter, decodeLine } from "@throughline/openclaw-format";

/** A session as a reader gave it, with what a store would have added. */
export interface ReadSession {
  readonly records: readonly StoredRecord[];
  readonly units: number;
  readonly headId: string | null;
  readonly findings: readonly Finding[];
  readonly reader: ForeignReader;
  readonly context: Context;
}

/** Reads units as an import does. Ids are unique, derived records name their first, and parents are never later. */
export function readUnits(name: ForeignFormatName, bytes: string | Uint8Array, path = "/p/session.jsonl"): ReadSession {
  const format = foreignFormats.get(name);
  if (format === undefined) throw new Error(`no format ${name}`);
  const reader = format.createReader({ path });
  const records: StoredRecord[] = [];
  const lines = unitsOf(format, typeof bytes === "string" ? Buffer.from(bytes) : bytes, path);
  for (const [index, { bytes: source, ...place }] of lines.entries()) {
    const unit = reader.push(decodeLine(source), { line: index + 1, ...place });
    for (const record of unit.records) records.push(stored(record, records.length + 1));
  }
  const findings = reader.finish();
  const { headId } = reader;
  assertWhole(records, headId);
  return { records, units: lines.length, headId, findings, reader, context: buildContext(records, { headId }) };
}

interface CutUnit extends Omit<UnitPlace, "line"> {
  readonly bytes: Uint8Array;
}

/** Lines, or the pieces of a document. */
function unitsOf(format: ForeignFormat, bytes: Uint8Array, path: string): readonly CutUnit[] {
  const layout = format.layout({ path, head: bytes.subarray(0, 64 * 1024), isWhole: bytes.length <= 64 * 1024 });
  if (layout.createCutter !== undefined) {
    const splitter = createTextSplitter(layout.createCutter(), bytes.length);
    return [...splitter.push(bytes), ...splitter.end()];
  }
  if (layout.unit === "document") {
    const splitter = createDocumentSplitter({ lists: layout.lists, maxUnitBytes: bytes.length });
    return [...splitter.push(bytes), ...splitter.end()];
  }
  const splitter = createLineSplitter();
  const lines = splitter.push(bytes);
  const last = splitter.end();
  return last === null ? lines : [...lines, last];
}

function stored(record: SessionRecord, seq: number): StoredRecord {
  const { id, parentId, type, timestamp } = record;
  const bytes = JSON.stringify(record).length;
  const tsMs = Date.parse(timestamp);
  return { seq, id, parentId, type, side: isSideRecord(record), tsMs, storedAtMs: 0, bytes, crc: null, record };
}

function assertWhole(records: readonly StoredRecord[], headId: string | null): void {
  const ids = new Set<string>();
  for (const { id, parentId, record, tsMs } of records) {
    if (ids.has(id)) throw new Error(`two records have the id ${id}`);
    if (parentId !== null && !ids.has(parentId)) throw new Error(`${id} hangs on ${parentId}, which is not before it`);
    if (!Number.isFinite(tsMs)) throw new Error(`${id} has no time`);
    const from = record["derivedFrom"] as { readonly id: string; readonly index: number } | undefined;
    if (from !== undefined && (id !== `${from.id}~d${from.index}` || !ids.has(from.id))) throw new Error(id);
    ids.add(id);
  }
  if (headId !== null && !ids.has(headId)) throw new Error(`the head ${headId} is nowhere`);
}

/** A message in one line: who said it, and what. */
function shown(message: NeutralMessage): string {
  return `${message.role}: ${message.content.map(block).join(" ")}`;
}

function block(one: NeutralBlock): string {
  switch (one.type) {
    case "text":
      return one.text;
    case "toolCall":
      return `?${one.id}`;
    case "thinking":
      return "(thinking)";
    case "image":
      return "[image]";
    case "unknown":
      return `[${one.originalType}]`;
  }
}

/** The messages of a context, a line each. */
export function talk({ context }: Pick<ReadSession, "context">): readonly string[] {
  return context.messages.map((message) =>
    message.role === "toolResult" ? `=${message.toolCallId} ${shown(message)}` : shown(message),
  );
}

/** What any provider would refuse of the context; empty where none refuses anything. */
export function refusals({ context }: Pick<ReadSession, "context">): readonly string[] {
  return [...historyTargets.values()].flatMap(({ name, render, validate }) => {
    const { messages } = render(context);
    // Nothing is sent of nothing.
    const violations = messages.length === 0 ? [] : validate(messages, context.model?.modelId);
    return violations.map((violation) => `${name}: ${JSON.stringify(violation)}`);
  });
}

/** A JSON value a line. */
export function jsonLines(...values: readonly unknown[]): string {
  return values.map((value) => `${typeof value === "string" ? value : JSON.stringify(value)}\n`).join("");
}

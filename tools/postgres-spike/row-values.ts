import { Buffer, isUtf8 } from "node:buffer";
import type {
  AppendOptions,
  AppendResult,
  SessionEntry,
  SessionHead,
  SessionRecord,
  SessionRef,
  SessionState,
  SourcedRecord,
  RecordSource,
} from "../../packages/core/src/index.ts";
import { headAfter } from "../../packages/core/src/prepare-drafts.ts";
import { linkRecords } from "../../packages/core/src/store.ts";
import { nextTurnState } from "../../packages/core/src/turn-lease.ts";
import type { PreparedRecord } from "../../packages/core/src/store.ts";
import { assembleLine } from "./record-columns.ts";
import type { DatabaseRow } from "./round-trips.ts";

/** One row is enough: seq, parents and the new state follow from where the batch began. */
export function toAppendResult(
  began: DatabaseRow,
  prepared: readonly PreparedRecord[],
  options: AppendOptions,
  replayed: boolean,
): AppendResult {
  const before = toHead(began);
  const nowMs = Number(began["now_ms"]);
  const linked = linkRecords(prepared, before.headId);
  const records = linked.map(({ record, side, tsMs }, index) => ({
    seq: before.lastSeq + 1 + index,
    id: record.id,
    parentId: record.parentId,
    side,
    tsMs,
    storedAtMs: nowMs,
  }));
  const hasMainRecord = linked.some((item) => !item.side);
  const head: SessionHead = {
    ...before,
    ...nextTurnState(before, options.turn, { hasMainRecord, nowMs }),
    lastSeq: before.lastSeq + linked.length,
    headId: options.rewindTo === undefined ? headAfter(linked, before.headId) : options.rewindTo,
    windowSeq: options.windowFromSeq ?? before.windowSeq,
  };
  const revision = Number(began["revision"]) + (options.entry === undefined ? 0 : 1);
  return { records, head, revision, durability: options.durability ?? "disk", replayed };
}

/** The first append made ids and times for the drafts that gave none; the twin takes them over. */
export function toReplayedResult(firstBegan: string, prepared: readonly PreparedRecord[]): AppendResult {
  const [began, ids, tsMs, options] = JSON.parse(firstBegan) as readonly [
    began: DatabaseRow,
    ids: readonly string[],
    tsMs: readonly (number | null)[],
    options: string,
  ];
  const first = prepared.map((item, index) => ({ ...item, id: ids[index] ?? item.id, tsMs: tsMs[index] ?? null }));
  return toAppendResult(began, first, JSON.parse(options) as AppendOptions, true);
}

export function toState(ref: SessionRef, row: DatabaseRow): SessionState {
  const names = row["entry_names"] as readonly string[];
  const values = row["entry_values"] as readonly string[];
  const entry = JSON.parse(
    `{${names.map((name, index) => `${name}:${values[index] ?? "null"}`).join(",")}}`,
  ) as SessionEntry;
  const head = toHead(row);
  return {
    ref,
    sessionId: head.sessionId,
    archived: row["archive_id"] !== "",
    entry,
    revision: Number(row["revision"]),
    head,
    messageCount: Number(row["message_count"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

export function toSourcedRecord(row: DatabaseRow): SourcedRecord {
  const [type, id, timestamp] = [String(row["type"]), String(row["id"]), String(row["timestamp"])];
  const parentId = textOrNull(row["parent_id"]);
  const rest = textOrNull(row["rest"]);
  const kept = row["source"] instanceof Buffer ? toSource(row["source"]) : null;
  const line = rest === null ? String(kept) : assembleLine(type, id, parentId, timestamp, rest);
  return {
    seq: Number(row["seq"]),
    id,
    parentId,
    type,
    side: row["side"] === true,
    tsMs: numberOrNull(row["ts_ms"]),
    storedAtMs: Number(row["stored_at_ms"]),
    bytes: Number(row["bytes"]),
    crc: Number(row["crc"]),
    record: JSON.parse(line) as SessionRecord,
    source: kept ?? line,
    isSourceCanonical: kept === null || rest === null,
  };
}

/** Text when the bytes are well-formed UTF-8 without a byte order mark: the rule of the contract, so no flag is kept. */
function toSource(bytes: Buffer): RecordSource {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return isUtf8(bytes) && !hasMark ? bytes.toString("utf8") : new Uint8Array(bytes);
}

function toHead(row: DatabaseRow): SessionHead {
  const fence = Number(row["fence"]);
  const [turnId, owner] = [textOrNull(row["turn_id"]), textOrNull(row["turn_owner"])];
  const leaseUntilMs = numberOrNull(row["lease_until_ms"]);
  return {
    sessionId: String(row["session_id"]),
    lastSeq: Number(row["last_seq"]),
    headId: textOrNull(row["head_id"]),
    windowSeq: numberOrNull(row["window_seq"]),
    fence,
    turn: turnId === null || owner === null || leaseUntilMs === null ? null : { turnId, owner, leaseUntilMs, fence },
  };
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

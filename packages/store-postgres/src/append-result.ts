import type { AppendedRecord } from "@throughline/core/internal";
import type { AppendResult, SessionRef } from "@throughline/core";
import type { AppendRequest } from "@throughline/store-kit/internal";
import { lineBytes, type LinkedRecord, linkRecords, storedRecord } from "@throughline/core/internal";
import { columnText, fromColumnText, type BatchColumns } from "./record-columns.ts";
import { headOf, lineChecksum, numberOrNull, textOrNull, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** Builds the result of an applied append, and announces the events. */
export function applied(
  context: StoreContext,
  ref: SessionRef,
  { request, columns }: { readonly request: AppendRequest; readonly columns: BatchColumns },
  row: DatabaseRow,
): AppendResult {
  const { prepared, options, durability } = request;
  const head = headOf(row);
  const storedAtMs = Number(row["now_ms"]);
  const firstSeq = head.lastSeq - prepared.length + 1;
  let parent = textOrNull(row["prev_head_id"]);
  const records = prepared.map((item, index): AppendedRecord => {
    const parentId = item.parentId === undefined ? parent : item.parentId;
    if (!item.side) parent = item.id;
    return { seq: firstSeq + index, id: item.id, parentId, side: item.side, tsMs: item.tsMs, storedAtMs };
  });
  const claimedMs = options.entry?.["updatedAt"];
  if (typeof claimedMs === "number" && claimedMs > storedAtMs + 5 * 60_000)
    context.announce({ name: "updated-at-clamped", ref, claimedMs, storedMs: Number(row["updated_at_ms"]) });
  if (records.length > 0) {
    context.announce({ name: "records-appended", ref, fromSeq: firstSeq, toSeq: head.lastSeq });
    context.notify(ref, String(row["session_no"]));
  }
  const result = { records, head, revision: Number(row["revision"]), durability, replayed: false };
  if (options.return === undefined) return result;
  const linked = linkRecords(prepared, textOrNull(row["prev_head_id"]));
  const stored = linked.map((item, index) =>
    storedRecord(item, records[index] as AppendedRecord, keptSizes(context.rows, item, columns, index)),
  );
  return { ...result, stored };
}

/** Returns the sizes that a read reports. Only the statement knew the length of a line that follows the head. */
function keptSizes(
  rows: StoreContext["rows"],
  { record, text, source }: LinkedRecord,
  columns: BatchColumns,
  index: number,
): { readonly bytes: number; readonly crc: number } {
  const form = (columns.forms as readonly (number | null)[] | null)?.[index] ?? null;
  const bytes = lineBytes({ source, text });
  const { type, id, parentId } = record;
  const row = {
    type,
    id,
    parent_id: columnText(parentId),
    form,
    bytes,
    crc: (columns.crcs as readonly number[])[index],
  };
  return { bytes, crc: lineChecksum(rows, row) };
}

/** Builds the result of the first append from the answer of a replay. */
export function replayed(row: DatabaseRow): AppendResult {
  const ids = listOf(row["first_ids"]) as readonly string[];
  const parents = listOf(row["first_parents"]) as readonly (string | null)[];
  const sides = listOf(row["first_sides"]) as readonly boolean[];
  const times = listOf(row["first_ts"]) as readonly (number | null)[];
  const head = headOf(row);
  const storedAtMs = Number(row["first_at"]);
  const records = ids.map((id, index): AppendedRecord => {
    const parentId = fromColumnText(parents[index] ?? null);
    const seq = head.lastSeq - ids.length + index + 1;
    return { seq, id, parentId, side: sides[index] === true, tsMs: numberOrNull(times[index]), storedAtMs };
  });
  const durability = row["first_durability"] as AppendResult["durability"];
  return { records, head, revision: Number(row["revision"]), durability, replayed: true };
}

function listOf(text: unknown): readonly unknown[] {
  return typeof text === "string" ? (JSON.parse(text) as readonly unknown[]) : [];
}

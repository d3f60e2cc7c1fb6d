import type { AppendedRecord } from "@throughline/core/internal";
import type { AppendResult, SessionHead } from "@throughline/core";
import {
  assertIdempotencyKey,
  assertNotForgotten,
  defaultIdempotency,
  quote,
  refused,
} from "@throughline/core/internal";
import { assertHead } from "./row-checksums.ts";
import type { KeyedAppendRow, RecordHeadRow, SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** Holds an idempotency key with the hash of its drafts, in hex. */
export interface AppendKey {
  readonly key: string;
  readonly digest: string;
}

/** Holds the stored part of a result. The records themselves are read from the log. */
interface KeptResult {
  readonly head: SessionHead;
  readonly revision: number;
  readonly durability: AppendResult["durability"];
}

/**
 * Returns the first result of a key, or null when the key is new. A row that is due to be forgotten counts as forgotten
 * before it is deleted.
 * @throws {ThroughlineError} INPUT_INVALID, IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED
 */
export function earlierResult(
  statements: Statements,
  row: SessionRow,
  { key, digest }: AppendKey,
  nowMs: number,
): AppendResult | null {
  assertIdempotencyKey(key);
  const found = statements.findKeyed.get(row.session, key);
  const isForgotten = found !== undefined && isDue(row, found, nowMs);
  if (found === undefined || isForgotten) {
    assertNotForgotten(key, () => Math.max(row.keyed_horizon_ms, isForgotten ? found.at_ms : -1));
    return null;
  }
  if (Buffer.from(found.digest).toString("hex") !== digest) {
    throw refused("IDEMPOTENCY_MISMATCH", `Other drafts were appended with this key: ${quote(key)}.`, {
      idempotencyKey: key,
    });
  }
  // The row is written again, so that this commit waits for the disk. The first commit may have been interrupted
  // between its write and its flush, and was then only found in the log.
  statements.renewKeyed.run(row.session, key);
  const last = found.from_seq + found.record_count;
  const records = statements.readHeads.ascending
    .all(row.session, found.from_seq - 1, last, found.record_count)
    .map((each) => {
      assertHead(row.session, each);
      return appendedOf(each);
    });
  return { records, ...(JSON.parse(found.result) as KeptResult), replayed: true };
}

/** Stores a result and counts it in the row of the session. Returns that row. */
export function rememberResult(
  statements: Statements,
  row: SessionRow,
  { key, digest }: AppendKey,
  result: AppendResult,
  nowMs: number,
): SessionRow {
  const { head, revision, durability, records } = result;
  const kept: KeptResult = { head, revision, durability };
  const fromSeq = records[0]?.seq ?? head.lastSeq + 1;
  statements.insertKeyed.run(
    row.session,
    key,
    Buffer.from(digest, "hex"),
    row.keyed_next,
    nowMs,
    fromSeq,
    records.length,
    JSON.stringify(kept),
  );
  const next = { ...row, keyed_next: row.keyed_next + 1, keyed_rows: row.keyed_rows + 1 };
  const counted = next.keyed_rows < next.keyed_sweep_at ? next : sweep(statements, next, nowMs);
  statements.countKeyed.run(
    counted.keyed_next,
    counted.keyed_rows,
    counted.keyed_sweep_at,
    counted.keyed_horizon_ms,
    row.session,
  );
  return counted;
}

function isDue(row: SessionRow, found: Pick<KeyedAppendRow, "number" | "at_ms">, nowMs: number): boolean {
  const { rememberedAppends, rememberedMs } = defaultIdempotency;
  return row.keyed_next - found.number > rememberedAppends && found.at_ms < nowMs - rememberedMs;
}

/**
 * Deletes the keys that are due. The next sweep comes when a quarter was added, so that its work stays in proportion.
 */
function sweep(statements: Statements, row: SessionRow, nowMs: number): SessionRow {
  const { rememberedAppends, rememberedMs } = defaultIdempotency;
  const old = statements.oldKeyed.all(row.session, row.keyed_next - rememberedAppends, nowMs - rememberedMs);
  for (const { idempotency_key: key } of old) statements.deleteKeyed.run(row.session, key);
  const left = row.keyed_rows - old.length;
  return {
    ...row,
    keyed_rows: left,
    keyed_sweep_at: firstSweepAt(left),
    keyed_horizon_ms: old.reduce((newest, { at_ms: atMs }) => Math.max(newest, atMs), row.keyed_horizon_ms),
  };
}

/** Returns the number of rows at which the keys of a session are swept. */
export function firstSweepAt(rows: number): number {
  return Math.ceil(Math.max(rows, defaultIdempotency.rememberedAppends) * 1.25);
}

function appendedOf({ seq, id, parentId, side, tsMs, storedAtMs }: RecordHeadRow): AppendedRecord {
  return { seq, id, parentId, side: side === 1, tsMs, storedAtMs: storedAtMs ?? 0 };
}

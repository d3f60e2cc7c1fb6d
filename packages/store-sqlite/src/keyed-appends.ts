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

/** An idempotency key with the hash of the drafts it came with, in hex. */
export interface AppendKey {
  readonly key: string;
  readonly digest: string;
}

/** What is kept of a result; its records are read from the log. */
interface KeptResult {
  readonly head: SessionHead;
  readonly revision: number;
  readonly durability: AppendResult["durability"];
}

/**
 * The first result of a key, or null when the key is new. A row that is due to be forgotten counts as forgotten,
 * whether or not it has been deleted yet.
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
  // Writing the row again makes this commit wait for the disk: the first one may have been cut off between its write
  // and its flush, and was then only found again in the log.
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

/** Keeps a result, and counts it in the session's row, which is given back. */
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

/** Deletes what is due. The next sweep comes when a quarter has been added, so that the work stays in proportion. */
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

/** The number of rows at which a session's keys are swept. */
export function firstSweepAt(rows: number): number {
  return Math.ceil(Math.max(rows, defaultIdempotency.rememberedAppends) * 1.25);
}

/** What an append says of a record, read back for the answer to a repeated one. */
function appendedOf({ seq, id, parentId, side, tsMs, storedAtMs }: RecordHeadRow): AppendedRecord {
  return { seq, id, parentId, side: side === 1, tsMs, storedAtMs: storedAtMs ?? 0 };
}

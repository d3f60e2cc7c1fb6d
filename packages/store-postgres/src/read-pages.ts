import { hasErrorCode, type ReadOptions, type RecordPage, type SessionRef } from "@throughline/core";
import { type ReadPayload, type RecordFor, type RecordWindow, sessionNotFound } from "@throughline/core/internal";
import { checkedPage, readBounds } from "@throughline/store-kit/internal";
import { addressOf } from "./append-records.ts";
import { parametersOf } from "./layout.ts";
import { isWithoutSource, numberOrNull, recordOf, stateOf, textOrNull, type DatabaseRow } from "./row-values.ts";
import { stateColumns } from "./save-function.ts";
import type { StoreContext } from "./store-context.ts";

const noSeq = Number.MAX_SAFE_INTEGER;

interface Position {
  /** Holds the session number after the first page has found it. */
  readonly sessionNo: string | null;
  readonly afterSeq: number;
  readonly beforeSeq: number;
  readonly left: number;
}

/**
 * Reads page by page, with one round trip for each page. The read ends when a page reaches the end of the session or
 * the range, without a request for an empty page.
 */
export async function* readRecords<Payload extends ReadPayload>(
  context: StoreContext,
  ref: SessionRef,
  options: ReadOptions<Payload>,
  check: () => void,
  sessionNo: string | null = null,
): AsyncGenerator<RecordPage<Payload>> {
  for await (const rows of readRows(context, ref, options, check, sessionNo)) {
    const page = await pageOf(context, ref, rows, options.payload ?? ("record" as Payload));
    if (page !== null) yield page;
  }
}

/**
 * Reads the same pages as rows. `sessionNo` selects a session that was found before, because its address may name
 * another one by now.
 */
export async function* readRows(
  context: StoreContext,
  ref: SessionRef,
  options: ReadOptions<ReadPayload>,
  check: () => void = () => undefined,
  sessionNo: string | null = null,
): AsyncGenerator<readonly DatabaseRow[]> {
  const { order = "ascending" } = options;
  const { afterSeq, beforeSeq, limit } = readBounds(options);
  let position: Position = {
    sessionNo,
    afterSeq: Math.min(afterSeq, noSeq),
    beforeSeq: Math.max(0, Math.min(beforeSeq, noSeq)),
    left: Math.max(0, limit),
  };
  for (;;) {
    check();
    const rows = await fetchPage(context, ref, position, options, false);
    const [first] = rows;
    if (first === undefined) return;
    checkedPage(seqsOf(rows), { ...position, order });
    if (first["seq"] === null) return;
    yield rows;
    const lastSeq = Number(rows.at(-1)?.["seq"]);
    const left = position.left - rows.length;
    const isEnd =
      order === "ascending"
        ? lastSeq >= Math.min(Number(first["session_last_seq"]), position.beforeSeq - 1)
        : lastSeq <= position.afterSeq + 1;
    if (left <= 0 || isEnd) return;
    const next = order === "ascending" ? { afterSeq: lastSeq } : { beforeSeq: lastSeq };
    position = { ...position, sessionNo: textOrNull(first["session_no"]), left, ...next };
  }
}

/** @throws {ThroughlineError} SESSION_NOT_FOUND */
export async function fetchPage(
  context: StoreContext,
  ref: SessionRef,
  { sessionNo, afterSeq, beforeSeq, left }: Position,
  { order = "ascending", payload = "record", signal }: Pick<ReadOptions<ReadPayload>, "order" | "payload" | "signal">,
  isWindow: boolean,
): Promise<readonly DatabaseRow[]> {
  const address = addressOf(ref);
  if (address === null) throw sessionNotFound(ref);
  const { pageRecords, pageBytes } = context.limits;
  const rows = await context.pool.run(
    `SELECT * FROM ${context.schema}.read_page_1(${parametersOf(context.found.layout, 12)})`,
    [
      ...context.found.layout.values(ref),
      ...address,
      sessionNo,
      isWindow,
      afterSeq,
      beforeSeq,
      order === "ascending",
      Math.min(left, pageRecords),
      pageBytes,
      payload === "head" ? 0 : payload === "record" ? 1 : 2,
    ],
    { signal, isRead: true, isFrequent: true, agent: ref },
  );
  if (rows.length === 0) throw sessionNotFound(ref);
  return rows;
}

function seqsOf(rows: readonly DatabaseRow[]): {
  readonly records: readonly { readonly seq: number }[];
  readonly lastSeq: number;
} {
  const records = rows.flatMap((row) => (row["seq"] === null ? [] : [{ seq: Number(row["seq"]) }]));
  return { records, lastSeq: Number(rows[0]?.["session_last_seq"]) };
}

/** Returns null for an empty range. */
export async function pageOf<Payload extends ReadPayload>(
  context: StoreContext,
  ref: SessionRef,
  rows: readonly DatabaseRow[],
  payload: Payload,
): Promise<RecordPage<Payload> | null> {
  const [first] = rows;
  if (first === undefined || first["seq"] === null) return null;
  const records: RecordFor<Payload>[] = [];
  for (const row of rows)
    try {
      records.push(recordOf(context.rows, ref, row, payload));
    } catch (error) {
      if (hasErrorCode(error, "CODEC_FAILED")) await assertUndamaged(context, ref, row);
      throw error;
    }
  return { records, lastSeq: Number(first["session_last_seq"]) };
}

/**
 * Reads a record that does not decode once more with its source, which its checksum covers, too: a page of records has no
 * sources.
 * @throws {ThroughlineError} STORE_CORRUPT for a damaged record
 */
async function assertUndamaged(context: StoreContext, ref: SessionRef, row: DatabaseRow): Promise<void> {
  if (!isWithoutSource(row)) return;
  const seq = Number(row["seq"]);
  const place = { sessionNo: textOrNull(row["session_no"]), afterSeq: seq - 1, beforeSeq: seq + 1, left: 1 };
  const [sourced] = await fetchPage(context, ref, place, { payload: "source" }, false);
  if (sourced !== undefined && sourced["seq"] !== null) recordOf(context.rows, ref, sourced, "source");
}

/**
 * Reads the state and the window in one round trip, because the session row comes with the first page. Further pages
 * are read one by one.
 */
export async function readWindowPage(
  context: StoreContext,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal | undefined },
  check: () => void,
): Promise<RecordWindow> {
  const address = addressOf(ref);
  if (address === null) throw sessionNotFound(ref);
  const { pageRecords, pageBytes } = context.limits;
  const { layout } = context.found;
  const given = [...address, pageRecords, pageBytes];
  const [sql, values] = context.found.isDistributed
    ? [distributedWindow(context), [...layout.values(ref), ...given]]
    : [windowStatement(context), [...given, ...layout.values(ref)]];
  const rows = await context.pool.run(sql, values, {
    signal: options.signal,
    isRead: true,
    isFrequent: true,
    agent: ref,
  });
  const [first] = rows;
  if (first === undefined) throw sessionNotFound(ref);
  const row = Object.fromEntries(stateColumns.map((column) => [column, first[`state_${column}`]]));
  const page = await pageOf(context, ref, rows, "record");
  const windowSeq = numberOrNull(first["state_window_seq"]) ?? 1;
  checkedPage(seqsOf(rows), { afterSeq: Math.max(windowSeq - 1, 0), beforeSeq: Infinity, order: "ascending" });
  const records = [...(page?.records ?? [])];
  const afterSeq = records.at(-1)?.seq ?? 0;
  try {
    if (page !== null && afterSeq < page.lastSeq) {
      const sessionNo = textOrNull(first["session_no"]);
      for await (const next of readRecords<"record">(context, ref, { ...options, afterSeq }, check, sessionNo))
        records.push(...next.records);
    }
  } catch (error) {
    // The session was purged between two pages, and its key may name another session.
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return readWindowPage(context, ref, options, check);
    throw error;
  }
  return { state: stateOf(context.rows, row), records };
}

/** Returns the statement that joins the session row with the first page of its window. */
function windowStatement({ schema, found: { layout } }: StoreContext): string {
  // Entry columns come with the first row only, because an entry may be large.
  const state = stateColumns
    .map((column) =>
      column.startsWith("entry") ? `CASE WHEN coalesce(r.ordinality, 1) = 1 THEN t.${column} END` : `t.${column}`,
    )
    .map((column, index) => `${column} AS state_${stateColumns[index]}`)
    .join(", ");
  return `SELECT r.*, ${state} FROM ${schema}.sessions t
     LEFT JOIN LATERAL ${schema}.read_page_1(${layout.first("$7")}$1, $2, $3, $4, NULL, true, 0, ${noSeq}, true, $5, $6, 1) WITH ORDINALITY r ON true
     WHERE t.namespace = $1 AND t.agent_id = $2 AND t.key = $3 AND t.archive_id = $4${layout.and("t", "$7")}`;
}

/**
 * Returns the call of one function for Citus, which cannot join rows with a call that it passes on. It costs a fifth
 * more.
 */
function distributedWindow(context: StoreContext): string {
  const state = stateColumns.map((column) => `(f.state).${column} AS state_${column}`).join(", ");
  return `SELECT f.*, ${state} FROM ${context.schema}.read_window_1(${parametersOf(context.found.layout, 6)}) AS f`;
}

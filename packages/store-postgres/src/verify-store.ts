import { abortedBefore, createFinding, type FindingPlace, isErasedPayload } from "@throughline/core/internal";
import { type Finding, hasErrorCode, type SessionRef } from "@throughline/core";
import { beforeAll, numbersBehind } from "./layout.ts";
import { leftoverFindings } from "./erased-words.ts";
import { readRows } from "./read-pages.ts";
import { type DatabaseRow, fitsChecksum, recordOf, refOf } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

export interface VerifyOptions {
  readonly full?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Limits the sessions that one statement reads. */
const sliceSessions = 200;

/**
 * Reports a table with more dead rows than this, if they are also a fifth of its rows. Autovacuum starts at a fifth by
 * itself.
 */
const deadRows = 50_000;

/** Transaction numbers wrap around at two thousand million, and autovacuum should have run at two hundred million. */
const oldestTransactions = 1_000_000_000;

/**
 * Checks that every session has all its records, and reports what the server states about its tables. With `full` it
 * also checks every entry, and the checksum and JSON of every record. Shared records are checked in each session that
 * has them. It changes nothing, and damage to one session hides no other.
 */
export async function* verifyStore(
  context: StoreContext,
  { full = false, signal }: VerifyOptions,
): AsyncGenerator<Finding> {
  yield* await tableFindings(context, signal);
  yield* await leftoverFindings(context, signal);
  for (let after: readonly string[] = beforeAll(context.found.layout); ;) {
    if (signal?.aborted === true) throw abortedBefore("all was verified", signal);
    const sessions = await sessionsAfter(context, after, signal);
    yield* countFindings(context, sessions, signal);
    if (full) for (const row of sessions) yield* verifySession(context, refOf(row), signal);
    const last = sessions.at(-1);
    if (last === undefined) return;
    after = [String(last["session_no"]), ...context.found.layout.values(refOf(last))];
  }
}

function sessionsAfter(
  { schema, pool, found: { layout } }: StoreContext,
  after: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly DatabaseRow[]> {
  return pool.run(
    `SELECT t.session_no, t.namespace, t.agent_id, t.key, t.archive_id, t.last_seq, t.base_nos, t.base_to_seqs
     FROM ${schema}.sessions t WHERE ${numbersBehind(layout, 1)} LIMIT ${sliceSessions}`,
    after,
    { signal, isRead: true },
  );
}

/** Names records that a session must have: those of one number behind `fromSeq`, up to `toSeq`. */
interface Span {
  readonly session: DatabaseRow;
  readonly sessionNo: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly isOwn: boolean;
}

function spansOf(session: DatabaseRow): Span[] {
  const ends = [...((session["base_to_seqs"] ?? []) as readonly string[]), String(session["last_seq"])].map(Number);
  const nos = [...((session["base_nos"] ?? []) as readonly string[]), String(session["session_no"])];
  return ends.map((toSeq, index) => ({
    session,
    sessionNo: nos[index] ?? "",
    fromSeq: ends[index - 1] ?? 0,
    toSeq,
    isOwn: index === nos.length - 1,
  }));
}

/**
 * Checks that every session of the slice has all its records. One statement counts the sessions of a tenant together.
 */
async function* countFindings(
  context: StoreContext,
  sessions: readonly DatabaseRow[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const { layout } = context.found;
  const tenants = Map.groupBy(sessions, (row) => layout.values(refOf(row)).join());
  for (const rows of tenants.values()) {
    const agent = refOf(rows[0] as DatabaseRow);
    const spans = rows.flatMap(spansOf);
    const counted = await context.pool.run(
      `SELECT w.place, c.held FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (no, from_seq, to_seq, place)
       CROSS JOIN LATERAL (SELECT count(*) AS held FROM ${context.schema}.records r
         WHERE r.session_no = w.no AND r.seq > w.from_seq AND r.seq <= w.to_seq${layout.and("r", "$4")}) c
       WHERE c.held <> w.to_seq - w.from_seq`,
      [
        spans.map((span) => span.sessionNo),
        spans.map((span) => span.fromSeq),
        spans.map((span) => span.toSeq),
        ...layout.values(agent),
      ],
      { signal, isRead: true, agent },
    );
    for (const { place, held } of counted) {
      const span = spans[Number(place) - 1] as Span;
      if (await isThere(context, span.session, signal)) yield missing(context, span, Number(held));
    }
  }
}

/** A session that was purged after it was read has no records, and no record is missing. */
async function isThere(
  { pool, schema, found: { layout } }: StoreContext,
  session: DatabaseRow,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const sql = `SELECT FROM ${schema}.sessions WHERE session_no = $1${layout.and("", "$2")}`;
  const agent = refOf(session);
  const rows = await pool.run(sql, [session["session_no"], ...layout.values(agent)], { signal, isRead: true, agent });
  return rows.length > 0;
}

function missing(context: StoreContext, { session, isOwn, fromSeq, toSeq }: Span, held: number): Finding {
  const place = placeOf(context, refOf(session));
  const what = isOwn ? `has ${held} of its ${toSeq - fromSeq} own records` : "shares records that are not all there";
  return createFinding("RECORD_MISSING", `${place.key} ${what}.`, place);
}

/**
 * Reports indexes that were never finished, and tables that VACUUM does not keep up with. A partitioned table has no
 * rows of its own and is skipped.
 */
async function tableFindings(context: StoreContext, signal: AbortSignal | undefined): Promise<Finding[]> {
  const [name, path] = [context.schema.replaceAll('"', ""), context.pool.place];
  const asked = { signal, isRead: true };
  const broken = await context.pool.run(
    `SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND NOT (i.indisvalid AND i.indisready)`,
    [name],
    asked,
  );
  const unkept = await context.pool.run(
    `SELECT c.relname AS name, s.n_dead_tup AS dead, s.n_live_tup AS live, age(c.relfrozenxid) AS age
     FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
     WHERE s.schemaname = $1 AND c.relkind = 'r' AND ((s.n_dead_tup > $2 AND s.n_dead_tup * 5 > s.n_live_tup) OR age(c.relfrozenxid) > $3)`,
    [name, deadRows, oldestTransactions],
    asked,
  );
  return [
    ...broken.map((row) =>
      createFinding("STORE_DAMAGED", `The index ${row["name"]} is not valid: REINDEX it.`, { path }),
    ),
    ...unkept.map((row) =>
      createFinding(
        "VACUUM_DUE",
        `${row["name"]} has ${row["dead"]} dead rows beside ${row["live"]}, and its oldest is ${row["age"]} transactions old.`,
        { path },
      ),
    ),
  ];
}

async function* verifySession(
  context: StoreContext,
  ref: SessionRef,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const place = placeOf(context, ref);
  try {
    await context.load(ref);
  } catch (error) {
    if (!hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) throw error;
    yield createFinding("STORE_DAMAGED", `The entry of ${place.key}: ${error.message}`, place);
  }
  try {
    for await (const rows of readRows(context, ref, { payload: "source", ...(signal === undefined ? {} : { signal }) }))
      for (const row of rows) yield* recordFindings(context, ref, row);
  } catch (error) {
    // The session was purged or renamed meanwhile, or a record is missing, which the count has reported.
    if (hasErrorCode(error, "SESSION_NOT_FOUND", "STORE_CORRUPT")) return;
    // INTERNAL means that the server could not compute with the values in the row.
    if (!hasErrorCode(error, "INTERNAL")) throw error;
    yield createFinding("STORE_DAMAGED", `The records of ${place.key} cannot be read: ${error.message}`, place);
  }
}

function* recordFindings(context: StoreContext, ref: SessionRef, row: DatabaseRow): Generator<Finding> {
  const place = { ...placeOf(context, ref), recordId: String(row["id"]) };
  const what = `Record ${row["seq"]} of ${place.key}`;
  if (!fitsChecksum(row)) yield createFinding("CHECKSUM_MISMATCH", `${what} does not fit its checksum.`, place);
  try {
    const { record, id, type, parentId } = recordOf(context.rows, ref, row, "source");
    if (record.id !== id || record.type !== type || record.parentId !== parentId)
      yield createFinding("STORE_DAMAGED", `${what} says another id, type or parent than its row.`, place);
  } catch (error) {
    if (isErasedPayload(error)) return;
    if (!hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) throw error;
    yield createFinding("STORE_DAMAGED", `${what} cannot be read: ${error.message}`, place);
  }
}

function placeOf({ pool }: StoreContext, { key }: SessionRef): FindingPlace & { readonly key: string } {
  return { path: pool.place, key };
}

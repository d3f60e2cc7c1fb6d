import type { MoveAction, RemoveOptions, SessionRef, SessionState } from "@throughline/core";
import { planMove, planRemove } from "@throughline/store-kit/internal";
import { quote, refused, sessionNotFound } from "@throughline/core/internal";
import type { SessionFrame } from "@throughline/store-kit/internal";
import { addressOf } from "./append-records.ts";
import type { RunStatement } from "./connection-pool.ts";
import { dropReferences } from "./file-references.ts";
import { passOnGaps } from "./erase-vectors.ts";
import { noteErasedWords } from "./erased-words.ts";
import { breaksIndex, nativeCode } from "./postgres-errors.ts";
import { notePurge } from "./purged-sources.ts";
import { entryColumns, entryOf, frameOf, refOf, stateOf, type DatabaseRow } from "./row-values.ts";
import { stateColumns } from "./save-function.ts";
import { indexSession } from "./search-index.ts";
import type { StoreContext } from "./store-context.ts";

const columns = stateColumns.join(", ");

/** Returns the session row, locked until the transaction ends. @throws {ThroughlineError} SESSION_NOT_FOUND */
export async function lockSession(
  context: StoreContext,
  run: RunStatement,
  ref: SessionRef,
  more = "",
): Promise<DatabaseRow> {
  const address = addressOf(ref);
  if (address === null) throw sessionNotFound(ref);
  const { layout } = context.found;
  const sql = `SELECT ${columns}${more} FROM ${context.schema}.sessions
    WHERE namespace = $1 AND agent_id = $2 AND key = $3 AND archive_id = $4${layout.and("", "$5")} FOR UPDATE`;
  // A reset may have replaced the row during the lock wait. The next attempt finds the new row.
  for (let attempt = 0; attempt < 3; attempt++) {
    const [row] = await run(sql, [...address, ...layout.values(ref)]);
    if (row !== undefined) return row;
  }
  throw sessionNotFound(ref);
}

/** Renames, archives or restores a session. Its records stay unchanged. */
export async function moveSession(context: StoreContext, ref: SessionRef, action: MoveAction): Promise<SessionState> {
  const { state, events } = await context.pool.transaction(async (run) => {
    const row = await lockSession(context, run, ref);
    const target = action.kind === "rename" ? action.key : ref.key;
    const { layout } = context.found;
    const address = addressOf({ namespace: ref.namespace, agentId: ref.agentId, key: target }) ?? ["", "", "", ""];
    const [holder] = await run(
      `SELECT session_id FROM ${context.schema}.sessions
       WHERE namespace = $1 AND agent_id = $2 AND key = $3 AND archive_id = $4${layout.and("", "$5")}`,
      [...address, ...layout.values(ref)],
    );
    const holderId = holder === undefined ? undefined : String(holder["session_id"]);
    const plan = planMove(frameOf(row), action, () => holderId);
    return { state: await writeMove(context, run, row, plan.frame), events: plan.events };
  }, ref);
  context.announce(...events);
  return state;
}

/** Moves the session row to its new address, and encodes the entry for the new key. */
async function writeMove(
  context: StoreContext,
  run: RunStatement,
  row: DatabaseRow,
  { ref, sessionId }: SessionFrame,
): Promise<SessionState> {
  const { names, values, coded } = entryColumns(context.rows, { ref, sessionId }, entryOf(context.rows, row));
  const [moved] = await moveRow(run, context, ref, [
    ref.key,
    ref.archiveId ?? "",
    names,
    values,
    coded,
    row["session_no"],
    ...context.found.layout.values(ref),
  ]);
  if (moved === undefined) throw sessionNotFound(ref);
  if (String(row["archive_id"]) !== (ref.archiveId ?? "")) await dropPartial(context, run, row);
  return stateOf(context.rows, moved);
}

async function moveRow(
  run: RunStatement,
  context: StoreContext,
  ref: SessionRef,
  values: readonly unknown[],
): Promise<readonly DatabaseRow[]> {
  try {
    return await run(
      `UPDATE ${context.schema}.sessions SET key = $1, archive_id = $2, entry_names = $3, entry_values = $4, entry_coded = $5
       WHERE session_no = $6${context.found.layout.and("", "$7")} RETURNING ${columns}`,
      values,
    );
  } catch (error) {
    // Another process took the address after the check.
    if (nativeCode(error) === "23505" && breaksIndex(error, "sessions_address")) {
      throw refused("SESSION_EXISTS", `A session holds the key ${quote(ref.key)}.`, { ...ref }, error);
    }
    throw error;
  }
}

/** In the plain layout a trigger and a foreign key do this without a statement. */
async function dropPartial(context: StoreContext, run: RunStatement, row: DatabaseRow): Promise<void> {
  const { layout } = context.found;
  if (layout.name === "plain") return;
  const sql = `DELETE FROM ${context.schema}.partials p WHERE p.session_no = $1${layout.and("p", "$2")}`;
  await run(sql, [row["session_no"], ...layout.values(refOf(row))]);
}

/**
 * Archives the session, or deletes it for good. Records that forks share stay until the last of these forks is purged.
 */
export async function removeSession(context: StoreContext, ref: SessionRef, options: RemoveOptions): Promise<void> {
  for (;;) {
    const removed = await context.pool.transaction(async (run) => {
      const row = await lockSession(context, run, ref, ", base_nos, base_to_seqs, source_digest");
      const plan = planRemove(frameOf(row), options);
      const unindexed = plan.frame === null ? await purge(context, run, row) : null;
      if (plan.frame !== null) await writeMove(context, run, row, plan.frame);
      return { events: plan.events, unindexed };
    }, ref);
    if (removed.unindexed === null) return context.announce(...removed.events);
    await indexSession(context, removed.unindexed);
  }
}

/**
 * Purges the session. Nothing is deleted, and the session is returned, while forks share records of it that are not
 * indexed. Such records are indexed with the session that wrote them, and a purge would remove that session.
 */
async function purge(context: StoreContext, run: RunStatement, row: DatabaseRow): Promise<DatabaseRow | null> {
  const { schema } = context;
  const { layout } = context.found;
  const sessionNo = String(row["session_no"]);
  const tenant = layout.values(refOf(row));
  const bases = (row["base_nos"] ?? []) as readonly string[];
  const own = { sessionNo, tenant };
  const { toSeq, indexedSeq } = await sharedUntil(context, run, own, sessionNo);
  const begunAt = Number(((row["base_to_seqs"] ?? []) as readonly string[]).at(-1) ?? 0);
  if (!context.rows.isCoded && toSeq > Math.max(indexedSeq, begunAt))
    return { ...row, indexed_seq: Math.max(indexedSeq, begunAt) };
  const drop = (table: string): Promise<unknown> =>
    run(`DELETE FROM ${schema}.${table} WHERE session_no = $1${layout.and("", "$2")}`, [sessionNo, ...tenant]);
  await drop("keyed_appends");
  await drop("search_positions");
  if (toSeq > 0) await passOnGaps(context, run, row, { begunAtSeq: begunAt, tenant });
  await drop("vector_progress");
  await drop("vector_gaps");
  await dropPartial(context, run, row);
  await deleteBehind(context, run, own, toSeq);
  for (const baseNo of bases) {
    const base = { sessionNo: baseNo, tenant };
    const [owner] = await run(`SELECT FROM ${schema}.sessions WHERE session_no = $1${layout.and("", "$2")}`, [
      baseNo,
      ...tenant,
    ]);
    // The records stay if the session in which they began still exists.
    if (owner === undefined)
      await deleteBehind(context, run, base, (await sharedUntil(context, run, base, sessionNo)).toSeq);
  }
  await dropReferences(context, run, row);
  await notePurge(context, run, row);
  // The session row goes last, because row security shows a role the other rows only while it sees the session.
  await drop("sessions");
  return null;
}

/**
 * Names records by their session number and the value for the tenant's parameter. Forks and the records they share have
 * one tenant.
 */
interface Numbered {
  readonly sessionNo: string;
  readonly tenant: readonly string[];
}

/**
 * Returns the last seq that forks share of a number, and the last indexed seq. @param removedNo a fork that does not
 * count
 */
async function sharedUntil(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { sessionNo, tenant }: Numbered,
  removedNo: string,
): Promise<{ readonly toSeq: number; readonly indexedSeq: number }> {
  const [shared] = await run(
    `SELECT max(b.to_seq) AS to_seq, (SELECT p.indexed_seq FROM ${schema}.search_positions p
         WHERE p.session_no = $1${layout.and("p", "$3")}) AS indexed_seq
     FROM (
       SELECT base_nos, base_to_seqs FROM ${schema}.sessions
       WHERE base_nos @> ARRAY[$1::bigint] AND session_no <> $2${layout.and("", "$3")} FOR SHARE
     ) s CROSS JOIN LATERAL unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq)
     WHERE b.no = $1`,
    [sessionNo, removedNo, ...tenant],
  );
  return { toSeq: Number(shared?.["to_seq"] ?? 0), indexedSeq: Number(shared?.["indexed_seq"] ?? 0) };
}

/** Deletes the records of a number behind the last shared one. */
async function deleteBehind(
  context: StoreContext,
  run: RunStatement,
  { sessionNo, tenant }: Numbered,
  toSeq: number,
): Promise<void> {
  const {
    schema,
    found: { layout },
  } = context;
  const behind = `session_no = $1 AND seq > $2${layout.and("", "$3")}`;
  const [indexed] = await run(`SELECT FROM ${schema}.search_documents WHERE ${behind} LIMIT 1`, [
    sessionNo,
    toSeq,
    ...tenant,
  ]);
  if (indexed !== undefined) await noteErasedWords(context, run);
  await run(`DELETE FROM ${schema}.vectors WHERE session_no = $1 AND last_seq > $2${layout.and("", "$3")}`, [
    sessionNo,
    toSeq,
    ...tenant,
  ]);
  for (const table of ["records", "search_documents"])
    await run(`DELETE FROM ${schema}.${table} WHERE ${behind}`, [sessionNo, toSeq, ...tenant]);
  await run(
    `DELETE FROM ${schema}.payloads b WHERE b.session_no = $1${layout.and("b", "$2")} AND NOT EXISTS (
       SELECT FROM ${schema}.records r WHERE r.session_no = $1${layout.and("r", "$2")}
         AND (r.rest_hash = b.hash OR r.source_hash = b.hash))`,
    [sessionNo, ...tenant],
  );
}

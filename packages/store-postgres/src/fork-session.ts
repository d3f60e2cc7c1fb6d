import type { SessionEvent, SessionRef, SessionState } from "@throughline/core";
import type { SharedRecords } from "@throughline/core/internal";
import { assertIdsFree, forkBound } from "@throughline/store-kit/internal";
import { quote, refused, sessionNotFound } from "@throughline/core/internal";
import { addressOf, newAddressOf } from "./append-records.ts";
import type { RunStatement } from "./connection-pool.ts";
import { shareReferences } from "./file-references.ts";
import { breaksIndex, nativeCode } from "./postgres-errors.ts";
import { entryColumns, refOf, stateOf, textOrNull, type DatabaseRow } from "./row-values.ts";
import { stateColumns } from "./save-function.ts";
import { lockSession } from "./session-changes.ts";
import { databaseNowMs } from "./store-clock.ts";
import type { StoreContext } from "./store-context.ts";

export interface ForkOptions {
  readonly atSeq?: number | undefined;
  readonly sessionId: string;
}

/**
 * Creates a session that shares the records of another session up to a seq. This writes one row, however many records
 * there are. The row states the session numbers of the shared records and their last seqs. A fork of a fork states
 * those of both.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, KEY_AGENT_MISMATCH, INPUT_INVALID and those of new ids
 */
export async function forkSession(
  context: StoreContext,
  ref: SessionRef,
  target: SessionRef,
  options: ForkOptions,
): Promise<SessionState> {
  const atSeq = forkBound(ref, target, options);
  const { sessionId } = options;
  newAddressOf(target);
  const { state, events } = await context.pool.transaction(async (run) => {
    const origin = await lockSession(
      context,
      run,
      ref,
      ", head_bytes, base_nos, base_to_seqs, base_ids, redacted_messages",
    );
    await assertFree(context, run, target, sessionId);
    const shared = await sharedPart(context, run, origin, Math.min(atSeq, Number(origin["last_seq"])));
    return insertFork(context, run, { ref, target, sessionId, origin, shared }).catch((error: unknown) => {
      // Another process took the key or the session id after the check.
      if (nativeCode(error) === "23505" && breaksIndex(error, "sessions_"))
        throw refused("SESSION_EXISTS", `A session holds the key ${quote(target.key)}.`, { ...target }, error);
      throw error;
    });
  }, ref);
  context.announce(...events);
  return state;
}

async function assertFree(
  context: StoreContext,
  run: RunStatement,
  target: SessionRef,
  sessionId: string,
): Promise<void> {
  assertIdsFree({ ref: target, sessionId }, { agentId: undefined, sessionId: undefined });
  const { layout } = context.found;
  const [atKey] = await run(
    `SELECT FROM ${context.schema}.sessions
     WHERE namespace = $1 AND agent_id = $2 AND key = $3 AND archive_id = $4${layout.and("", "$5")}`,
    [...newAddressOf(target), ...layout.values(target)],
  );
  if (atKey !== undefined)
    throw refused("SESSION_EXISTS", `A session holds the key ${quote(target.key)}.`, { ...target });
  const [holder] = await run(
    `SELECT session_id FROM ${context.schema}.sessions
     WHERE lower(session_id) = lower($1) AND agent_id = $2 AND namespace = $3${layout.and("", "$4")}`,
    [sessionId, target.agentId, target.namespace, ...layout.values(target)],
  );
  if (holder !== undefined)
    assertIdsFree({ ref: target, sessionId }, { agentId: undefined, sessionId: String(holder["session_id"]) });
}

interface SharedPart {
  readonly atSeq: number;
  readonly headId: string | null;
  readonly messageCount: number;
  readonly messagesEver: number;
  readonly nos: readonly string[];
  readonly toSeqs: readonly number[];
  readonly ids: readonly string[];
}

async function sharedPart(
  context: StoreContext,
  run: RunStatement,
  origin: DatabaseRow,
  atSeq: number,
): Promise<SharedPart> {
  const ends = ((origin["base_to_seqs"] ?? []) as readonly string[]).map(Number);
  const all = {
    nos: [...((origin["base_nos"] ?? []) as readonly string[]), String(origin["session_no"])],
    ids: [...((origin["base_ids"] ?? []) as readonly string[]), String(origin["session_id"])],
    toSeqs: [...ends, Number(origin["last_seq"])],
  };
  // The span that holds the last shared record is the last one, and ends at that record.
  const count = atSeq === 0 ? 0 : all.toSeqs.findIndex((toSeq) => toSeq >= atSeq) + 1;
  const spans = {
    nos: all.nos.slice(0, count),
    ids: all.ids.slice(0, count),
    toSeqs: all.toSeqs.slice(0, count).map((toSeq, index) => (index === count - 1 ? atSeq : toSeq)),
  };
  if (count === 0) return { atSeq, headId: null, messageCount: 0, messagesEver: 0, ...spans };
  const { layout } = context.found;
  const tenant = layout.values(refOf(origin));
  const [at] = await run(
    `SELECT message_number FROM ${context.schema}.records WHERE session_no = $1 AND seq = $2${layout.and("", "$3")}`,
    [spans.nos.at(-1), atSeq, ...tenant],
  );
  const messagesEver = Number(at?.["message_number"] ?? 0);
  const redacted = ((origin["redacted_messages"] ?? []) as readonly string[]).filter((seq) => Number(seq) <= atSeq);
  const headId =
    atSeq === Number(origin["last_seq"]) ? textOrNull(origin["head_id"]) : await lastMain(context, run, spans, tenant);
  return { atSeq, headId, messagesEver, messageCount: messagesEver - redacted.length, ...spans };
}

async function lastMain(
  context: StoreContext,
  run: RunStatement,
  { nos, toSeqs }: Pick<SharedPart, "nos" | "toSeqs">,
  tenant: readonly string[],
): Promise<string | null> {
  for (const [index, no] of [...nos.entries()].toReversed()) {
    const [row] = await run(
      `SELECT id FROM ${context.schema}.records
       WHERE session_no = $1 AND seq <= $2${context.found.layout.and("", "$3")} AND NOT side ORDER BY seq DESC LIMIT 1`,
      [no, toSeqs[index], ...tenant],
    );
    if (row !== undefined) return String(row["id"]);
  }
  return null;
}

interface ForkParts {
  readonly ref: SessionRef;
  readonly target: SessionRef;
  readonly sessionId: string;
  readonly origin: DatabaseRow;
  readonly shared: SharedPart;
}

async function insertFork(
  context: StoreContext,
  run: RunStatement,
  { ref, target, sessionId, origin, shared }: ForkParts,
): Promise<{ readonly state: SessionState; readonly events: readonly SessionEvent[] }> {
  const { atSeq, headId, nos, toSeqs, ids } = shared;
  const nowMs = await databaseNowMs(context, run);
  const forkedFrom = { agentId: ref.agentId, key: ref.key, sessionId: String(origin["session_id"]), atSeq };
  const { names, values, coded } = entryColumns(context.rows, { ref: target, sessionId }, { sessionId, forkedFrom });
  // The store keeps the window of the newest record only, so a fork at an earlier record starts with the whole log.
  const window = atSeq === Number(origin["last_seq"]) ? origin["window_seq"] : null;
  const isShared = nos.length > 0;
  const { layout } = context.found;
  const [row] = await run(
    `INSERT INTO ${context.schema}.sessions AS t (${layout.first("tenant")}namespace, agent_id, key, archive_id, session_id, revision, last_seq,
       head_id, head_bytes, window_seq, message_count, messages_ever, created_at_ms, updated_at_ms, base_nos, base_to_seqs,
       base_ids, redacted_messages, entry_names, entry_values, entry_coded)
     VALUES (${layout.first("$19")}$1, $2, $3, '', $4, 1, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14,
       $15, $16, $17, $18) RETURNING ${stateColumns.join(", ")}`,
    [
      target.namespace,
      target.agentId,
      target.key,
      sessionId,
      atSeq,
      headId,
      Buffer.byteLength(JSON.stringify(headId)),
      window,
      shared.messageCount,
      shared.messagesEver,
      nowMs,
      isShared ? nos : null,
      isShared ? toSeqs : null,
      isShared ? ids : null,
      origin["redacted_messages"],
      names,
      values,
      coded,
      ...layout.values(target),
    ],
  );
  if (row === undefined) throw refused("INTERNAL", "The row of a fork did not come back.", { sessionId });
  await shareReferences(context, run, { origin, fork: row, atSeq });
  const state = stateOf(context.rows, row);
  return { state, events: [{ name: "session-created", ref: state.ref, sessionId }] };
}

/** Returns the other sessions that a redaction of these records reaches. */
export async function sharersOf(
  context: StoreContext,
  ref: SessionRef,
  seqs: readonly number[],
): Promise<readonly SharedRecords[]> {
  const address = addressOf(ref);
  const { schema } = context;
  const { layout } = context.found;
  const tenant = layout.values(ref);
  const [own] =
    address === null
      ? []
      : await context.pool.run(
          `SELECT session_no, last_seq, base_nos, base_to_seqs FROM ${schema}.sessions
           WHERE namespace = $1 AND agent_id = $2 AND key = $3 AND archive_id = $4${layout.and("", "$5")}`,
          [...address, ...tenant],
          { agent: ref },
        );
  if (own === undefined) throw sessionNotFound(ref);
  // A record belongs to the first span that reaches its seq.
  const nos = [...((own["base_nos"] ?? []) as readonly string[]), String(own["session_no"])];
  const ends = [...((own["base_to_seqs"] ?? []) as readonly string[]), String(own["last_seq"])].map(Number);
  const placed = seqs.flatMap((seq) => {
    const no = nos[ends.findIndex((toSeq) => toSeq >= seq)];
    return no === undefined ? [] : [{ seq, no }];
  });
  const rows = await context.pool.run(
    `SELECT s.namespace, s.agent_id, s.key, s.archive_id, s.session_id,
       pg_catalog.array_agg(w.seq ORDER BY w.seq) AS seqs
     FROM unnest($1::bigint[], $2::bigint[]) AS w (no, seq)
     JOIN ${schema}.sessions s ON s.session_no = w.no AND s.last_seq >= w.seq${layout.and("s", "$4")}
       OR s.base_nos OPERATOR(pg_catalog.@>) ARRAY[w.no]${layout.and("s", "$4")}
       AND EXISTS (SELECT FROM unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq) WHERE b.no = w.no AND b.to_seq >= w.seq)
     WHERE s.session_no <> $3${layout.and("s", "$4")} GROUP BY 1, 2, 3, 4, 5`,
    [placed.map(({ no }) => no), placed.map(({ seq }) => seq), own["session_no"], ...tenant],
    { agent: ref },
  );
  return rows.map((row) => ({
    ref: refOf(row),
    sessionId: String(row["session_id"]),
    seqs: ((row["seqs"] ?? []) as readonly unknown[]).map(Number),
  }));
}

import type { RedactOptions, RedactResult, SessionEvent, SessionRef } from "@throughline/core";
import {
  entrySourceDigest,
  fileIdsOf,
  type LinkedRecord,
  quote,
  refused,
  serializeRecord,
} from "@throughline/core/internal";
import { planFieldRemoval, planRedaction, redactedRecord, type RedactionInfo } from "@throughline/store-kit/internal";
import type { RunStatement } from "./connection-pool.ts";
import { eraseVectorsOf, type ReachedSessions } from "./erase-vectors.ts";
import { noteErasedWords } from "./erased-words.ts";
import { dropReferencesOfRecord } from "./file-references.ts";
import { contentColumns } from "./record-columns.ts";
import {
  canHold,
  entryColumns,
  entryOf,
  frameOf,
  recordOf,
  refOf,
  textOrNull,
  type DatabaseRow,
} from "./row-values.ts";
import { documentOf, insertDocuments } from "./search-index.ts";
import { stateColumns } from "./save-function.ts";
import { lockSession } from "./session-changes.ts";
import { databaseNowMs } from "./store-clock.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Replaces records with tombstones in one transaction, wherever the content is kept. That is the log, the separate
 * payloads, the search index, and every fork that shares it.
 */
export async function redactRecords(
  context: StoreContext,
  ref: SessionRef,
  ids: readonly string[],
  { reason, entryFields = [], texts }: RedactOptions,
): Promise<RedactResult> {
  const plan = await context.pool.transaction(async (run) => {
    const session = await lockSession(context, run, ref, ", base_nos, base_to_seqs, base_ids");
    const rows = await findRecords(context, run, session, ids);
    const found = planRedaction(frameOf(session), ids, (id) => {
      const row = rows.get(id);
      return row === undefined ? undefined : Number(row["seq"]);
    });
    const redactedAtMs = await databaseNowMs(context, run);
    for (const row of rows.values())
      await redactRow(context, run, { ref, session, row, info: { reason, redactedAtMs, texts } });
    const reached = reachedBy(context, session, [...rows.values()]);
    await removePartials(context, run, reached);
    await eraseVectorsOf(context, run, reached);
    if (entryFields.length === 0) return found;
    const removed = await removeFields(context, run, { reached, entryFields, redactedAtMs });
    return { ...found, events: [...found.events, ...removed] };
  }, ref);
  context.announce(...plan.events);
  return { seqs: plan.seqs };
}

/** Removes the partials of the session and of the sessions that share one of the records. */
async function removePartials(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { numbers, values }: ReachedSessions,
): Promise<void> {
  await run(`DELETE FROM ${schema}.partials p WHERE p.session_no = ANY (${numbers})${layout.and("p", "$4")}`, values);
}

/**
 * Returns the numbers of the given session, and of the sessions that hold or share one of the records, as an array that
 * PostgreSQL finds through indexes.
 */
function reachedBy(
  { schema, found: { layout } }: StoreContext,
  session: DatabaseRow,
  rows: readonly DatabaseRow[],
): ReachedSessions {
  const records = "unnest($2::bigint[], $3::bigint[]) AS r (no, seq)";
  const tenant = layout.and("o", "$4");
  const numbers = `ARRAY(SELECT $1::bigint
    UNION SELECT o.session_no FROM ${records} JOIN ${schema}.sessions o ON o.session_no = r.no AND o.last_seq >= r.seq${tenant}
    UNION SELECT o.session_no FROM ${records} JOIN ${schema}.sessions o ON o.base_nos @> ARRAY[r.no]${tenant}
      WHERE EXISTS (SELECT FROM unnest(o.base_nos, o.base_to_seqs) AS b (no, to_seq) WHERE b.no = r.no AND b.to_seq >= r.seq))`;
  const places = [rows.map((row) => row["session_no"]), rows.map((row) => row["seq"])];
  return { numbers, values: [session["session_no"], ...places, ...layout.values(refOf(session))] };
}

/** Removes fields from the entries of the session and of the sessions that share the records. Returns the events. */
async function removeFields(
  context: StoreContext,
  run: RunStatement,
  {
    reached: { numbers, values },
    entryFields,
    redactedAtMs,
  }: {
    readonly reached: ReachedSessions;
    readonly entryFields: readonly string[];
    readonly redactedAtMs: number;
  },
): Promise<readonly SessionEvent[]> {
  const { schema } = context;
  const { layout } = context.found;
  const reached = await run(
    `SELECT ${stateColumns.join(", ")} FROM ${schema}.sessions s WHERE s.session_no = ANY (${numbers})${layout.and("s", "$4")}
     ORDER BY session_no FOR UPDATE`,
    values,
  );
  const events: SessionEvent[] = [];
  for (const row of reached) {
    const plan = planFieldRemoval(frameOf(row), entryOf(context.rows, row), entryFields, redactedAtMs);
    if (plan === null) continue;
    const { names, values, coded } = entryColumns(context.rows, plan.frame, plan.entry);
    await run(
      `UPDATE ${schema}.sessions SET entry_names = $2, entry_values = $3, entry_coded = $4, revision = $5, updated_at_ms = $6,
         source_digest = $7 WHERE session_no = $1${layout.and("", "$8")}`,
      [
        row["session_no"],
        names,
        values,
        coded,
        plan.frame.revision,
        plan.frame.updatedAtMs,
        entrySourceDigest(plan.entry),
        ...layout.values(plan.frame.ref),
      ],
    );
    events.push(...plan.events);
  }
  return events;
}

/** Finds the session's own and shared records by id, and locks them. */
async function findRecords(
  context: StoreContext,
  run: RunStatement,
  session: DatabaseRow,
  ids: readonly string[],
): Promise<ReadonlyMap<string, DatabaseRow>> {
  const known = ids.filter((id) => typeof id === "string" && canHold([id]));
  const bases = (session["base_nos"] ?? []) as readonly string[];
  const ends = (session["base_to_seqs"] ?? []) as readonly string[];
  const baseIds = (session["base_ids"] ?? []) as readonly string[];
  const { layout } = context.found;
  const tenant = layout.values(refOf(session));
  // The lock also stops writers of the sessions in which the shared records began.
  if (bases.length > 0)
    await run(
      `SELECT FROM ${context.schema}.sessions WHERE session_no = ANY ($1)${layout.and("", "$2")} ORDER BY session_no FOR UPDATE`,
      [bases, ...tenant],
    );
  const rows = await run(
    `SELECT r.*, b.base_id, $4::text AS session_id,
       CASE WHEN r.rest_hash IS NOT NULL THEN
         (SELECT p.content FROM ${context.schema}.payloads p
           WHERE p.session_no = r.session_no AND p.hash = r.rest_hash${layout.and("p", "$6")}) END AS rest_payload,
       CASE WHEN r.source_hash IS NOT NULL THEN
         (SELECT p.content FROM ${context.schema}.payloads p
           WHERE p.session_no = r.session_no AND p.hash = r.source_hash${layout.and("p", "$6")}) END AS source_payload
     FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS b (no, to_seq, base_id)
     JOIN ${context.schema}.records r ON r.session_no = b.no AND r.seq <= b.to_seq AND r.id = ANY ($5::text[])${layout.and("r", "$6")}
     FOR UPDATE OF r`,
    [
      [...bases, session["session_no"]],
      [...ends, session["last_seq"]],
      [...baseIds, null],
      session["session_id"],
      known,
      ...tenant,
    ],
  );
  return new Map(rows.map((row) => [String(row["id"]), row]));
}

interface Redaction {
  readonly ref: SessionRef;
  readonly session: DatabaseRow;
  readonly row: DatabaseRow;
  readonly info: RedactionInfo;
}

async function redactRow(context: StoreContext, run: RunStatement, redaction: Redaction): Promise<void> {
  const { ref, session, row, info } = redaction;
  const { schema, rows } = context;
  const stored = recordOf(rows, ref, row, "source");
  const redacted = redactedRecord(stored, info);
  if (redacted === null) return;
  const { record } = redacted;
  const sessionId = textOrNull(row["base_id"]) ?? String(session["session_id"]);
  const content = contentColumns(rows, { ref, sessionId }, preparedOf(redacted), record.parentId);
  const [sessionNo, seq] = [row["session_no"], row["seq"]];
  const { layout } = context.found;
  const tenant = layout.values(ref);
  for (const payload of content.payloads)
    await run(
      `INSERT INTO ${schema}.payloads (session_no, hash, content${layout.last("tenant")})
       VALUES ($1, $2, $3${layout.last("$4")}) ON CONFLICT DO NOTHING`,
      [sessionNo, payload.hash, payload.content, ...tenant],
    );
  const { form, rest, coded, source, restHash, sourceHash, crc, bytes } = content;
  await run(
    `UPDATE ${schema}.records SET role = CASE WHEN type = $3 THEN role END, tool_name = CASE WHEN type = $3 THEN tool_name END,
       type = $3, form = $4, rest = $5, coded = $6, source = $7, rest_hash = $8, source_hash = $9, crc = $10, bytes = $11
     WHERE session_no = $1 AND seq = $2${layout.and("", "$12")}`,
    [sessionNo, seq, record.type, form, rest, coded, source, restHash, sourceHash, crc, bytes, ...tenant],
  );
  const hashes = [row["rest_hash"], row["source_hash"]].filter((hash) => hash !== null);
  if (hashes.length > 0)
    await run(
      `DELETE FROM ${schema}.payloads b WHERE b.session_no = $1 AND b.hash = ANY ($2::bytea[])${layout.and("b", "$3")} AND NOT EXISTS (
         SELECT FROM ${schema}.records r WHERE r.session_no = $1${layout.and("r", "$3")} AND (r.rest_hash = b.hash OR r.source_hash = b.hash))`,
      [sessionNo, hashes, ...tenant],
    );
  const [erased] = await run(
    `DELETE FROM ${schema}.search_documents WHERE session_no = $1 AND seq = $2${layout.and("", "$3")} RETURNING seq`,
    [sessionNo, seq, ...tenant],
  );
  if (erased !== undefined) {
    await noteErasedWords(context, run);
    const documents = context.isIndexOff
      ? []
      : documentOf(record, { seq, crc }, context.tokenOf(ref.namespace, "index"));
    if (documents.length > 0) await insertDocuments(context, run, { sessionNo, documents, tenant });
  }
  if (fileIdsOf(stored.record).length > 0)
    await dropReferencesOfRecord(context, run, { scope: ref, row, keptIds: fileIdsOf(record) });
  if (stored.type !== "message" || record.type === "message") return;
  // Each session that holds the record counts one message less.
  await run(
    `UPDATE ${schema}.sessions s SET message_count = s.message_count - 1,
       redacted_messages = coalesce(s.redacted_messages, '{}') || $2::bigint
     WHERE (s.session_no = $1 AND s.last_seq >= $2 OR s.base_nos @> ARRAY[$1::bigint] AND EXISTS (
       SELECT FROM unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq) WHERE b.no = $1 AND b.to_seq >= $2))${layout.and("s", "$3")}`,
    [sessionNo, seq, ...tenant],
  );
}

/** Prepares a redacted record for storage: the columns hold the four fields that every record has, and `fields` the rest. */
function preparedOf({ record, text, side, tsMs, source }: LinkedRecord): Parameters<typeof contentColumns>[2] {
  const { type, id, parentId, timestamp, ...fields } = record;
  if (serializeRecord(record) !== text)
    throw refused("INTERNAL", `What replaces ${quote(id)} is not its own record.`, { id });
  return {
    id,
    isIdGiven: true,
    parentId,
    type,
    side,
    timestamp,
    tsMs,
    fields,
    fieldsText: serializeRecord(fields),
    source,
    isSourceCanonical: false,
  };
}

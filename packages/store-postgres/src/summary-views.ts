import type { Layout } from "./layout.ts";
import { ownNamesInside } from "./statement-settings.ts";

/**
 * Creates views of compactions and checkpoints for people and programs that query the database. This package does not
 * read them. A view checks rights as its caller from PostgreSQL 15 on, so it shows only what row security lets the
 * caller read. PostgreSQL 14 gets no views.
 */
export function summaryViews(schema: string, layout: Layout, isDistributed: boolean): string {
  const reads = isDistributed ? readsOfShards(schema) : readsOfFunctions(schema, layout);
  return `
${reads.functions}
DO $views$
BEGIN
  IF current_setting('server_version_num')::integer < 150000 THEN RETURN; END IF;
  EXECUTE $view$${compactions(schema, layout, reads)}$view$;
  EXECUTE $view$${checkpoints(schema, layout, reads)}$view$;
END $views$;
`;
}

/** States how the views read what is not in a column. */
interface SummaryReads {
  readonly functions: string;
  /** Joins the payload of a record `r`, where no function reads it. */
  readonly payload: string;
  /** Returns the columns `data`, behind SELECT, of the content of `r`. */
  readonly content: string;
  /** Returns the newest better summary of the compaction `r`, or NULL. */
  readonly betterSummary: string;
  readonly hasRetry: string;
}

function readsOfFunctions(schema: string, layout: Layout): SummaryReads {
  const tenant = layout.first("s.tenant");
  return {
    functions: jsonFunctions(schema, layout),
    payload: "",
    content: `${schema}.record_json_1(${layout.first("r.tenant")}r.session_no, r.seq) AS data`,
    betterSummary: `${schema}.better_summary_1(${tenant}s.session_no, r.seq, r.id)`,
    hasRetry: `${schema}.has_retry_1(${tenant}s.session_no, r.id)`,
  };
}

/**
 * A function cannot read tables on a node of Citus, so the views read the columns with contents. These columns were
 * never sampled there, and keep their type. Citus passes the functions on because they are immutable.
 */
function readsOfShards(schema: string): SummaryReads {
  const json = (row: string, payload: string): string =>
    `${schema}.content_json_1(${row}.rest, ${row}.form, ${payload}.content)`;
  const payload = (row: string, name: string): string =>
    `LEFT JOIN ${schema}.payloads ${name} ON ${name}.session_no = ${row}.session_no AND ${name}.hash = ${row}.rest_hash AND ${name}.tenant = ${row}.tenant`;
  return {
    functions: `${jsonOf(schema)}
CREATE FUNCTION ${schema}.content_json_1(p_rest text, p_form smallint, p_content bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ${ownNamesInside} AS $content$
DECLARE
  v_text text;
BEGIN
  v_text := coalesce(convert_from(p_content, 'UTF8'), p_rest);
  -- 0: the whole line. Else the line from its timestamp on.
  IF p_form IS DISTINCT FROM 0 THEN v_text := '{' || v_text; END IF;
  RETURN v_text::jsonb;
EXCEPTION WHEN OTHERS THEN RETURN NULL;
END $content$;`,
    payload: payload("r", "p"),
    content: `${json("r", "p")} AS data`,
    betterSummary: `(SELECT n.data #>> '{data,summary}' FROM (
      SELECT n.seq, ${json("n", "q")} AS data FROM ${schema}.records n ${payload("n", "q")}
      WHERE n.session_no = s.session_no AND n.tenant = s.tenant AND n.seq > r.seq AND n.type = 'custom' OFFSET 0) n
    WHERE n.data #>> '{data,kind}' = 'summary-superseded' AND n.data #>> '{data,summaryId}' = r.id
    ORDER BY n.seq DESC LIMIT 1)`,
    hasRetry: `coalesce(${schema}.json_of_1(s.entry_values[array_position(s.entry_names, '"summaryRetries"')]) ? r.id, false)`,
  };
}

function jsonOf(schema: string): string {
  return `
CREATE FUNCTION ${schema}.json_of_1(p_text text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ${ownNamesInside} AS $json$
BEGIN
  RETURN p_text::jsonb;
EXCEPTION WHEN OTHERS THEN RETURN NULL;
END $json$;`;
}

/**
 * Creates functions that return a text as JSON and the content of a record. The result is null under a codec, and for
 * text that jsonb cannot hold (a NUL, a lone surrogate). One unreadable record must not end a query about all of them.
 * The functions run with the rights of their caller. Their bodies are texts, so that no view depends on the columns
 * with contents. Row security gives those columns their type again to remove samples, and PostgreSQL refuses that for a
 * column of a view.
 */
function jsonFunctions(schema: string, layout: Layout): string {
  return `${jsonOf(schema)}
CREATE FUNCTION ${schema}.record_json_1(${layout.first("p_tenant bigint")}p_session_no bigint, p_seq bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE ${ownNamesInside} AS $record$
DECLARE
  v_text text;
  v_form smallint;
  v_hash bytea;
BEGIN
  SELECT r.rest, r.form, r.rest_hash INTO v_text, v_form, v_hash
    FROM ${schema}.records r WHERE r.session_no = p_session_no AND r.seq = p_seq${layout.and("r", "p_tenant")};
  IF v_hash IS NOT NULL THEN
    SELECT convert_from(p.content, 'UTF8') INTO v_text
      FROM ${schema}.payloads p WHERE p.session_no = p_session_no AND p.hash = v_hash${layout.and("p", "p_tenant")};
  END IF;
  -- 0: the whole line. Else the line from its timestamp on.
  IF v_form IS DISTINCT FROM 0 THEN v_text := '{' || v_text; END IF;
  RETURN v_text::jsonb;
EXCEPTION WHEN OTHERS THEN RETURN NULL;
END $record$;
CREATE FUNCTION ${schema}.better_summary_1(${layout.first("p_tenant bigint")}p_session_no bigint, p_seq bigint, p_id text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE ${ownNamesInside} AS $better$
BEGIN
  RETURN (SELECT o.data #>> '{data,summary}'
    FROM ${schema}.records n CROSS JOIN LATERAL (SELECT ${schema}.record_json_1(${layout.first("p_tenant")}n.session_no, n.seq) AS data OFFSET 0) o
    WHERE n.session_no = p_session_no AND n.seq > p_seq${layout.and("n", "p_tenant")} AND n.type = 'custom'
      AND o.data #>> '{data,kind}' = 'summary-superseded' AND o.data #>> '{data,summaryId}' = p_id
    ORDER BY n.seq DESC LIMIT 1);
END $better$;
CREATE FUNCTION ${schema}.has_retry_1(${layout.first("p_tenant bigint")}p_session_no bigint, p_id text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE ${ownNamesInside} AS $retry$
BEGIN
  RETURN coalesce((SELECT ${schema}.json_of_1(s.entry_values[array_position(s.entry_names, '"summaryRetries"')]) ? p_id
    FROM ${schema}.sessions s WHERE s.session_no = p_session_no${layout.and("s", "p_tenant")}), false);
END $retry$;`;
}

/**
 * Finds the records of a type in every session, including the records that a fork shares. OFFSET 0 keeps PostgreSQL
 * from reading the content again for every column, and a condition on the session still reaches its index.
 */
function recordsOf(schema: string, layout: Layout, reads: SummaryReads, type: string): string {
  return `FROM ${schema}.sessions s
CROSS JOIN LATERAL (
  SELECT u.no, coalesce(lag(u.to_seq) OVER (ORDER BY u.place), 0) AS from_seq, u.to_seq
  FROM unnest(s.base_nos || s.session_no, s.base_to_seqs || s.last_seq) WITH ORDINALITY AS u (no, to_seq, place)
) b
JOIN ${schema}.records r ON r.session_no = b.no AND r.seq > b.from_seq AND r.seq <= b.to_seq${layout.and("r", "s.tenant")}${reads.payload === "" ? "" : `\n${reads.payload}`}
CROSS JOIN LATERAL (SELECT ${reads.content} OFFSET 0) o
WHERE r.type = '${type}'`;
}

const placeBefore = `r.id, s.key AS session_key, coalesce(r.ts_ms, r.stored_at_ms) AS timestamp`;
const placeAfter = `o.data, r.seq, s.session_id, s.agent_id, s.namespace, s.archived`;

/** Reads a number of a record. The result is null if another program stored another type. */
function numberAt(path: string): string {
  return `CASE WHEN jsonb_typeof(${path}) = 'number' THEN (${path})::numeric END`;
}

/**
 * A compaction keeps `needsRetry` for ever, because records do not change. The entry states the open retries: a
 * successful retry removes the id from `summaryRetries` in the same commit. An import keeps `needsSummaryRetry`. A
 * later, better summary is a note about the compaction, and the view shows the newest one.
 */
function compactions(schema: string, layout: Layout, reads: SummaryReads): string {
  return `
CREATE VIEW ${schema}.compactions WITH (security_invoker = true) AS
SELECT ${placeBefore},
  coalesce(${reads.betterSummary}, o.data ->> 'summary') AS summary,
  o.data ->> 'firstKeptEntryId' AS first_kept_entry_id,
  ${numberAt("o.data -> 'tokensBefore'")} AS tokens_before,
  CASE WHEN o.data IS NULL THEN NULL
    WHEN o.data @> '{"details": {"needsRetry": true}}' THEN ${reads.hasRetry}
    ELSE o.data @> '{"details": {"needsSummaryRetry": true}}' END AS needs_summary_retry,
  ${placeAfter}
${recordsOf(schema, layout, reads, "compaction")}`;
}

/** A checkpoint without `coversToId` covers everything before it. An import keeps `generatedBy`. */
function checkpoints(schema: string, layout: Layout, reads: SummaryReads): string {
  const field = (name: string): string => `o.data -> 'checkpoint' -> '${name}'`;
  const text = (name: string): string => `o.data -> 'checkpoint' ->> '${name}'`;
  return `
CREATE VIEW ${schema}.checkpoints WITH (security_invoker = true) AS
SELECT ${placeBefore}, ${text("summary")} AS summary,
  ${numberAt(field("tokensAtCheckpoint"))} AS tokens_at_checkpoint,
  ${numberAt(field("messageCountAtCheckpoint"))} AS message_count_at_checkpoint,
  ${field("topics")} AS topics, ${field("keyDecisions")} AS key_decisions, ${field("openQuestions")} AS open_questions,
  coalesce(${text("model")}, ${text("generatedBy")}) AS generated_by,
  coalesce(${text("coversToId")}, r.parent_id) AS covers_up_to,
  ${placeAfter}
${recordsOf(schema, layout, reads, "checkpoint")}`;
}

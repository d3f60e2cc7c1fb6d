import {
  answerFields,
  answerNames,
  batchFields,
  requestFields,
  requestOrder,
  type RequestField,
} from "./append-request.ts";
import { batchRecords } from "./batch-records.ts";
import type { Layout } from "./layout.ts";
import { rowClock } from "./store-clock.ts";
import { flush, ownNamesInside, setFlush } from "./statement-settings.ts";

/** A null becomes an empty text between two separators. */
function joined(columns: readonly string[]): string {
  return `concat(${columns.join(", E'\\x1f', ")})`;
}

/** Only a replay returns the fields behind these. */
const stateNames = answerNames.slice(0, answerNames.indexOf("updated_at_ms") + 1);
const giveAnswer = `RETURN ${joined(answerNames.map((name) => `v_${name}`))};`;
const giveState = `RETURN ${joined(stateNames.map((name) => (name === "verdict" || name === "now_ms" ? `v_${name}` : `s.${name}`)))};`;

/**
 * Creates the function that performs an append in one call, and therefore in one round trip. The plans of its
 * statements stay in the server's connection, also behind a pooler without prepared statements.
 *
 * The UPDATE of the session row excludes other writers and checks the conditions. After a lock wait PostgreSQL checks
 * them again on the newest row. The UPDATE feeds the INSERT. If it finds no row, the function locks and reads the row,
 * and core's rules find the reason on the client. Each statement in the function sees what was committed before it
 * began, so it finds the key of a twin that it waited for.
 *
 * If a twin commits between the lookup of the key and the UPDATE, the INSERT of the key fails. The server undoes the
 * whole call with TL001, and the client repeats it.
 */
export function appendFunction(schema: string, layout: Layout): string {
  const parameters = Object.entries(batchFields).map(([name, type]) => `p_${name} ${type}`);
  return `
CREATE FUNCTION ${schema}.append_1(${layout.first("p_tenant bigint")}p_path integer, p_request text[], ${parameters.join(", ")})
RETURNS text LANGUAGE plpgsql VOLATILE ${ownNamesInside} AS $append$
#variable_conflict use_column
DECLARE
  v_set text;
  v_text text;
BEGIN
  -- Assignments and not PERFORM, which would set up a query for each.
  v_set := set_config('lock_timeout', ${asked("lock_timeout")}, true);
${setFlush(asked("is_flushed"))}
  IF p_path = 1 THEN
    ${directPart(schema, layout, false)}
  ELSIF p_path = 2 THEN
    ${directPart(schema, layout, true)}
  END IF;
  IF v_text IS NOT NULL THEN RETURN v_text; END IF;
  ${otherwise(schema, layout)}
END $append$;
`;
}

/**
 * Handles every other append, and finds out why the direct statement changed no row. It is a block of its own because
 * its variables cost time whenever the block begins.
 */
function otherwise(schema: string, layout: Layout): string {
  const fields = Object.keys(requestFields).map(
    (name) => `p_${name} ${requestFields[name as RequestField]} := ${asked(name as RequestField)};`,
  );
  return `DECLARE
  ${fields.join("\n  ")}
  ${Object.entries(answerFields)
    .map(([name, type]) => `v_${name} ${type};`)
    .join("\n  ")}
  s record;
  k record;
  v_found boolean;
  v_claim_at integer := array_position(p_names, '"updatedAt"');
BEGIN
  IF p_joined_rests IS NOT NULL THEN p_rests := string_to_array(p_joined_rests, E'\\x1f'); END IF;
  FOR attempt IN 1..16 LOOP
    IF p_idem_key IS NOT NULL AND p_archive_id = '' THEN
      ${keyedPart(schema, layout)}
    END IF;
    IF p_archive_id = '' AND NOT p_is_refused THEN
      IF p_has_entry THEN
        ${updatePart(schema, layout, true)}
      ELSE
        ${updatePart(schema, layout, false)}
      END IF;
      IF FOUND THEN
        ${writePart(schema, layout)}
        v_verdict := 'APPLIED';
        v_now_ms := s.appended_at_ms;
        ${giveState}
      END IF;
    END IF;
    ${refusalPart(schema, layout)}
  END LOOP;
  RAISE EXCEPTION 'the session kept changing' USING ERRCODE = '55P03';
END;
`;
}

/**
 * Inserts the rows of a batch without imported lines. It reads `u`, the row that the UPDATE returned, because only that
 * row has the parent and the length of a record that follows the head.
 */
function ownRecords(schema: string, layout: Layout): string {
  return `INSERT INTO ${schema}.records (${layout.first("tenant")}session_no, seq, ts_ms, stored_at_ms, crc, bytes, message_number, side, id, parent_id,
        type, role, tool_name, rest)
      SELECT ${layout.first("p_tenant")}u.session_no, u.before_seq + r.place, r.ts_ms, u.appended_at_ms, r.crc,
        CASE WHEN r.parent_id = E'\\x01' THEN r.bytes + u.prev_head_bytes ELSE r.bytes END,
        u.messages_before + r.message_number, r.side, r.id,
        CASE WHEN r.parent_id = E'\\x01' THEN u.prev_head_id ELSE r.parent_id END, r.type, r.role, r.tool_name, r.rest
      FROM u CROSS JOIN unnest(p_ids, p_parents, p_types, p_sides, p_message_numbers, p_ts_ms, p_bytes, p_crcs, p_roles,
        p_tools, string_to_array(p_joined_rests, E'\\x1f')) WITH ORDINALITY
        AS r (id, parent_id, type, side, message_number, ts_ms, bytes, crc, role, tool_name, rest, place)`;
}

/** Serves most appends with one statement, which costs the same as an UPDATE and an INSERT written by hand. */
function directPart(schema: string, layout: Layout, isTurned: boolean): string {
  const now = rowClock(schema, "t");
  const given = ["session_no", "last_seq", "prev_head_id", "prev_head_bytes", "appended_at_ms"];
  const told = stateNames.slice(2).filter((name) => !given.includes(name));
  const [head, turn, rules] = isTurned
    ? [
        `head_id = CASE WHEN ${asked("is_head_set")} THEN ${asked("new_head")} ELSE t.head_id END,
          head_bytes = CASE WHEN ${asked("is_head_set")} THEN ${asked("new_head_bytes")} ELSE t.head_bytes END`,
        `\n          ${turnColumns(asked)},`,
        turnConditions("t", now, asked),
      ]
    : [
        `head_id = ${asked("new_head")}, head_bytes = ${asked("new_head_bytes")}`,
        "",
        `(t.turn_id IS NULL OR t.lease_until_ms <= ${now})`,
      ];
  return `WITH u AS (
        UPDATE ${schema}.sessions AS t SET
          last_seq = t.last_seq + cardinality(p_ids),
          prev_head_id = t.head_id,
          prev_head_bytes = t.head_bytes,
          ${head},
          window_seq = coalesce(${asked("window_from")}, t.window_seq),${turn}
          message_count = t.message_count + ${asked("message_count")},
          messages_ever = t.messages_ever + ${asked("message_count")},
          appended_at_ms = ${now},
          updated_at_ms = greatest(t.updated_at_ms, ${now})
        WHERE t.namespace = ${asked("namespace")} AND t.agent_id = ${asked("agent_id")} AND t.key = ${asked("key")}
          AND t.archive_id = ''${layout.and("t", "p_tenant")} AND ${rules}
        RETURNING ${[...given, ...told].map((name) => `t.${name}`).join(", ")},
          t.last_seq - cardinality(p_ids) AS before_seq, t.messages_ever - ${asked("message_count")} AS messages_before
      ), i AS (
      ${ownRecords(schema, layout)}
      )
      SELECT ${joined(["'APPLIED'", "u.appended_at_ms", ...stateNames.slice(2).map((name) => `u.${name}`)])} INTO v_text FROM u;`;
}

function refusalPart(schema: string, layout: Layout): string {
  return `-- Why not? The lock keeps the answer true while it is given, and tells whether it was only a matter of time.
    SELECT t.*, ${schema}.store_now_ms() AS now_ms INTO s FROM ${schema}.sessions t
      WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = p_archive_id${layout.and("t", "p_tenant")}
      FOR NO KEY UPDATE;
    v_found := FOUND;
    IF NOT v_found THEN
      -- A reset may have put another row in the place of the one that was waited for.
      PERFORM FROM ${schema}.sessions t
        WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = p_archive_id${layout.and("t", "p_tenant")};
      CONTINUE WHEN FOUND;
      RETURN NULL;
    END IF;
    IF p_idem_key IS NOT NULL AND p_archive_id = '' THEN
      -- The twin may have been committed since the key was looked at; then what it changed is no reason to refuse.
      PERFORM FROM ${schema}.keyed_appends a WHERE a.session_no = s.session_no AND a.key = p_idem_key${layout.and("a", "p_tenant")}
        AND NOT (s.keyed_next - a.number > 4096 AND a.at_ms < s.now_ms - 86400000);
      CONTINUE WHEN FOUND;
    END IF;
    -- Nothing speaks against it any more: a lease ran out, or a turn was closed, while the lock was waited for.
    CONTINUE WHEN p_archive_id = '' AND NOT p_is_refused AND ${conditions(schema, "s", "s.now_ms")};
    v_verdict := coalesce('ENTRY_' || ${excess(schema, "s")}, 'REFUSED');
    v_now_ms := s.now_ms;
    ${giveState}`;
}

/** Reads a field from the array of the function's parameter. */
function asked(name: RequestField): string {
  const text = `p_request[${requestOrder.indexOf(name) + 1}]`;
  if (requestFields[name] === "text") return text;
  return requestFields[name] === "boolean" ? `coalesce(${text}::boolean, false)` : `${text}::${requestFields[name]}`;
}

/** Reads a field in the block that declares the request as variables. */
function variable(name: RequestField): string {
  return `p_${name}`;
}

type Naming = (name: RequestField) => string;

/** Returns the rules that the contract sets for every append, as conditions on the session row. */
function turnConditions(row: string, now: string, of: Naming): string {
  return `(NOT ${of("has_expect")} OR ${row}.head_id IS NOT DISTINCT FROM ${of("expected_head")})
        AND CASE
          WHEN ${of("turn")} IS NULL THEN NOT ${of("is_head_set")} OR ${row}.turn_id IS NULL OR ${row}.lease_until_ms <= ${now}
          WHEN ${of("turn")} = 'open'
            THEN (${row}.turn_id IS NULL OR ${row}.lease_until_ms <= ${now}) AND ${of("turn_fence")} = ${row}.fence + 1
          ELSE ${of("turn_fence")} = ${row}.fence AND ${row}.turn_id IS NOT NULL END`;
}

/** Returns the name of the limit that the patched entry would exceed, or NULL. */
function excess(schema: string, row: string): string {
  return `${schema}.patch_excess_1(${row}.entry_names, ${row}.entry_values, p_names, p_vals)`;
}

/** Adds the conditions on the session id, the revision, the claimed time and the size of the entry. */
function conditions(schema: string, row: string, now: string): string {
  return `${turnConditions(row, now, variable)}
        AND (p_for_session_id IS NULL OR ${row}.session_id = p_for_session_id)
        AND (p_for_revision IS NULL OR ${row}.revision = p_for_revision)
        -- A time that is not believed is replaced in the entry, which only the client can code.
        AND NOT (p_coded_entry IS NOT NULL AND coalesce(p_claimed_ms > ${now} + 300000, false))
        AND ${excess(schema, row)} IS NULL`;
}

/**
 * Returns the result of the first append with this key, or IDEMPOTENCY_EXPIRED. The numbers equal core's
 * `defaultIdempotency`.
 */
function keyedPart(schema: string, layout: Layout): string {
  return `SELECT t.session_no, t.session_id, t.keyed_next, t.keyed_horizon_ms INTO s FROM ${schema}.sessions t
        WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = ''${layout.and("t", "p_tenant")};
      IF FOUND THEN
        v_now_ms := ${schema}.store_now_ms();
        SELECT a.digest, a.number, a.at_ms, a.first_seq, a.last_seq, a.durability, a.revision, a.head_id, a.window_seq,
          a.fence, a.turn_id, a.turn_owner, a.lease_until_ms INTO k
          FROM ${schema}.keyed_appends a WHERE a.session_no = s.session_no AND a.key = p_idem_key${layout.and("a", "p_tenant")};
        IF k.digest IS NOT NULL AND NOT (s.keyed_next - k.number > 4096 AND k.at_ms < v_now_ms - 86400000) THEN
          v_session_id := s.session_id;
          IF k.digest <> p_digest THEN
            v_verdict := 'IDEMPOTENCY_MISMATCH';
            ${giveAnswer}
          END IF;
          v_verdict := 'REPLAYED';
          v_now_ms := k.at_ms; v_session_no := s.session_no; v_revision := k.revision; v_last_seq := k.last_seq;
          v_head_id := k.head_id; v_window_seq := k.window_seq; v_fence := k.fence; v_turn_id := k.turn_id;
          v_turn_owner := k.turn_owner; v_lease_until_ms := k.lease_until_ms; v_first_durability := k.durability;
          SELECT json_agg(r.id ORDER BY r.seq), json_agg(r.parent_id ORDER BY r.seq), json_agg(r.side ORDER BY r.seq),
            json_agg(r.ts_ms ORDER BY r.seq), min(r.stored_at_ms)
            INTO v_first_ids, v_first_parents, v_first_sides, v_first_ts, v_first_at
            FROM ${schema}.records r
            WHERE r.session_no = s.session_no AND r.seq >= k.first_seq AND r.seq <= k.last_seq${layout.and("r", "p_tenant")};
${replayFlush(schema, layout)}
          ${giveAnswer}
        END IF;
        IF p_made_at_ms <= greatest(s.keyed_horizon_ms, k.at_ms) THEN
          v_verdict := 'IDEMPOTENCY_EXPIRED';
          ${giveAnswer}
        END IF;
        IF k.digest IS NOT NULL THEN
          DELETE FROM ${schema}.keyed_appends a
            WHERE a.session_no = s.session_no AND a.key = p_idem_key AND a.number = k.number${layout.and("a", "p_tenant")};
        END IF;
      END IF;`;
}

/**
 * The commit of the first append may have been cut off before its flush, or before a standby confirmed it. The commit
 * of this call waits for both. PostgreSQL flushes no commit that wrote nothing, so the call locks the key's row, which
 * writes to the log.
 */
function replayFlush(schema: string, layout: Layout): string {
  return `          IF p_is_flushed OR k.durability = 'disk' THEN
            ${flush}
            PERFORM FROM ${schema}.keyed_appends a
              WHERE a.session_no = s.session_no AND a.key = p_idem_key${layout.and("a", "p_tenant")} FOR NO KEY UPDATE;
          END IF;`;
}

/** Returns how opening, renewing or closing a turn changes the session row. */
function turnColumns(of: Naming): string {
  // Citus rewrites the statement, and then takes a parameter directly behind CASE for a boolean. Therefore the
  // condition is spelled out.
  const named = (column: "turn_id" | "turn_owner"): string =>
    `CASE WHEN ${of("turn")} = 'open' THEN ${of(column)} WHEN ${of("turn")} = 'close' THEN NULL ELSE t.${column} END`;
  return `fence = CASE WHEN ${of("turn")} = 'open' THEN ${of("turn_fence")}::bigint ELSE t.fence END,
          turn_id = ${named("turn_id")},
          turn_owner = ${named("turn_owner")},
          lease_until_ms = CASE WHEN ${of("turn")} IN ('open', 'renew') THEN ${of("turn_until")}
            WHEN ${of("turn")} = 'close' THEN NULL ELSE t.lease_until_ms END`;
}

function updatePart(schema: string, layout: Layout, hasEntry: boolean): string {
  const now = rowClock(schema, "t");
  const entry = `,
          revision = t.revision + 1,
          entry_names = ${schema}.patched_names(t.entry_names, t.entry_values, p_names, p_vals),
          entry_values = ${schema}.patched_values(t.entry_names, t.entry_values, p_names, CASE
            WHEN p_claimed_ms > ${now} + 300000
            THEN p_vals[:v_claim_at - 1] || greatest(t.updated_at_ms, ${now})::text || p_vals[v_claim_at + 1:]
            ELSE p_vals END),
          entry_coded = p_coded_entry,
          source_digest = CASE WHEN p_sets_source THEN p_source_digest ELSE t.source_digest END`;
  return `UPDATE ${schema}.sessions AS t SET
          last_seq = t.last_seq + p_record_count,
          prev_head_id = t.head_id,
          prev_head_bytes = t.head_bytes,
          head_id = CASE WHEN p_is_head_set THEN p_new_head ELSE t.head_id END,
          head_bytes = CASE WHEN p_is_head_set THEN p_new_head_bytes ELSE t.head_bytes END,
          window_seq = coalesce(p_window_from, t.window_seq),
          ${turnColumns(variable)},
          message_count = t.message_count + p_message_count,
          messages_ever = t.messages_ever + p_message_count,
          keyed_next = t.keyed_next + CASE WHEN p_idem_key IS NULL THEN 0 ELSE 1 END,
          keyed_rows = t.keyed_rows + CASE WHEN p_idem_key IS NULL THEN 0 ELSE 1 END,
          -- Before the next one in the table, so that the time of an append is never after that of the activity.
          appended_at_ms = ${now},
          updated_at_ms = greatest(t.updated_at_ms, CASE WHEN p_is_active THEN ${now} END,
            CASE WHEN p_claimed_ms > ${now} + 300000 THEN ${now}
            ELSE p_claimed_ms::bigint END)${hasEntry ? entry : ""}
        WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = ''${layout.and("t", "p_tenant")}
        AND ${conditions(schema, "t", now)}
        RETURNING t.session_no, t.session_id, t.revision, t.last_seq, t.head_id, t.prev_head_id, t.prev_head_bytes, t.window_seq,
          t.fence, t.turn_id, t.turn_owner, t.lease_until_ms, t.messages_ever, t.keyed_next, t.keyed_rows, t.keyed_sweep_at,
          t.appended_at_ms, t.updated_at_ms, t.base_nos, t.base_to_seqs INTO s;`;
}

function writePart(schema: string, layout: Layout): string {
  return `IF p_given_ids IS NOT NULL AND s.base_nos IS NOT NULL THEN
          -- Ids are taken in what a fork shares, too; its own are told by the unique index.
          PERFORM FROM unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq)
            JOIN ${schema}.records r ON r.session_no = b.no AND r.id = ANY (p_given_ids) AND r.seq <= b.to_seq${layout.and("r", "p_tenant")};
          IF FOUND THEN RAISE EXCEPTION 'a record id is taken' USING ERRCODE = 'TL002'; END IF;
        END IF;
        IF p_record_count > 0 THEN
          ${batchRecords(schema, layout)}
          IF p_payloads IS NOT NULL THEN
            INSERT INTO ${schema}.payloads (${layout.first("tenant")}session_no, hash, content)
            SELECT ${layout.first("p_tenant")}s.session_no, b.hash, b.content FROM unnest(p_payload_hashes, p_payloads) AS b (hash, content)
            ON CONFLICT DO NOTHING;
          END IF;
          IF p_file_ids IS NOT NULL THEN
            -- Whoever deletes one of these files waits for this append, and then sees that it refers to the file.
            PERFORM FROM ${schema}.files f WHERE f.namespace = p_namespace AND f.agent_id = p_agent_id
              AND lower(f.file_id) = ANY (p_file_ids)${layout.and("f", "p_tenant")} ORDER BY lower(f.file_id) FOR KEY SHARE;
            INSERT INTO ${schema}.file_references (${layout.first("tenant")}session_no, seq, place, namespace, agent_id, file_id)
            SELECT ${layout.first("p_tenant")}s.session_no, s.last_seq - p_record_count + u.record, u.place, p_namespace, p_agent_id, u.file_id
            FROM unnest(p_file_ids, p_file_records) WITH ORDINALITY AS u (file_id, record, place);
          END IF;
        END IF;
        IF p_idem_key IS NOT NULL THEN
          INSERT INTO ${schema}.keyed_appends (${layout.first("tenant")}session_no, key, digest, number, at_ms, first_seq, last_seq, durability, revision,
            head_id, window_seq, fence, turn_id, turn_owner, lease_until_ms)
          VALUES (${layout.first("p_tenant")}s.session_no, p_idem_key, p_digest, s.keyed_next - 1, s.appended_at_ms, s.last_seq - p_record_count + 1,
            s.last_seq, p_durability, s.revision, s.head_id, s.window_seq, s.fence, s.turn_id, s.turn_owner, s.lease_until_ms)
          ON CONFLICT DO NOTHING;
          IF NOT FOUND THEN RAISE EXCEPTION 'the key was used meanwhile' USING ERRCODE = 'TL001'; END IF;
          IF s.keyed_rows >= s.keyed_sweep_at THEN
            -- The next sweep comes when a quarter has been added, so that the work stays in proportion.
            WITH swept AS (
              DELETE FROM ${schema}.keyed_appends a WHERE a.session_no = s.session_no${layout.and("a", "p_tenant")}
                AND a.number < s.keyed_next - 4096 AND a.at_ms < s.appended_at_ms - 86400000 RETURNING a.at_ms
            ), counted AS (SELECT count(*)::integer AS rows, max(at_ms) AS newest FROM swept)
            UPDATE ${schema}.sessions AS t SET keyed_rows = t.keyed_rows - c.rows,
              keyed_sweep_at = greatest(t.keyed_rows - c.rows, 4096) * 5 / 4,
              keyed_horizon_ms = greatest(t.keyed_horizon_ms, c.newest)
            FROM counted c WHERE t.session_no = s.session_no${layout.and("t", "p_tenant")};
          END IF;
        END IF;`;
}

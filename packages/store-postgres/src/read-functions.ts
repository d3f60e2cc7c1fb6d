import type { Layout } from "./layout.ts";
import { ownNamesInside } from "./statement-settings.ts";

/** Lists the columns that a read needs for every kind of payload. */
const headColumns = `r.seq, r.id, r.parent_id, r.type, r.side, r.ts_ms, r.stored_at_ms, r.bytes, r.crc`;

const headTypes = `seq bigint, id text, parent_id text, type text, side boolean, ts_ms bigint, stored_at_ms bigint,
  bytes integer, crc bigint`;

/**
 * Creates the function that returns one page of records and the session's last seq in one call. `p_content` is 0 for
 * columns only, 1 for the record, and 2 for the imported line. `p_session_no` is the session of the first page, because
 * a reset between two pages must not change the session. With `p_is_window` the page begins at the boundary that the
 * last writer stated.
 *
 * An existing session yields at least one row, whose `seq` is null for an empty page. A page ends when it holds
 * `p_page_bytes`, with at least one record. For a shared record `base_id` is the session id that its payload is bound
 * to.
 */
export function readPageFunction(schema: string, layout: Layout): string {
  return `
CREATE FUNCTION ${schema}.read_page_1(${layout.first("p_tenant bigint")}p_namespace text, p_agent_id text, p_key text, p_archive_id text, p_session_no bigint,
  p_is_window boolean, p_after bigint, p_before bigint, p_is_ascending boolean, p_limit integer, p_page_bytes bigint,
  p_content integer)
RETURNS TABLE (session_no bigint, session_id text, session_last_seq bigint, base_id text, ${headTypes},
  role text, tool_name text, form smallint, rest text, coded bytea, source bytea, rest_payload bytea, source_payload bytea)
LANGUAGE plpgsql STABLE ${ownNamesInside} AS $read$
#variable_conflict use_column
DECLARE
  s record;
  v_after bigint := p_after;
BEGIN
  IF p_session_no IS NULL THEN
    SELECT t.session_no, t.session_id, t.last_seq, t.window_seq, t.base_nos, t.base_to_seqs, t.base_ids INTO s
      FROM ${schema}.sessions t
      WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = p_archive_id${layout.and("t", "p_tenant")};
  ELSE
    SELECT t.session_no, t.session_id, t.last_seq, t.window_seq, t.base_nos, t.base_to_seqs, t.base_ids INTO s
      FROM ${schema}.sessions t WHERE t.session_no = p_session_no${layout.and("t", "p_tenant")};
  END IF;
  IF NOT FOUND THEN RETURN; END IF;
  IF p_is_window THEN v_after := greatest(v_after, coalesce(s.window_seq, 1) - 1); END IF;
  -- A stable function: everything in here is read at one moment.
  IF s.base_nos IS NULL THEN
    IF p_is_ascending THEN
      RETURN QUERY ${page("ASC", ownRecords(schema, layout, "ASC"))};
    ELSE
      RETURN QUERY ${page("DESC", ownRecords(schema, layout, "DESC"))};
    END IF;
  ELSE
    IF p_is_ascending THEN
      RETURN QUERY ${page("ASC", sharedRecords(schema, layout, "ASC"))};
    ELSE
      RETURN QUERY ${page("DESC", sharedRecords(schema, layout, "DESC"))};
    END IF;
  END IF;
  IF NOT FOUND THEN
    session_no := s.session_no; session_id := s.session_id; session_last_seq := s.last_seq;
    RETURN NEXT;
  END IF;
END $read$;
`;

  function page(order: "ASC" | "DESC", from: string): string {
    return `SELECT s.session_no, s.session_id, s.last_seq, r.base_id, ${headColumns}, r.role, r.tool_name, r.form,
        CASE WHEN p_content > 0 THEN r.rest END, CASE WHEN p_content > 0 THEN r.coded END,
        CASE WHEN p_content > 1 THEN r.source END,
        CASE WHEN p_content > 0 AND r.rest_hash IS NOT NULL THEN
          (SELECT b.content FROM ${schema}.payloads b WHERE b.session_no = r.at_no AND b.hash = r.rest_hash${layout.and("b", "p_tenant")}) END,
        CASE WHEN p_content > 1 AND r.source_hash IS NOT NULL THEN
          (SELECT b.content FROM ${schema}.payloads b WHERE b.session_no = r.at_no AND b.hash = r.source_hash${layout.and("b", "p_tenant")}) END
      FROM (SELECT q.*, sum(q.bytes) OVER (ORDER BY q.seq ${order} ROWS UNBOUNDED PRECEDING) - q.bytes AS bytes_before
        FROM (${from}) q) r
      WHERE r.bytes_before < p_page_bytes ORDER BY r.seq ${order}`;
  }
}

function ownRecords(schema: string, layout: Layout, order: "ASC" | "DESC"): string {
  return `SELECT o.*, o.session_no AS at_no, NULL::text AS base_id FROM ${schema}.records o
          WHERE o.session_no = s.session_no AND o.seq > v_after AND o.seq < least(p_before, s.last_seq + 1)${layout.and("o", "p_tenant")}
          ORDER BY o.seq ${order} LIMIT p_limit`;
}

/** Reads the records of a fork: those of each base up to its last shared seq, then the fork's own. */
function sharedRecords(schema: string, layout: Layout, order: "ASC" | "DESC"): string {
  return `SELECT o.*, o.session_no AS at_no, b.id AS base_id
          FROM (
            SELECT u.no, u.id, coalesce(lag(u.to_seq) OVER (ORDER BY u.place), 0) AS from_seq, u.to_seq
            FROM unnest(s.base_nos || s.session_no, s.base_ids || NULL::text, s.base_to_seqs || s.last_seq)
              WITH ORDINALITY AS u (no, id, to_seq, place)
          ) b CROSS JOIN LATERAL (
            SELECT * FROM ${schema}.records r
            WHERE r.session_no = b.no AND r.seq > greatest(v_after, b.from_seq) AND r.seq < least(p_before, b.to_seq + 1)${layout.and("r", "p_tenant")}
            ORDER BY r.seq ${order} LIMIT p_limit
          ) o
          ORDER BY o.seq ${order} LIMIT p_limit`;
}

/**
 * Creates the function that returns the state of a session and the first page of its window, at one moment. `state`
 * comes with the first row only, because an entry may be large. Citus cannot join a session row on another node with
 * the rows of a function, so this function returns both.
 */
export function readWindowFunction(schema: string, layout: Layout): string {
  return `
CREATE FUNCTION ${schema}.read_window_1(${layout.first("p_tenant bigint")}p_namespace text, p_agent_id text, p_key text, p_archive_id text,
  p_limit integer, p_page_bytes bigint)
RETURNS TABLE (state ${schema}.sessions, session_no bigint, session_id text, session_last_seq bigint, base_id text, ${headTypes},
  role text, tool_name text, form smallint, rest text, coded bytea, source bytea, rest_payload bytea, source_payload bytea)
LANGUAGE plpgsql STABLE ${ownNamesInside} AS $window$
#variable_conflict use_column
DECLARE
  s ${schema}.sessions;
BEGIN
  SELECT t.* INTO s FROM ${schema}.sessions t
    WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = p_archive_id${layout.and("t", "p_tenant")};
  IF NOT FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT CASE WHEN r.ordinality = 1 THEN s END, r.session_no, r.session_id, r.session_last_seq, r.base_id,
      r.seq, r.id, r.parent_id, r.type, r.side, r.ts_ms, r.stored_at_ms, r.bytes, r.crc, r.role, r.tool_name, r.form, r.rest,
      r.coded, r.source, r.rest_payload, r.source_payload
    FROM ${schema}.read_page_1(${layout.first("p_tenant")}p_namespace, p_agent_id, p_key, p_archive_id, s.session_no, true, 0,
      ${Number.MAX_SAFE_INTEGER}, true, p_limit, p_page_bytes, 1) WITH ORDINALITY r;
END $window$;
`;
}

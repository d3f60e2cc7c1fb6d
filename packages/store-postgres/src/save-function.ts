import type { Layout } from "./layout.ts";
import { ownNamesInside, setFlush } from "./statement-settings.ts";

/** Lists the columns that `load`, `save` and `list` read. */
export const stateColumns: readonly string[] = [
  "session_no",
  "namespace",
  "agent_id",
  "key",
  "archive_id",
  "session_id",
  "revision",
  "last_seq",
  "head_id",
  "window_seq",
  "fence",
  "turn_id",
  "turn_owner",
  "lease_until_ms",
  "message_count",
  "created_at_ms",
  "updated_at_ms",
  "entry_names",
  "entry_values",
  "entry_coded",
];

/**
 * Creates the function that replaces the entry at a given revision, begins a session, or begins the next session of a
 * key. It takes one call and one round trip. A reset gives the old row its archive address and inserts a new row. A
 * caller that waited for the old row therefore looks the key up again. The verdict SAVED comes with the new row. Every
 * other verdict comes with the row that caused it, if there is one.
 */
export function saveFunction(schema: string, layout: Layout): string {
  return `
CREATE FUNCTION ${schema}.save_1(${layout.first("p_tenant bigint")}p_namespace text, p_agent_id text, p_key text, p_archive_id text, p_is_flushed boolean,
  p_lock_timeout text, p_revision bigint, p_session_id text, p_are_ids_valid boolean, p_names text[], p_vals text[],
  p_coded bytea, p_claimed_ms double precision, p_source_digest text)
RETURNS TABLE (verdict text, now_ms bigint, holder text, is_new boolean, was_clamped boolean, archived_id text,
  state ${schema}.sessions) LANGUAGE plpgsql VOLATILE ${ownNamesInside} AS $save$
#variable_conflict use_column
DECLARE
  s ${schema}.sessions;
  v_updated bigint;
  v_holder text;
  v_at integer := array_position(p_names, '"updatedAt"');
BEGIN
  PERFORM set_config('lock_timeout', p_lock_timeout, true);
${setFlush("p_is_flushed")}
  FOR attempt IN 1..16 LOOP
    SELECT t.* INTO s FROM ${schema}.sessions t
      WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = p_archive_id${layout.and("t", "p_tenant")}
      FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      PERFORM FROM ${schema}.sessions t
        WHERE t.namespace = p_namespace AND t.agent_id = p_agent_id AND t.key = p_key AND t.archive_id = p_archive_id${layout.and("t", "p_tenant")};
      CONTINUE WHEN FOUND;
      s := NULL;
    END IF;
    now_ms := ${schema}.store_now_ms();
    is_new := s.session_no IS NULL OR s.session_id <> p_session_id;
    state := s;
    IF p_archive_id <> '' OR s.revision IS DISTINCT FROM p_revision THEN
      verdict := 'REFUSED';
      RETURN NEXT;
      RETURN;
    END IF;
    ${timePart}
    IF NOT is_new THEN
      UPDATE ${schema}.sessions AS t SET revision = t.revision + 1, updated_at_ms = v_updated, entry_names = p_names,
        entry_values = p_vals, entry_coded = p_coded, source_digest = p_source_digest WHERE t.session_no = s.session_no${layout.and("t", "p_tenant")} RETURNING t.* INTO state;
      verdict := 'SAVED';
      RETURN NEXT;
      RETURN;
    END IF;
    ${beginPart(schema, layout)}
  END LOOP;
  RAISE EXCEPTION 'the session kept changing' USING ERRCODE = '55P03';
END $save$;
`;
}

/** The time of activity never decreases, and is at most five minutes ahead of the database's clock. */
const timePart = `was_clamped := coalesce(p_claimed_ms > now_ms + 300000, false);
    v_updated := CASE WHEN was_clamped OR (is_new AND p_claimed_ms IS NULL) THEN now_ms
      ELSE greatest(p_claimed_ms, 0)::bigint END;
    IF NOT is_new THEN v_updated := greatest(v_updated, s.updated_at_ms); END IF;
    IF was_clamped THEN
      IF p_coded IS NOT NULL THEN
        -- Only the client can code the entry with the time that is believed.
        verdict := 'CLAMPED';
        RETURN NEXT;
        RETURN;
      END IF;
      p_vals := p_vals[:v_at - 1] || v_updated::text || p_vals[v_at + 1:];
    END IF;`;

/** Begins a new session under the key, and archives the one before it. */
function beginPart(schema: string, layout: Layout): string {
  return `IF NOT p_are_ids_valid THEN
      verdict := 'IDS_INVALID';
      RETURN NEXT;
      RETURN;
    END IF;
    SELECT a.agent_id INTO v_holder FROM ${schema}.agents a WHERE a.namespace = p_namespace AND a.folded_id = lower(p_agent_id)${layout.and("a", "p_tenant")};
    IF NOT FOUND THEN
      INSERT INTO ${schema}.agents AS a (${layout.first("tenant")}namespace, folded_id, agent_id) VALUES (${layout.first("p_tenant")}p_namespace, lower(p_agent_id), p_agent_id)
        ON CONFLICT (${layout.first("tenant")}namespace, folded_id) DO UPDATE SET agent_id = a.agent_id RETURNING a.agent_id INTO v_holder;
    END IF;
    IF v_holder <> p_agent_id THEN
      verdict := 'AGENT_TAKEN';
      holder := v_holder;
      RETURN NEXT;
      RETURN;
    END IF;
    SELECT t.session_id INTO v_holder FROM ${schema}.sessions t
      WHERE lower(t.session_id) = lower(p_session_id) AND t.agent_id = p_agent_id AND t.namespace = p_namespace${layout.and("t", "p_tenant")};
    IF FOUND THEN
      verdict := 'ID_TAKEN';
      holder := v_holder;
      RETURN NEXT;
      RETURN;
    END IF;
    IF s.session_no IS NOT NULL THEN
      UPDATE ${schema}.sessions AS t SET archive_id = t.session_id WHERE t.session_no = s.session_no${layout.and("t", "p_tenant")};${dropPartial(schema, layout)}
      archived_id := s.session_id;
    END IF;
    INSERT INTO ${schema}.sessions AS t (${layout.first("tenant")}namespace, agent_id, key, archive_id, session_id, revision, created_at_ms,
      updated_at_ms, entry_names, entry_values, entry_coded, source_digest)
    VALUES (${layout.first("p_tenant")}p_namespace, p_agent_id, p_key, '', p_session_id,
      coalesce(s.revision, 0) + 1, now_ms, v_updated, p_names, p_vals, p_coded, p_source_digest)
    ON CONFLICT (${layout.first("tenant")}namespace, agent_id, key, archive_id) DO NOTHING RETURNING t.* INTO state;
    -- Somebody else was faster to create it: judge again.
    CONTINUE WHEN NOT FOUND;
    verdict := 'SAVED';
    RETURN NEXT;
    RETURN;`;
}

/** A trigger does this in the plain layout. */
function dropPartial(schema: string, layout: Layout): string {
  if (layout.name === "plain") return "";
  return `\n      DELETE FROM ${schema}.partials p WHERE p.session_no = s.session_no${layout.and("p", "p_tenant")};`;
}

/** Reads the session row from the answer of `save_1`. */
export const savedColumns: string = stateColumns.map((column) => `(f.state).${column}`).join(", ");

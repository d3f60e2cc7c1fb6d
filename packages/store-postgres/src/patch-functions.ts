import { maxEntryBytes, maxEntryMembers } from "@throughline/core/internal";
import { ownNamesInside } from "./statement-settings.ts";

/**
 * Creates the functions that apply a patch to an entry, in which a null removes a field. There are two because a
 * statement sets two columns. They are loops because a patch is short, and setting up a query would cost more.
 */
export function patchFunctions(schema: string): string {
  return ["names", "values"]
    .map(
      (column) => `
CREATE FUNCTION ${schema}.patched_${column}(old_names text[], old_values text[], new_names text[], new_values text[])
RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $patch$
DECLARE
  v_at integer;
BEGIN
  FOR i IN 1..coalesce(cardinality(new_names), 0) LOOP
    v_at := array_position(old_names, new_names[i]);
    IF new_values[i] IS NULL THEN
      IF v_at IS NOT NULL THEN
        old_names := old_names[:v_at - 1] || old_names[v_at + 1:];
        old_values := old_values[:v_at - 1] || old_values[v_at + 1:];
      END IF;
    ELSIF v_at IS NULL THEN
      old_names := old_names || new_names[i];
      old_values := old_values || new_values[i];
    ELSE
      old_values[v_at] := new_values[i];
    END IF;
  END LOOP;
  RETURN old_${column};
END $patch$;`,
    )
    .join("");
}

/**
 * Shorter arrays cannot hold too many members. A member has at least eight characters there, because quotes are
 * escaped.
 */
const surelyFewBytes = 8 * maxEntryMembers;

/**
 * Creates `entry_excess_1`, which returns the limit that an entry exceeds ('members' or 'bytes'), and `patch_excess_1`,
 * which does so for a patched entry. An entry that exceeds a limit already may still be patched. Names are counted in
 * the text, because no JSON function accepts every text that an entry may hold. A string follows an odd number of
 * quotation marks, and a colon after it makes it a name.
 */
export function boundFunctions(schema: string): string {
  return `
CREATE FUNCTION ${schema}.entry_excess_1(p_names text[], p_values text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ${ownNamesInside} AS $excess$
DECLARE
  v_text text;
  v_members bigint;
BEGIN
  SELECT string_agg(concat(f.name, ':', f.value), ',') INTO v_text FROM unnest(p_names, p_values) AS f (name, value);
  IF (length(v_text) - length(replace(v_text, '":', ''))) / 2 > ${maxEntryMembers} THEN
    SELECT count(DISTINCT s.part) INTO v_members FROM (
      SELECT t.part, t.place, lead(t.part) OVER (ORDER BY t.place) AS behind
      FROM unnest(string_to_array(
        replace(replace(v_text, repeat(chr(92), 2), chr(1)), concat(chr(92), '"'), chr(2)), '"')) WITH ORDINALITY AS t (part, place)) s
      WHERE s.place % 2 = 0 AND s.behind LIKE ':%';
    IF v_members > ${maxEntryMembers} THEN RETURN 'members'; END IF;
  END IF;
  -- The braces count, too.
  RETURN CASE WHEN octet_length(v_text) + 2 > ${maxEntryBytes} THEN 'bytes' END;
END $excess$;
CREATE FUNCTION ${schema}.patch_excess_1(p_old_names text[], p_old_values text[], p_names text[], p_values text[])
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $excess$
DECLARE
  v_excess text;
BEGIN
  IF p_names IS NULL OR octet_length(concat(p_old_names, p_old_values, p_names, p_values)) < ${surelyFewBytes} THEN
    RETURN NULL;
  END IF;
  v_excess := ${schema}.entry_excess_1(${schema}.patched_names(p_old_names, p_old_values, p_names, p_values),
    ${schema}.patched_values(p_old_names, p_old_values, p_names, p_values));
  IF v_excess IS NOT NULL AND ${schema}.entry_excess_1(p_old_names, p_old_values) IS NOT NULL THEN RETURN NULL; END IF;
  RETURN v_excess;
END $excess$;`;
}

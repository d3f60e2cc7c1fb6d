/**
 * An entry's fields after a patch: a value of null removes. Two functions, because a statement sets two columns, and loops,
 * because a patch is short and setting up a query costs more than going through it.
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

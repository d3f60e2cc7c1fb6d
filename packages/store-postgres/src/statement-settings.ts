/**
 * Makes unqualified names in a transaction refer to PostgreSQL's own objects, whatever the caller's search_path holds,
 * and makes an index return all matching rows.
 */
export const ownNamesOnly = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL gin_fuzzy_search_limit = 0";

/** Makes unqualified names in the body of a function refer to PostgreSQL's own objects. */
export const ownNamesInside = "SET search_path = pg_catalog, pg_temp";

/** With these settings of synchronous_commit a commit does not wait for the server's disk or its standbys. */
const weakCommits = "'off', 'local'";

/**
 * Makes the commit of the transaction wait for the server's disk and the configured standbys. It overrides a weaker
 * setting of a URL, a role, a database or a lent connection. A stronger setting stays.
 */
export const flushed: string = `pg_catalog.set_config('synchronous_commit',
    CASE WHEN pg_catalog.current_setting('synchronous_commit') IN (${weakCommits}) THEN 'on'
      ELSE pg_catalog.current_setting('synchronous_commit') END, true)`;

/**
 * Does the same in PL/pgSQL at run time. If the owner of the server has turned fsync off since the store was opened, no
 * write is durable, so the write is refused. `postgres-errors.ts` maps the code TL003.
 */
export const flush: string = `IF current_setting('fsync') = 'off' THEN
      RAISE EXCEPTION 'the server runs with fsync off' USING ERRCODE = 'TL003';
    END IF;
    IF current_setting('synchronous_commit') IN (${weakCommits}) THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;`;

/** Returns PL/pgSQL that makes the commit wait for the disk, or for nothing. */
export function setFlush(isFlushed: string): string {
  return `  IF ${isFlushed} THEN
    ${flush}
  ELSIF current_setting('synchronous_commit') <> 'off' THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;`;
}

/** Makes Citus apply the settings of a transaction on its other nodes, too. */
export const settingsPassedOn = "SET LOCAL citus.propagate_set_commands = 'local'; ";

/**
 * Returns what begins a transaction, one round trip for each text, because the driver sends several statements without
 * parameters together. Citus passes on the whole text for each setting in it. A node would then begin a transaction in a
 * transaction, and log a warning each time, so BEGIN stands alone there. @param passedOn `settingsPassedOn`, or nothing
 */
export function beginning(lockMs: number, passedOn: string): readonly string[] {
  const begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
  const settings = `${passedOn}SET LOCAL lock_timeout = ${lockMs}; ${ownNamesOnly}; SELECT ${flushed}`;
  return passedOn === "" ? [`${begin}; ${settings}`] : [begin, settings];
}

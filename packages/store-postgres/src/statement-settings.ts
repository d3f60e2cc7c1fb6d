/**
 * For a transaction: names without a schema are PostgreSQL's own, whatever functions and operators the schemas of the
 * caller's search_path hold, and an index gives every row it has.
 */
export const ownNamesOnly = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL gin_fuzzy_search_limit = 0";

/** For a function: the same for what its body names. */
export const ownNamesInside = "SET search_path = pg_catalog, pg_temp";

/** Settings of synchronous_commit that do not wait for everything the server's owner asks of a commit. */
const weakCommits = "'off', 'local'";

/**
 * An expression that makes the commit of its transaction wait for the server's disk and for the configured standbys. It
 * holds whatever a URL, a role, a database or a lent connection sets. A stronger setting stays.
 */
export const flushed: string = `pg_catalog.set_config('synchronous_commit',
    CASE WHEN pg_catalog.current_setting('synchronous_commit') IN (${weakCommits}) THEN 'on'
      ELSE pg_catalog.current_setting('synchronous_commit') END, true)`;

/**
 * PL/pgSQL: the same, decided when it runs. A server whose owner has turned fsync off since the store was opened keeps no
 * promise of the disk, so that the write is refused; `postgres-errors.ts` reads the code TL003.
 */
export const flush: string = `IF current_setting('fsync') = 'off' THEN
      RAISE EXCEPTION 'the server runs with fsync off' USING ERRCODE = 'TL003';
    END IF;
    IF current_setting('synchronous_commit') IN (${weakCommits}) THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;`;

/** PL/pgSQL that makes the commit wait for the disk, or for nothing. */
export function setFlush(isFlushed: string): string {
  return `  IF ${isFlushed} THEN
    ${flush}
  ELSIF current_setting('synchronous_commit') <> 'off' THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;`;
}

/** For a transaction on a server that passes statements on: what is set for it is set on the other nodes, too. */
export const settingsPassedOn = "SET LOCAL citus.propagate_set_commands = 'local'; ";

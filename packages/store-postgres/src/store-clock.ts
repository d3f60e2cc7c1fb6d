import type { RunStatement } from "./connection-pool.ts";
import { ownNamesInside } from "./statement-settings.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Creates the store's clock: the database's time at the moment of the call, not at the beginning of the transaction. It is
 * a function so that the store's own tests can set it forward. PostgreSQL parses its body once, so a caller's search_path
 * changes nothing in it, and writes it into the statements that call it.
 */
export function clockFunction(schema: string): string {
  return `
CREATE FUNCTION ${schema}.store_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN floor(date_part('epoch', clock_timestamp()) * 1000)::bigint;
`;
}

/**
 * Creates the clock for statements that change the rows of several nodes, because such a server accepts no volatile
 * function there. The label IMMUTABLE is untrue: with it the server passes the call on with the statement. The column as
 * an argument keeps the planner from computing the time once. It is read for each row, and again after a lock wait.
 */
export function rowClockFunction(schema: string): string {
  return `
CREATE FUNCTION ${schema}.row_now_ms(p_column bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
${ownNamesInside} AS $clock$
BEGIN
  RETURN ${schema}.store_now_ms();
END $clock$;
`;
}

/** Returns the database's clock for a statement that changes rows of `sessions` under the alias `row`. */
export function rowClock(schema: string, row: string): string {
  return `${schema}.row_now_ms(${row}.session_no)`;
}

export async function databaseNowMs(context: Pick<StoreContext, "schema">, run: RunStatement): Promise<number> {
  const [row] = await run(`SELECT ${context.schema}.store_now_ms() AS now_ms`);
  return Number(row?.["now_ms"]);
}

import pg from "pg";

/** A pool of the driver's own. Errors of idle connections are no news: the next operation finds out by itself. */
export function openPool(url: string, maxConnections: number, connectTimeoutMs: number): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: "throughline",
  });
  pool.on("error", () => undefined);
  // While one is lent, its end reaches the statement that runs on it; without a listener it would end the process too.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

import pg from "pg";

/**
 * Opens a pool of the driver. Errors of idle connections are ignored, because the next operation detects them itself.
 */
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
  // The running statement reports the end of a lent connection. Without a listener the error would also end the
  // process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

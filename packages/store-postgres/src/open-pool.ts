import { refused } from "@throughline/core/internal";
import pg from "pg";
import type { CheckedOptions } from "./checked-options.ts";
import type { PostgresPool } from "./connection-pool.ts";
import { parsePostgresUrl } from "./postgres-url.ts";

/**
 * Opens a pool of the driver. Errors of idle connections are ignored, because the next operation detects them itself.
 */
export function openPool(url: string, maxConnections: number, connectTimeoutMs: number): pg.Pool {
  const pool = new EndingPool({
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

/** Does not wait at its end for connections that a silent server never takes, as the driver's pool does. */
class EndingPool extends pg.Pool {
  readonly #opening: Set<pg.Client>;

  constructor(config: pg.PoolConfig) {
    const opening = new Set<pg.Client>();
    class OpeningClient extends pg.Client {
      constructor(options?: pg.ClientConfig) {
        super(options);
        opening.add(this);
        this.once("end", () => opening.delete(this));
      }
    }
    super({ ...config, Client: OpeningClient });
    this.#opening = opening;
    // The pool makes every client with the class above, which its type does not say.
    this.on("connect", (client) => opening.delete(client as unknown as pg.Client));
  }

  override async end(): Promise<void> {
    const ended = super.end();
    for (const { connection } of this.#opening) connection.stream.destroy();
    await ended;
  }
}

/** Holds the pools of a store. */
export interface Pools {
  readonly pool: PostgresPool;
  /**
   * A listener keeps its connection, so it must not use one that operations wait for. It is null for a pool of one
   * connection.
   */
  readonly listening: PostgresPool | null;
  /** A lock holder keeps its connection, too. It is null for a pool of one connection. */
  readonly locking: PostgresPool | null;
  end(): Promise<void>;
}

/** Returns the pools of a store: its own, or the one that the program lends. */
export function poolsOf(options: CheckedOptions): Pools {
  const { pool, maxConnections, timeoutMs } = options;
  if (pool !== undefined) {
    const kept = pool.options?.max === 1 ? null : pool;
    return { pool, listening: kept, locking: kept, end: () => Promise.resolve() };
  }
  if (options.url === undefined) throw refused("CONFIG_INVALID", "A PostgreSQL store needs a url or a pool.");
  const { url } = parsePostgresUrl(options.url);
  const [own, listening] = [openPool(url, maxConnections, timeoutMs), openPool(url, 1, timeoutMs)];
  const locking = openPool(url, maxConnections, timeoutMs);
  return {
    pool: own,
    listening,
    locking,
    async end() {
      // A lock ends with the work under it, and that work may itself wait for the close.
      const unlocked = locking.end();
      await Promise.all([own.end(), listening.end(), ...(locking.totalCount === 0 ? [unlocked] : [])]);
    },
  };
}

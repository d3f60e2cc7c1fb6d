import type { StoreLimits, RecordWindow } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import type { PostgresPool } from "./connection-pool.ts";

/** Holds the options of `createPostgresStore`. */
export interface PostgresStoreOptions {
  /**
   * Names the database as `postgres://user:password@host:port/database`. `?schema=NAME` names a schema, and
   * `layout=tenant` chooses the layout of a schema that is to be created. Not needed with `pool`.
   */
  readonly url?: string | undefined;
  /**
   * Lends the program's own pool, with the interface of pg's. The store does not end it. A pool that does not state
   * `options.max` counts as one of 10 connections, which is pg's own default. @default one for `url`
   */
  readonly pool?: PostgresPool | undefined;
  /** Names the schema that holds all tables and functions. @default that of the URL, else "throughline" */
  readonly schema?: string | undefined;
  /**
   * Allows the store to create and change the schema. With false it refuses a missing or older schema. @default true
   */
  readonly migrate?: boolean | undefined;
  /**
   * Sets the number of hash partitions of the records, which is fixed when the schema is created. The tenant layout has
   * none on Citus. @default 16
   */
  readonly partitions?: number | undefined;
  /**
   * Chooses how the tables are keyed when the schema is created. A schema of another layout is refused with
   * STORE_UNSUPPORTED. "tenant" adds a number made of namespace and agent to every row and key. A database with Citus
   * spreads the tables by it.
   * @default that of the URL, of the schema, else "plain"
   */
  readonly layout?: "plain" | "tenant" | undefined;
  /** Encodes payloads and entries. The schema keeps the codec's name, and refuses another codec. @default none */
  readonly codec?: core.PayloadCodec | undefined;
  /** Sets the durability of writes that state none. @default "disk" */
  readonly defaultDurability?: core.Durability | undefined;
  /**
   * Limits the connections of the store's own pool. On Citus one worker has at most a third of them, or the only one.
   * With fewer than three a worker that hangs may keep them all. @default 10
   */
  readonly maxConnections?: number | undefined;
  /**
   * Limits the operations that wait for a connection. Further ones are refused with STORE_OVERLOADED. @default 1,000
   */
  readonly maxWaiting?: number | undefined;
  /** Limits everything that an operation waits for, in milliseconds. @default 30,000 */
  readonly timeoutMs?: number | undefined;
  /** Limits how long an operation tries to reach an unreachable server, in milliseconds. @default 10,000 */
  readonly connectTimeoutMs?: number | undefined;
  /** Limits how long a statement waits for a locked row, in milliseconds. @default 10,000 */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * Prepares the few most frequent statements under names. If a pooler does not keep them with a connection, the store
   * stops using names. With false it never uses names. @default true
   */
  readonly prepare?: boolean | undefined;
  /**
   * Signals watchers by NOTIFY on a connection of their own. With false they only poll every `pollMs`. @default true
   */
  readonly notify?: boolean | undefined;
  /** Sets how often a watcher polls, in milliseconds. @default 1,000 */
  readonly pollMs?: number | undefined;
  /**
   * Turns on row-level security by agent. The owner of the tables sets it up. With `migrate: false` a store without it
   * is refused with STORE_UNSUPPORTED. @default false
   */
  readonly rowSecurity?: boolean | undefined;
  /** Receives findings, changes of sessions, and records. The store ignores what it throws. @default no listener */
  readonly onEvent?: core.SessionEventListener | undefined;
  /** Overrides single limits of the store. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits> | undefined;
  /** Controls waits. Times in records come from the database. @default the system's clock */
  readonly clock?: core.Clock | undefined;
  /** Supplies record ids. @default ids of this process */
  readonly ids?: core.RecordIds | undefined;
  /** Supplies random numbers. @default the system's randomness */
  readonly random?: core.RandomSource | undefined;
}

/** Describes a store in PostgreSQL, and its functions beyond the contract. */
export interface PostgresStore extends core.SessionStore {
  readonly fork: core.ForkFacet;
  readonly watch: core.WatchFacet;
  readonly maintenance: core.MaintenanceFacet;
  readonly partials: core.PartialsFacet;
  readonly files: core.FilesFacet;
  /** Reads the state and the records from the window's boundary on. It takes one round trip while they fit a page. */
  readWindow(ref: core.SessionRef, options?: { readonly signal?: AbortSignal | undefined }): Promise<RecordWindow>;
}

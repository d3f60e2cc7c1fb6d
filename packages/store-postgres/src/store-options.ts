import type { StoreLimits, RecordWindow } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import type { PostgresPool } from "./connection-pool.ts";

/** Options of `createPostgresStore`. */
export interface PostgresStoreOptions {
  /**
   * `postgres://user:password@host:port/database`, with `?schema=NAME` where it is another, and `layout=tenant` for a schema
   * that is to be made with that layout. Not needed with `pool`.
   */
  readonly url?: string;
  /** A pool of the program's own, of pg's kind; the store does not end it. @default one for `url` */
  readonly pool?: PostgresPool;
  /** The schema everything lives in. @default that of the URL, else "throughline" */
  readonly schema?: string;
  /** False: the schema is used as it is, and one that is missing or too old is refused. @default true */
  readonly migrate?: boolean;
  /**
   * Hash partitions of the records, fixed when the schema is made. On Citus the tenant layout has none. @default 16
   */
  readonly partitions?: number;
  /**
   * How the tables are keyed, chosen when the schema is made; a schema of another layout is refused with STORE_UNSUPPORTED.
   * "tenant" adds a number made of namespace and agent to every row and key. A database with Citus spreads the tables by it.
   * @default that of the URL, of the schema, else "plain"
   */
  readonly layout?: "plain" | "tenant";
  /** Around payloads and entries. Its name is kept in the schema: another codec is refused. @default none */
  readonly codec?: core.PayloadCodec;
  /** What a write gets that does not ask. @default "disk" */
  readonly defaultDurability?: core.Durability;
  /** Connections of this store's own pool. @default 10 */
  readonly maxConnections?: number;
  /**
   * The most operations that may wait for a connection; the next one is refused with STORE_OVERLOADED. @default 1,000
   */
  readonly maxWaiting?: number;
  /** The deadline of an operation over all it waits for, in milliseconds. @default 30,000 */
  readonly timeoutMs?: number;
  /** How long an operation tries to reach a server that is not there, in milliseconds. @default 10,000 */
  readonly connectTimeoutMs?: number;
  /** How long a statement waits for a row that another one holds, in milliseconds. @default 10,000 */
  readonly lockTimeoutMs?: number;
  /**
   * Names for the few statements that are run all the time. Where a pooler turns out not to keep them with a connection,
   * they are left off from then on; false: no names from the first statement on. @default true
   */
  readonly prepare?: boolean;
  /**
   * Whether watchers get signals by NOTIFY, on their own connection; without, they look every `pollMs`. @default true
   */
  readonly notify?: boolean;
  /** How often a watcher looks by itself, in milliseconds. @default 1,000 */
  readonly pollMs?: number;
  /**
   * Row-level security by agent. The owner of the tables sets it up; with `migrate: false` a store that does not have it
   * is refused with STORE_UNSUPPORTED. @default false
   */
  readonly rowSecurity?: boolean;
  /** Receives findings, changes of sessions, and records. What it throws is ignored. @default no listener */
  readonly onEvent?: core.SessionEventListener;
  /** Limits that differ from the default. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits>;
  /** For waits; times in records are the database's. @default the system's clock */
  readonly clock?: core.Clock;
  /** Source of record ids. @default ids of this process */
  readonly ids?: core.RecordIds;
  /** Used wherever the store draws at random. @default the system's randomness */
  readonly random?: core.RandomSource;
}

/** A store in PostgreSQL, and what it can do beyond the contract. */
export interface PostgresStore extends core.SessionStore {
  readonly fork: core.ForkFacet;
  readonly watch: core.WatchFacet;
  readonly maintenance: core.MaintenanceFacet;
  readonly partials: core.PartialsFacet;
  /** The state and the records from the window's boundary on; one round trip while they fit a page. */
  readWindow(ref: core.SessionRef, options?: { readonly signal?: AbortSignal }): Promise<RecordWindow>;
}

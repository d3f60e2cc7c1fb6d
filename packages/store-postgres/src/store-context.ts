import type { SessionEvent, SessionRef, SessionState } from "@throughline/core";
import type { SearchToken, StoreLimits } from "@throughline/core/internal";
import { refused } from "@throughline/core/internal";
import type { ConnectionPool } from "./connection-pool.ts";
import type { Layout } from "./layout.ts";
import type { ShardNodes } from "./shard-nodes.ts";
import type { RowCoder } from "./record-columns.ts";

/** Holds the facts of the schema, which are known once the store is open. No operation begins before. */
export interface FoundSchema {
  layout: Layout;
  /** States whether Citus passes statements on to other nodes. */
  isDistributed: boolean;
  /** Knows the nodes of the tenants. It is null where one node has all rows. */
  nodes: ShardNodes | null;
  /** Holds the statement of an append, because it is sent most often. */
  appendSql: string;
}

export interface StoreContext {
  readonly pool: ConnectionPool;
  /** Holds the name of the schema in quotes, because statements contain it. */
  readonly schema: string;
  readonly rows: RowCoder;
  /** Encodes without the codec, because limits apply to plain sizes. */
  readonly plainRows: RowCoder;
  /** Returns the tokens that the index has in place of the words of a namespace; null for words. */
  tokenOf(namespace: string, purpose: "index" | "search"): SearchToken | null;
  /** States whether the codec gives no tokens. Then nothing may be in the index. */
  readonly isIndexOff: boolean;
  /** Is filled when the schema is open. */
  readonly found: FoundSchema;
  readonly limits: StoreLimits;
  /** Limits the wait of a statement for a row, in the format of the server. */
  readonly lockTimeout: string;
  /** Under a codec this caches the session id of an address. An outdated id costs one round trip. */
  readonly sessionIds: SessionIdCache;
  load(ref: SessionRef): Promise<SessionState | null>;
  announce(...events: readonly SessionEvent[]): void;
  /** Signals watchers that the session has new records. */
  notify(ref: SessionRef, sessionNo: string): void;
}

/** Caches the newest addresses, up to a limit. */
export class SessionIdCache {
  readonly #ids = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get(address: string): string | undefined {
    return this.#ids.get(address);
  }

  set(address: string, sessionId: string): void {
    this.#ids.delete(address);
    this.#ids.set(address, sessionId);
    for (const oldest of this.#ids.keys()) {
      if (this.#ids.size <= this.#most) break;
      this.#ids.delete(oldest);
    }
  }
}

const contexts = new WeakMap<object, StoreContext>();

/** Keeps the context of a store for operations that take two stores. */
export function keepContext(store: object, context: StoreContext): void {
  contexts.set(store, context);
}

/** @throws {ThroughlineError} INPUT_INVALID for a store that this package did not create */
export function contextOf(store: object): StoreContext {
  const context = contexts.get(store);
  if (context !== undefined) return context;
  throw refused("INPUT_INVALID", "The store is none of createPostgresStore.");
}

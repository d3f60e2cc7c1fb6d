import type { SessionEvent, SessionRef, SessionState } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";
import { refused } from "@throughline/core/internal";
import type { ConnectionPool } from "./connection-pool.ts";
import type { Layout } from "./layout.ts";
import type { RowCoder } from "./record-columns.ts";

/** How the schema is kept, known when it has been opened: no operation begins before. */
export interface FoundSchema {
  layout: Layout;
  /** Whether the server passes statements on to others. */
  isDistributed: boolean;
  /** The statement of an append, which is the one that is sent most. */
  appendSql: string;
}

/** What every operation of the store works with. */
export interface StoreContext {
  readonly pool: ConnectionPool;
  /** The quoted name of the schema. */
  readonly schema: string;
  readonly rows: RowCoder;
  /** Without the codec, for sizes. */
  readonly plainRows: RowCoder;
  /** What the schema turned out to be, once it is open. */
  readonly found: FoundSchema;
  readonly limits: StoreLimits;
  /** How long a statement waits for a row, as the server reads it. */
  readonly lockTimeout: string;
  /** Under a codec: which session an address held last. A wrong one costs a round trip. */
  readonly sessionIds: SessionIdCache;
  load(ref: SessionRef): Promise<SessionState | null>;
  announce(...events: readonly SessionEvent[]): void;
  /** Signals the watchers of the session that there are new records. */
  notify(ref: SessionRef, sessionNo: string): void;
}

/** The newest addresses, up to a limit. */
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

/** Notes what a store works with, for operations that take two stores. */
export function keepContext(store: object, context: StoreContext): void {
  contexts.set(store, context);
}

/** @throws {ThroughlineError} INPUT_INVALID for a store that is none of this package */
export function contextOf(store: object): StoreContext {
  const context = contexts.get(store);
  if (context !== undefined) return context;
  throw refused("INPUT_INVALID", "The store is none of createPostgresStore.");
}

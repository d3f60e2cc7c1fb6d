import type * as core from "@throughline/core";
import { systemClock, systemRandom, systemRecordIds } from "@throughline/core/node";
import { createHttpClient } from "@throughline/http-client";
import { createConnection } from "./connection.ts";
import { HttpStore } from "./http-store.ts";

/** Options of `openHttpStore`. */
export interface HttpStoreOptions {
  /** The server's address: `http://127.0.0.1:4788`, with any path before `/api/v1`. */
  readonly url: string;
  /** A token of the server. @default none, which every server refuses */
  readonly token?: string;
  /** @default the runtime's own */
  readonly fetch?: typeof globalThis.fetch;
  /** How long one operation may take with all its attempts, in milliseconds. @default 30,000 */
  readonly timeoutMs?: number;
  /** How often an operation is repeated after a broken connection or a busy server. @default 3 */
  readonly retries?: number;
  readonly onEvent?: core.SessionEventListener;
  /** @default the system's clock */
  readonly clock?: core.Clock;
  /** Spreads waits. @default the system's randomness */
  readonly random?: core.RandomSource;
  /** Makes the keys of appends that have none. @default ids of this process */
  readonly ids?: core.RecordIds;
}

/**
 * Opens a store whose sessions a Throughline server keeps. Its capabilities are those of the server's store, less
 * maintenance.
 *
 * @throws {TypeError} when `url` is not an http or https address
 * @throws {ThroughlineError} STORE_UNREACHABLE, and UNAUTHENTICATED for a token that the server refuses
 */
export async function openHttpStore(options: HttpStoreOptions): Promise<core.SessionStore> {
  const { timeoutMs = 30_000, retries = 3, onEvent } = options;
  const { clock = systemClock, random = systemRandom, ids = systemRecordIds } = options;
  const client = createHttpClient(options);
  const connection = createConnection({ client, clock, random, timeoutMs, retries });
  const { body } = await connection.ask<{
    readonly capabilities: core.StoreCapabilities;
    readonly limits: { readonly bodyBytes: number };
  }>({ path: "/store" }, { isWrite: false });
  const { durabilities, limits, idempotency, ...declared } = body.capabilities;
  const capabilities: core.StoreCapabilities = Object.freeze({
    ...declared,
    maintenance: false,
    durabilities: Object.freeze(durabilities),
    limits: Object.freeze(limits),
    idempotency: Object.freeze(idempotency),
  });
  return new HttpStore({ connection, capabilities, bodyBytes: body.limits.bodyBytes, clock, random, ids, onEvent });
}

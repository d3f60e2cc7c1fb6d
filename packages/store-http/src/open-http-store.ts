import {
  assertKnownOptions,
  optionKinds,
  portKinds,
  withSystemPorts,
  type OptionKind,
  type OptionTable,
} from "@throughline/core/internal";
import type * as core from "@throughline/core";
import { createHttpClient } from "./client/http-client.ts";
import { createConnection } from "./connection.ts";
import { HttpStore } from "./http-store.ts";

/** Configures `openHttpStore`. */
export interface HttpStoreOptions {
  /** States the server's address: `http://127.0.0.1:4788`, with any path before `/api/v1`. */
  readonly url: string;
  /** Authenticates the client at the server. @default none, which every server refuses */
  readonly token?: string | undefined;
  /** Sends the requests. Replace it to use a proxy or your own certificate authority. @default the runtime's own */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * Limits how long one operation may take with all its attempts, in milliseconds. Waits that the server's rate limit
   * causes do not count, up to 5 minutes.
   * @default 30,000
   */
  readonly timeoutMs?: number | undefined;
  /** Limits how often an operation is repeated after a broken connection or a busy server. @default 3 */
  readonly retries?: number | undefined;
  /**
   * Receives findings, changes of sessions, and records. The store ignores errors that it throws.
   * @default no listener
   */
  readonly onEvent?: core.SessionEventListener | undefined;
  /** Measures deadlines and waits. @default the system's clock */
  readonly clock?: core.Clock | undefined;
  /** Adds jitter to waits. @default the system's randomness */
  readonly random?: core.RandomSource | undefined;
  /** Creates the idempotency keys of appends that have none. @default ids of this process */
  readonly ids?: core.RecordIds | undefined;
}

interface WireStore {
  readonly capabilities: core.StoreCapabilities;
  readonly limits: { readonly bodyBytes: number };
}

const { callback, integer, number, required, secret, text } = optionKinds;

const url: OptionKind = {
  expected: "an http or https address without credentials",
  accepts: (value) => {
    const parsed = typeof value === "string" ? URL.parse(value) : null;
    return /^https?:$/.test(parsed?.protocol ?? "") && parsed?.username === "" && parsed.password === "";
  },
};

export const httpStoreTable: OptionTable<HttpStoreOptions> = {
  url: secret(required(url)),
  token: secret(text),
  fetch: callback,
  timeoutMs: number({ min: 1 }),
  retries: integer({ min: 0 }),
  onEvent: callback,
  clock: portKinds.clock,
  random: portKinds.random,
  ids: portKinds.ids,
};

/**
 * Opens a store whose sessions a Throughline server keeps. It has the capabilities of the server's store, except
 * maintenance.
 *
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range; STORE_UNREACHABLE, and UNAUTHENTICATED for a token that the server refuses
 */
export async function openHttpStore(options: HttpStoreOptions): Promise<core.SessionStore> {
  assertKnownOptions<HttpStoreOptions>("openHttpStore", options, httpStoreTable, "options", "CONFIG_INVALID");
  const { timeoutMs = 30_000, retries = 3, onEvent, clock, random, ids } = withSystemPorts(options);
  const client = createHttpClient(options);
  const connection = createConnection({ client, clock, random, timeoutMs, retries });
  const served = await connection.read<WireStore>({ path: "/store" });
  const { durabilities, limits, idempotency, ...declared } = served.capabilities;
  const capabilities: core.StoreCapabilities = Object.freeze({
    ...declared,
    maintenance: false,
    durabilities: Object.freeze(durabilities),
    limits: Object.freeze(limits),
    idempotency: Object.freeze(idempotency),
  });
  return new HttpStore({ connection, capabilities, bodyBytes: served.limits.bodyBytes, clock, random, ids, onEvent });
}

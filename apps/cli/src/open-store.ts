import type { SessionEventListener, SessionStore } from "@throughline/core";
import { assertReadable } from "./readable-place.ts";
import { parseStoreUrl } from "./store-url.ts";

export interface OpenStoreOptions {
  readonly workingDirectory: string;
  /** Whether a store that is not there is made. */
  readonly create: boolean;
  /** False: a damaged file stays where it is, though a backup lies beside it. @default true */
  readonly recover?: boolean;
  readonly onEvent?: SessionEventListener;
}

/**
 * Opens the store of a URL; loads only the store that is needed.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<SessionStore> {
  const address = parseStoreUrl(url, options.workingDirectory);
  const events = options.onEvent === undefined ? {} : { onEvent: options.onEvent };
  if (address.scheme === "memory") {
    const { createMemoryStore } = await import("@throughline/store-memory");
    return createMemoryStore(events);
  }
  if (address.scheme === "sqlite") {
    assertReadable(address.path);
    const { createSqliteStore } = await import("@throughline/store-sqlite");
    return createSqliteStore({
      path: address.path,
      create: options.create,
      recover: options.recover ?? true,
      ...events,
    });
  }
  if (address.scheme === "postgres") {
    const { createPostgresStore } = await import("@throughline/store-postgres");
    // A person waits: a server that is not there is said sooner than a program would have it.
    return createPostgresStore({ url: address.url, migrate: options.create, connectTimeoutMs: 3000, ...events });
  }
  assertReadable(address.root);
  const { createJsonlStore } = await import("@throughline/store-jsonl");
  return createJsonlStore({ root: address.root, create: options.create, ...events });
}

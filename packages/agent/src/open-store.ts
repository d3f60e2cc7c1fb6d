import { join } from "node:path";
import { assertReadable, isFolder, isThere } from "@throughline/config/internal";
import { parseStoreUrl } from "@throughline/config";
import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import type { SessionEventListener, SessionStore } from "@throughline/core";

export interface OpenStoreOptions {
  readonly workingDirectory: string;
  readonly create: boolean;
  /** False leaves a damaged file in place, even if a backup exists beside it. @default true */
  readonly recover?: boolean | undefined;
  readonly onEvent?: SessionEventListener | undefined;
  /** Returns the token for the server of a URL. @default there is none */
  readonly tokenFor?: (url: string) => Promise<string | undefined>;
  /** Limits the time of connecting to PostgreSQL, in milliseconds. @default the limit of the store */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * Opens the store of a URL. Only the store package that the URL needs is loaded, so that a program starts fast.
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
    if (isFolder(address.path)) {
      const { path } = address;
      const file = `sqlite:${join(path, "sessions.db")}`;
      throw misnamed(
        path,
        "a folder; a SQLite store is one file",
        `--store ${shellWord(file)}, or --store ${shellWord(`jsonl:${path}`)}`,
      );
    }
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
    const { create: migrate, connectTimeoutMs } = options;
    const limit = connectTimeoutMs === undefined ? {} : { connectTimeoutMs };
    return createPostgresStore({ url: address.url, migrate, ...limit, ...events });
  }
  if (address.scheme === "http") {
    const { openHttpStore } = await import("@throughline/store-http");
    const token = await options.tokenFor?.(address.url);
    return openHttpStore({ url: address.url, ...(token === undefined ? {} : { token }), ...events });
  }
  const { root } = address;
  assertReadable(root);
  if (isThere(root) && !isFolder(root))
    throw misnamed(
      root,
      "a file; a JSON Lines store is a folder",
      `--store ${shellWord(`sqlite:${root}`)}, or another folder`,
    );
  const { createJsonlStore } = await import("@throughline/store-jsonl");
  return createJsonlStore({ root, create: options.create, ...events });
}

function misnamed(path: string, what: string, remedy: string): ThroughlineError {
  return new ThroughlineError("PATH_UNSAFE", `${JSON.stringify(path)} is ${what}.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Name it so: ${remedy}.`,
  });
}

import { join } from "node:path";
import { assertReadable, isFolder, isThere } from "@throughline/config/internal";
import { parseStoreUrl } from "@throughline/config";
import { ThroughlineError } from "@throughline/core";
import type { Encryption } from "@throughline/encryption";
import { shellWord } from "@throughline/core/internal";
import type { PayloadCodec, SessionEventListener, SessionStore } from "@throughline/core";
import type { StoreParts } from "./store-parts.ts";

export interface OpenStoreOptions {
  readonly workingDirectory: string;
  readonly create: boolean;
  /** False leaves a damaged file in place, even if a backup exists beside it. @default true */
  readonly recover?: boolean | undefined;
  readonly onEvent?: SessionEventListener | undefined;
  /** Returns the token for the server of a URL. @default there is none */
  readonly tokenFor?: (url: string) => Promise<string | undefined>;
  /** Finds the bucket and the encryption of the store of a URL. @default the store has its files, and is plain */
  readonly parts?: StoreParts | undefined;
  /** True opens an encrypted store without its main key, when there is none: only lists work. @default false */
  readonly isListed?: boolean | undefined;
  /** Limits the time of connecting to PostgreSQL, in milliseconds. @default the limit of the store */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * Opens the store of a URL. Only the store package that the URL needs is loaded, so that a program starts fast.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<SessionStore> {
  const files = options.parts?.filesFor(url) ?? null;
  const codec = (await codecOf(url, options)) ?? undefined;
  const store = await openWithoutFiles(url, options, codec);
  try {
    if (options.create) await resumeErasures(store, await options.parts?.codecFor(url));
    if (files === null) return store;
    const { createS3FileStore, withFileStore } = await import("@throughline/file-store");
    return withFileStore(store, { files: createS3FileStore(files), codec });
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function codecOf(url: string, { parts, isListed }: OpenStoreOptions): Promise<PayloadCodec | null> {
  try {
    return (await parts?.codecFor(url)) ?? null;
  } catch (error) {
    const isAbsent = ThroughlineError.isInstance(error) && error.details["reason"] === "absent";
    if (parts === undefined || isListed !== true || !isAbsent) throw error;
    return parts.lockedFor(url);
  }
}

/** A process may have been killed between the purge of a session and the destruction of its key. */
async function resumeErasures(store: SessionStore, codec: Encryption | null | undefined): Promise<void> {
  if (codec === null || codec === undefined || codec.status().unfinishedErasures === 0) return;
  await (await import("@throughline/encryption")).resumeErasures(store, codec);
}

async function openWithoutFiles(
  url: string,
  options: OpenStoreOptions,
  codec: PayloadCodec | undefined,
): Promise<SessionStore> {
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
      codec,
      ...events,
    });
  }
  if (address.scheme === "postgres") {
    const { createPostgresStore } = await import("@throughline/store-postgres");
    const { create: migrate, connectTimeoutMs } = options;
    const limit = connectTimeoutMs === undefined ? {} : { connectTimeoutMs };
    return createPostgresStore({ url: address.url, migrate, codec, ...limit, ...events });
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
  return createJsonlStore({ root, create: options.create, codec, ...events });
}

function misnamed(path: string, what: string, remedy: string): ThroughlineError {
  return new ThroughlineError("PATH_UNSAFE", `${JSON.stringify(path)} is ${what}.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Name it so: ${remedy}.`,
  });
}

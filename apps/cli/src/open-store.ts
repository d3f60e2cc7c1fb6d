import { openStore as openStoreAt, type OpenStoreOptions as StoreOptions } from "@throughline/agent/internal";
import type { SessionStore } from "@throughline/core";
import type { TokenPlaces } from "./server/server-access.ts";

export interface OpenStoreOptions extends Pick<
  StoreOptions,
  "workingDirectory" | "create" | "recover" | "parts" | "isListed" | "onEvent"
> {
  /** Locates the token for a server. @default there is none */
  readonly tokenPlaces?: TokenPlaces;
}

/** A person waits here, so the limit is shorter than a program would choose. */
const connectTimeoutMs = 3000;

/** @throws {ThroughlineError} STORE_URL_INVALID, and errors of opening the store */
export function openStore(url: string, { tokenPlaces, ...options }: OpenStoreOptions): Promise<SessionStore> {
  const tokenFor = async (address: string): Promise<string | undefined> =>
    tokenPlaces === undefined ? undefined : (await import("./server/server-access.ts")).findToken(address, tokenPlaces);
  return openStoreAt(url, { ...options, tokenFor, connectTimeoutMs });
}

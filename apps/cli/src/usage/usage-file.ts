import { closeSync, existsSync, mkdirSync, openSync, rmSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseStoreUrl } from "@throughline/config";
import type { SessionStore } from "@throughline/core";
import { sha256Hex } from "@throughline/core/internal";
import { openUsage } from "@throughline/usage";
import type { UsageOptions, UsageReader } from "@throughline/usage/internal";
import type { CommandContext } from "../command.ts";
import { settingOf } from "@throughline/config/internal";

type Prices = NonNullable<UsageOptions["prices"]>;

type StorePlaceOf = Pick<CommandContext, "host" | "storeUrl" | "tokenPlaces">;

/** Opens the usage of a store with the prices of the configuration. The sums are kept in the home. */
export function openStoreUsage(context: CommandContext, store: SessionStore): UsageReader {
  const prices = pricesOf(context);
  const path = usagePath(context);
  // A store in memory is another one in each process.
  if (path === null || store.capabilities.name === "memory") return openUsage(store, { prices });
  try {
    return openKept(path, store, prices);
  } catch (error) {
    context.output.note(`The sums cannot be kept in ${path}: ${(error as Error).message}`);
    return openUsage(store, { prices });
  }
}

function openKept(path: string, store: SessionStore, prices: Prices): UsageReader {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, "a", 0o600));
  try {
    return openUsage(store, { path, prices });
  } catch (error) {
    if (!damageCodes.has((error as { readonly errcode?: unknown }).errcode)) throw error;
    // The file is derived, so a damaged one is written again.
    removeUsage(path);
    closeSync(openSync(path, "a", 0o600));
    return openUsage(store, { path, prices });
  }
}

/** SQLite reports a damaged file as SQLITE_CORRUPT, and another file as SQLITE_NOTADB. */
const damageCodes: ReadonlySet<unknown> = new Set([11, 26]);

/**
 * Returns the file with the sums when nothing was written to the store since they were counted; else null. Only a store
 * in one file can be asked for that without opening it.
 */
export function currentUsagePath({ host, storeUrl, tokenPlaces }: StorePlaceOf): string | null {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  const path = usagePath({ host, storeUrl, tokenPlaces });
  if (address.scheme !== "sqlite" || path === null) return null;
  const countedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  const written = [address.path, `${address.path}-wal`].map(
    (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs,
  );
  if (countedMs === undefined || written[0] === undefined) return null;
  return written.every((atMs) => atMs === undefined || atMs < countedMs) ? path : null;
}

/** States that the sums hold everything that was written before a time, in milliseconds since 1970. */
export function markCounted(context: StorePlaceOf, atMs: number): void {
  const path = usagePath(context);
  if (path !== null && existsSync(path)) utimesSync(path, atMs / 1000, atMs / 1000);
}

/** Removes the sums of the store, so that the next `usage` reads every record. */
export function forgetUsage(context: StorePlaceOf): void {
  const path = usagePath(context);
  if (path !== null) removeUsage(path);
}

function removeUsage(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
}

/** Each store has a file of its own, named by a hash. */
function usagePath({ host, storeUrl, tokenPlaces }: StorePlaceOf): string | null {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme === "memory") return null;
  const name = sha256Hex(JSON.stringify(address)).slice(0, 16);
  return join(tokenPlaces.home, "usage", `${name}.db`);
}

/** Null in a setting means that the class has no price of its own. */
export function pricesOf({ settings }: Pick<CommandContext, "settings">): Prices {
  const given = settingOf(settings, "prices") as Readonly<
    Record<string, Readonly<Record<string, number | null>>>
  > | null;
  const models = Object.entries(given ?? {}).map(([name, price]) => {
    const stated = Object.entries(price).filter(([, usd]) => usd !== null);
    return [name, Object.fromEntries(stated)];
  });
  return Object.fromEntries(models) as Prices;
}

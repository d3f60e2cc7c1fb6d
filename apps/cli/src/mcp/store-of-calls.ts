import { statSync } from "node:fs";
import { parseStoreUrl } from "@throughline/config";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { openStore } from "../open-store.ts";

export interface StoreOfCalls {
  /** Only a writing call creates a missing store. */
  open(purpose: "read" | "write"): Promise<SessionStore>;
  close(): Promise<void>;
}

/**
 * Keeps one store open for all calls. The default store need not exist when the server starts. A store that was removed
 * or replaced is opened again.
 */
export function createStoreOfCalls(context: CommandContext): StoreOfCalls {
  const { host, settings, storeUrl, tokenPlaces, storeParts: parts, output } = context;
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  const path = address.scheme === "sqlite" ? address.path : address.scheme === "jsonl" ? address.root : null;
  const isDefault = settings.some(({ key, source }) => key === "store" && source === "default");
  let kept: { readonly identity: string | null; readonly store: Promise<SessionStore> } | null = null;

  const openNew = (create: boolean): Promise<SessionStore> =>
    openStore(storeUrl, {
      workingDirectory: host.workingDirectory,
      create,
      tokenPlaces,
      parts,
      onEvent: (event) => {
        if (event.name === "finding") output.finding(event.finding);
      },
    });
  const closeKept = async (): Promise<void> => {
    const store = kept?.store;
    kept = null;
    // A failed open was already reported to the call that requested it.
    await (await store?.catch(() => null))?.close();
  };
  const isCurrent = (): boolean => kept !== null && (path === null || kept.identity === identityOf(path));

  return {
    async open(purpose) {
      if (kept !== null && !isCurrent()) await closeKept();
      if (kept !== null) return kept.store;
      if (path !== null && isDefault && purpose === "read" && identityOf(path) === null) {
        // The user did not name the default store, so a missing one is an empty store and no error.
        const { createMemoryStore } = await import("@throughline/store-memory");
        return createMemoryStore();
      }
      const store = openNew(purpose === "write").then((opened) => {
        if (kept?.store === store && path !== null) kept = { identity: identityOf(path), store };
        return opened;
      });
      kept = { identity: path === null ? null : identityOf(path), store };
      store.catch(() => {
        if (kept?.store === store) kept = null;
      });
      return store;
    },
    close: closeKept,
  };
}

/** Returns device and inode, so that a replaced file is detected; null if the path does not exist. */
function identityOf(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

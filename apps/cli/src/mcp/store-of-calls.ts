import { statSync } from "node:fs";
import { parseStoreUrl } from "@throughline/config";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { openStore } from "../open-store.ts";

/** The store as calls need it over the time that a server runs. */
export interface StoreOfCalls {
  /** The store of a call. Only a writing call makes one that is not there. */
  open(purpose: "read" | "write"): Promise<SessionStore>;
  close(): Promise<void>;
}

/**
 * Keeps one store open for all calls. The default store need not be there when the server starts; one that was removed
 * or replaced is opened again.
 */
export function createStoreOfCalls(context: CommandContext): StoreOfCalls {
  const { host, settings, storeUrl, tokenPlaces, output } = context;
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  const path = address.scheme === "sqlite" ? address.path : address.scheme === "jsonl" ? address.root : null;
  const isDefault = settings.some(({ key, source }) => key === "store" && source === "default");
  let kept: { readonly identity: string | null; readonly store: Promise<SessionStore> } | null = null;

  const openNew = (create: boolean): Promise<SessionStore> =>
    openStore(storeUrl, {
      workingDirectory: host.workingDirectory,
      create,
      tokenPlaces,
      onEvent: (event) => {
        if (event.name === "finding") output.finding(event.finding);
      },
    });
  const closeKept = async (): Promise<void> => {
    const store = kept?.store;
    kept = null;
    // One that could not be opened was reported to the call that asked for it.
    await (await store?.catch(() => null))?.close();
  };
  const isCurrent = (): boolean => kept !== null && (path === null || kept.identity === identityOf(path));

  return {
    async open(purpose) {
      if (kept !== null && !isCurrent()) await closeKept();
      if (kept !== null) return kept.store;
      if (path !== null && isDefault && purpose === "read" && identityOf(path) === null) {
        // Nobody named it, so its absence is a beginning: there is nothing in it yet.
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

/** Which file or folder stands at a path; null for none. */
function identityOf(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

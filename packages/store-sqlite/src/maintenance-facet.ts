import type { FilesFacet, MaintenanceFacet } from "@throughline/core";
import { assertPurges, assertStoreOptions } from "@throughline/core/internal";
import { backupStore } from "./backup-store.ts";
import type { OpenOptions } from "./connection.ts";
import { addPurges, purgesOf } from "./purged-sources.ts";
import type { StoreHandle } from "./store-handle.ts";

/**
 * Creates the facet that checks, repairs and backs up a store. The code of checks and repairs is loaded on use: few
 * programs need it, and no other part of the store imports it.
 */
export function createMaintenance(handle: StoreHandle, files: FilesFacet, options: OpenOptions): MaintenanceFacet {
  return {
    async *verify(asked = {}) {
      assertStoreOptions("verify", asked);
      handle.life.begin(asked.signal);
      const { verifyStore } = await import("./maintenance/verify-store.ts");
      yield* verifyStore(handle, { driver: options.driver, files }, asked);
    },
    async *repair(asked = {}) {
      assertStoreOptions("repair", asked);
      handle.life.begin(asked.signal);
      const { repairStore } = await import("./maintenance/repair-store.ts");
      yield* repairStore(handle, { ...options, files }, asked.signal);
    },
    backup: async (path, asked = {}) => {
      assertStoreOptions("backup", asked);
      handle.life.begin(asked.signal);
      const { signal } = asked;
      // Opening the store first gives a clearer error for a damaged store. A copy has no file that could be opened
      // again.
      const opened = await handle.read(({ isCopy, database }) => (isCopy ? database : undefined), signal);
      try {
        return await backupStore({ ...options, opened }, path, signal);
      } catch (error) {
        // The handle may have been closed meanwhile, and the copy with it.
        if (opened !== undefined) handle.life.begin();
        throw error;
      }
    },
    async *purges(asked = {}) {
      assertStoreOptions("purges", asked);
      handle.life.begin(asked.signal);
      yield* purgesOf(handle, asked);
    },
    addPurges: async (namespace, purges) => {
      assertPurges(namespace, purges);
      handle.life.begin();
      await handle.write(({ connection }) => addPurges(connection, namespace, purges), { durability: "disk" });
    },
  };
}

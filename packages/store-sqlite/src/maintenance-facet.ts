import type { MaintenanceFacet } from "@throughline/core";
import { assertStoreOptions } from "@throughline/core/store";
import { backupStore } from "./backup-store.ts";
import type { OpenOptions } from "./open-connection.ts";
import { repairStore } from "./repair-store.ts";
import type { StoreHandle } from "./store-handle.ts";
import { verifyStore } from "./verify-store.ts";

export function createMaintenance(handle: StoreHandle, options: OpenOptions): MaintenanceFacet {
  return {
    async *verify(asked = {}) {
      assertStoreOptions("verify", asked);
      handle.life.begin(asked.signal);
      yield* verifyStore(handle, options.driver, asked);
    },
    async *repair(asked = {}) {
      assertStoreOptions("repair", asked);
      handle.life.begin(asked.signal);
      yield* repairStore(handle, options, asked.signal);
    },
    backup: async (path, asked = {}) => {
      assertStoreOptions("backup", asked);
      handle.life.begin(asked.signal);
      const { signal } = asked;
      // Opening says what is wrong with the store in words of its own. A copy has no file any more that could be opened again.
      const opened = await handle.read(({ isCopy, database }) => (isCopy ? database : undefined), signal);
      try {
        return await backupStore({ ...options, opened }, path, signal);
      } catch (error) {
        // A copy is gone with the handle.
        if (opened !== undefined) handle.life.begin();
        throw error;
      }
    },
  };
}

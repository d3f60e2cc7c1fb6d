import type { MaintenanceFacet } from "@throughline/core";
import { backupStore } from "./backup-store.ts";
import type { OpenOptions } from "./open-connection.ts";
import { repairStore } from "./repair-store.ts";
import type { StoreHandle } from "./store-handle.ts";
import { verifyStore } from "./verify-store.ts";

export function createMaintenance(handle: StoreHandle, options: OpenOptions): MaintenanceFacet {
  return {
    verify: (asked = {}) => verifyStore(handle, options.driver, asked),
    repair: ({ signal } = {}) => repairStore(handle, options, signal),
    backup: async (path, { signal } = {}) => {
      // Opening says what is wrong with the store in words of its own.
      await handle.read(() => undefined, signal);
      return backupStore(options, path, signal);
    },
  };
}

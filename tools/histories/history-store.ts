import { join } from "node:path";
import type { Clock, SessionStore } from "../../packages/core/src/index.ts";
import type { StoreLimits } from "../../packages/core/src/store-capabilities.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createMemoryData, type MemoryData } from "../../packages/store-memory/src/memory-data.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

/** Where the handles of one history open their store. */
export interface HistoryPlace {
  readonly folder: string;
  /** What handles of a store in memory have in common. */
  readonly data: MemoryData;
  readonly clock: Clock;
  readonly limits: Pick<StoreLimits, "pageRecords" | "pageBytes">;
}

/** A kind of store that histories are played on. */
export interface HistoryStore {
  readonly name: string;
  open(place: HistoryPlace, derivedDelayMs: number): SessionStore;
  /** The copy that a backup made. */
  openBackup(path: string, place: HistoryPlace): SessionStore;
}

const jsonl: HistoryStore = {
  name: "jsonl",
  open: ({ folder, clock, limits }, derivedDelayMs) =>
    createJsonlStore({ root: join(folder, "store"), clock, limits, derivedDelayMs }),
  openBackup: (root, { clock, limits }) => createJsonlStore({ root, clock, limits }),
};

const sqlite: HistoryStore = {
  name: "sqlite",
  open: ({ folder, clock, limits }) => createSqliteStore({ path: join(folder, "store.db"), clock, limits }),
  openBackup: (path, { clock, limits }) => createSqliteStore({ path, clock, limits }),
};

const memory: HistoryStore = {
  name: "memory",
  open: ({ data, clock, limits }) => createMemoryStore({ data, clock, limits }),
  openBackup: () => {
    throw new Error("A store in memory makes no backup.");
  },
};

export const historyStores: Readonly<Record<"jsonl" | "sqlite" | "memory", HistoryStore>> = { jsonl, sqlite, memory };

/** What the handles of a new place share. */
export function createHistoryPlace(folder: string, clock: Clock, limits: HistoryPlace["limits"]): HistoryPlace {
  return { folder, data: createMemoryData(), clock, limits };
}

import type { Clock, PayloadCodec, RecordIds, SessionEventListener, SessionStore } from "@throughline/core";
import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  storeFactoryKinds,
  type StoreLimits,
} from "@throughline/core/internal";
import { createStore } from "@throughline/store-kit";
import { createMemoryBackend, createMemoryData, type MemoryData } from "./memory-data.ts";

/** Configures `createMemoryStore`. */
export interface MemoryStoreOptions {
  /** Supplies the times that the store stamps. @default the system's clock */
  readonly clock?: Clock | undefined;
  /** Supplies record ids. @default ids of this process */
  readonly ids?: RecordIds | undefined;
  /**
   * Receives findings, changes of sessions, and records. The store ignores errors that it throws.
   * @default no listener
   */
  readonly onEvent?: SessionEventListener | undefined;
  /** Encodes payloads and entries in memory. @default payloads are kept as they are */
  readonly codec?: PayloadCodec | undefined;
  /** Overrides single limits of the store. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits> | undefined;
  /** Holds the sessions. Stores over the same data share them, and they outlive the handle. @default data of its own */
  readonly data?: MemoryData | undefined;
}

export const memoryStoreTable: OptionTable<MemoryStoreOptions> = {
  clock: storeFactoryKinds.clock,
  ids: storeFactoryKinds.ids,
  onEvent: storeFactoryKinds.onEvent,
  codec: storeFactoryKinds.codec,
  limits: storeFactoryKinds.limits,
  data: optionKinds.object,
};

/**
 * Creates a store that keeps its sessions in memory until the process ends.
 *
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 * @example
 * const store = createMemoryStore();
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): SessionStore {
  assertKnownOptions<MemoryStoreOptions>("createMemoryStore", options, memoryStoreTable, "options", "CONFIG_INVALID");
  const { data, ...others } = options;
  return createStore(createMemoryBackend(data ?? createMemoryData()), {
    ...others,
    name: "memory",
    durabilities: ["none"],
    persistent: data !== undefined,
    writers: "one-handle",
  });
}

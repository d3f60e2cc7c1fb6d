import { defaultIdempotency, defaultStoreLimits, refused, type StoreLimits } from "@throughline/core/internal";
import type { StoreCapabilities } from "@throughline/core";

/** Configures `createCapabilities`. */
interface CapabilityOptions extends Pick<StoreCapabilities, "name" | "durabilities" | "persistent" | "writers"> {
  /** Sets the durability of a write that names none. @default the strongest of `durabilities` */
  readonly defaultDurability?: StoreCapabilities["defaultDurability"];
  /** Lists the optional parts of the contract that the store has. @default none */
  readonly facets?: Partial<
    Pick<StoreCapabilities, "search" | "watch" | "fork" | "maintenance" | "partials" | "files" | "vectors">
  >;
  /** Sets the limits that differ from the usual ones. @default `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits> | undefined;
}

/**
 * Returns the capabilities that a store declares, deeply frozen.
 * @throws {ThroughlineError} CONFIG_INVALID when a limit is not a whole number from 1 on
 */
export function createCapabilities(options: CapabilityOptions): StoreCapabilities {
  const { name, persistent, writers, facets = {} } = options;
  const durabilities = Object.freeze([...options.durabilities]);
  const limits = Object.freeze({ ...defaultStoreLimits, ...options.limits });
  for (const [limit, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw refused("CONFIG_INVALID", `The limit ${limit} is a whole number from 1 on, not ${value}.`, {
        limit,
        value,
      });
  }
  return Object.freeze<StoreCapabilities>({
    specification: 1,
    name,
    durabilities,
    defaultDurability: options.defaultDurability ?? durabilities.at(-1) ?? "none",
    persistent,
    writers,
    search: facets.search ?? false,
    watch: facets.watch ?? false,
    fork: facets.fork ?? false,
    maintenance: facets.maintenance ?? false,
    partials: facets.partials ?? false,
    files: facets.files ?? false,
    vectors: facets.vectors ?? false,
    limits,
    idempotency: defaultIdempotency,
  });
}

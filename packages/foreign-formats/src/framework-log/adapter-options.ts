import type { Clock, RandomSource, SessionStore } from "@throughline/core";
import { optionKinds, type OptionTable, systemClock, systemRandom } from "@throughline/core/internal";

/** Holds the options that every adapter with more than one session takes. */
export interface AdapterOptions {
  /** Sets the store that holds the sessions. The caller closes it. */
  readonly store: SessionStore;
  /** Names the agent that the sessions belong to. @default "main" */
  readonly agentId?: string | undefined;
  /** Names the namespace of the sessions in the store. @default "" */
  readonly namespace?: string | undefined;
  /** Supplies the time that new records state. @default the system clock */
  readonly clock?: Clock | undefined;
  /** Supplies the randomness for session and record ids. @default the system's randomness */
  readonly random?: RandomSource | undefined;
}

/** Holds the options with their defaults filled in. */
export type SettledAdapterOptions = {
  readonly [Name in keyof AdapterOptions]-?: Exclude<AdapterOptions[Name], undefined>;
};

const { filledText, objectWith, required, text } = optionKinds;

/** States the kind of value that each adapter option takes, for `assertKnownOptions`. */
export const adapterOptionTable: OptionTable<AdapterOptions> = {
  store: required(objectWith("load", "append", "read")),
  agentId: filledText,
  namespace: text,
  clock: objectWith("nowMs", "sleep"),
  random: objectWith("uuid"),
};

/** Returns the options with every absent one replaced by its default. */
export function adapterOptions({
  store,
  agentId = "main",
  namespace = "",
  clock = systemClock,
  random = systemRandom,
}: AdapterOptions): SettledAdapterOptions {
  return { store, agentId, namespace, clock, random };
}

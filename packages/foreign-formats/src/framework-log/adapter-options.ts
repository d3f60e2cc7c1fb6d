import type { Clock, RandomSource, SessionStore } from "@throughline/core";
import { optionKinds, type OptionTable, systemClock, systemRandom } from "@throughline/core/internal";

/** Options that every adapter has which keeps many sessions. */
export interface AdapterOptions {
  /** The store of the sessions; stays the caller's to close. */
  readonly store: SessionStore;
  /** The agent of the sessions. @default "main" */
  readonly agentId?: string;
  /** The namespace of the sessions. @default "" */
  readonly namespace?: string;
  /** The time that records state. @default the system's */
  readonly clock?: Clock;
  /** Source of session and record ids. @default the system's */
  readonly random?: RandomSource;
}

const { filledText, objectWith, required, text } = optionKinds;

/** What the values of these options are. */
export const adapterOptionTable: OptionTable<AdapterOptions> = {
  store: required(objectWith("load", "append", "read")),
  agentId: filledText,
  namespace: text,
  clock: objectWith("nowMs", "sleep"),
  random: objectWith("uuid"),
};

/** The options with their defaults. */
export function adapterOptions({
  store,
  agentId = "main",
  namespace = "",
  clock = systemClock,
  random = systemRandom,
}: AdapterOptions): Required<AdapterOptions> {
  return { store, agentId, namespace, clock, random };
}

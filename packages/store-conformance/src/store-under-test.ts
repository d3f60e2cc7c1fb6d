import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { PayloadCodec, SessionEvent, SessionRef, SessionStore } from "@throughline/core";
import type { WriteOutcome } from "@throughline/core/internal";

/** Provides a new, empty store and what a test may do to it. Each optional member enables the cases that need it. */
export interface StoreUnderTest {
  /** Holds the store, empty and open. */
  readonly store: SessionStore;
  /** Closes `store` and opens the same data again. */
  reopen?(): Promise<SessionStore>;
  /** Opens a second handle on the same data while the first stays open. */
  another?(): Promise<SessionStore>;
  /** Returns the content of all files of the store, to search for text that must not be there. */
  files?(): Promise<readonly Uint8Array[]>;
  /** Returns the events that the store has announced. */
  events?(): readonly SessionEvent[];
  /** Moves the store's clock forward, by milliseconds. */
  advanceClock?(deltaMs: number): void;
  /**
   * Makes the storage fail during the next append. With `unknown` it fails after it received the write, which may then
   * be applied. With `not-applied` it fails before.
   */
  failNextAppend?(outcome: WriteOutcome): void;
  /** Damages the stored entry of the session, as a disk might, so that it cannot be read. */
  damageEntry?(ref: SessionRef): void | Promise<void>;
  /** Starts another process that holds the agent's lock (`exclusively`) until `kill` has ended it with SIGKILL. */
  holdElsewhere?(agent: { readonly namespace: string; readonly agentId: string }): Promise<{ kill(): Promise<void> }>;
  /** Closes every handle and removes the data. */
  dispose(): Promise<void>;
}

/** Opens the stores that the kit tests. */
export interface ConformanceSetup {
  /** Opens a store that shares no data with those opened before. */
  open(): Promise<StoreUnderTest>;
  /**
   * Opens a store that encodes every payload with the codec. The codec must be passed on unwrapped: a case may change
   * its name and key and reopen the store.
   */
  openWithCodec?(codec: PayloadCodec): Promise<StoreUnderTest>;
}

export const setupTable: OptionTable<ConformanceSetup> = {
  open: optionKinds.required(optionKinds.callback),
  openWithCodec: optionKinds.callback,
};

/** Names what a case may need of the setup; `exclusively` is a method of the store itself. */
export type ConformanceAbility =
  | "reopen"
  | "another"
  | "files"
  | "events"
  | "advanceClock"
  | "failNextAppend"
  | "damageEntry"
  | "holdElsewhere"
  | "exclusively"
  | "codec";

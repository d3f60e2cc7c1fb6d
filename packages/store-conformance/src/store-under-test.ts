import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { PayloadCodec, SessionEvent, SessionRef, SessionStore, WriteOutcome } from "@throughline/core";

/** A fresh, empty store and what a test may do to it. Every optional member opens the door to the cases that need it. */
export interface StoreUnderTest {
  /** The store, empty and open. */
  readonly store: SessionStore;
  /** Closes `store` and opens the same data again. */
  reopen?(): Promise<SessionStore>;
  /** A second handle on the same data while the first stays open. */
  another?(): Promise<SessionStore>;
  /** The content of everything the store has written, to be searched for text that must not be there. */
  files?(): Promise<readonly Uint8Array[]>;
  /** The events the store has announced. */
  events?(): readonly SessionEvent[];
  /** Moves the store's clock forward. */
  advanceClock?(deltaMs: number): void;
  /**
   * Makes the storage below the next append fail: `unknown` after the write was handed over, so that it may be
   * there or not; `not-applied` before.
   */
  failNextAppend?(outcome: WriteOutcome): void;
  /** Damages what is kept of the session's entry, so that it cannot be read, as a disk might. */
  damageEntry?(ref: SessionRef): void | Promise<void>;
  /** Starts another process that holds the agent's lock (`exclusively`) until `kill` has ended it with SIGKILL. */
  holdElsewhere?(agent: { readonly namespace: string; readonly agentId: string }): Promise<{ kill(): Promise<void> }>;
  /** Closes every handle and removes the data. */
  dispose(): Promise<void>;
}

/** How the kit gets at a store. */
export interface ConformanceSetup {
  /** A store that shares nothing with those opened before. */
  open(): Promise<StoreUnderTest>;
  /** The same with a codec around every payload. The codec is handed on as it is: a case may change its name and key and reopen. */
  openWithCodec?(codec: PayloadCodec): Promise<StoreUnderTest>;
}

/** The kinds of a setup. */
export const setupTable: OptionTable<ConformanceSetup> = {
  open: optionKinds.required(optionKinds.callback),
  openWithCodec: optionKinds.callback,
};

/** What a case may need of the setup; `exclusively` is the store's own. */
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

import type { SessionStore } from "@throughline/core";
import { replaceMembers } from "./store-proxies.ts";

/** A node that was stopped, and may come back. */
export interface StoppingStore {
  readonly store: SessionStore;
  /** Settles when the node has stopped. */
  readonly isStopped: Promise<void>;
  /** Lets it go on: its append comes late. */
  wake(): void;
}

/** A node that stops at its next append with records, before the store has it, and goes on at `wake`. */
export function stoppingStore(store: SessionStore): StoppingStore {
  const stopped = Promise.withResolvers<void>();
  const woken = Promise.withResolvers<void>();
  const append: SessionStore["append"] = async (ref, drafts, options) => {
    if (drafts.length > 0) {
      stopped.resolve();
      await woken.promise;
    }
    return store.append(ref, drafts, options);
  };
  return { store: replaceMembers(store, { append }), isStopped: stopped.promise, wake: woken.resolve };
}

import type { SessionStore } from "@throughline/core";
import { replaceMembers } from "./store-proxies.ts";

/** Simulates a node that stops and may wake later. */
export interface StoppingStore {
  readonly store: SessionStore;
  /** Resolves when the node has stopped. */
  readonly isStopped: Promise<void>;
  /** Resumes the node, so that its append reaches the store late. */
  wake(): void;
}

/**
 * Creates a store that stops at its next append with records, before the append reaches `store`, and resumes at `wake`.
 */
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

import type { SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";

/** A store of which a client can read: every method that writes refuses, whatever calls it. */
export function readOnlyStore(store: SessionStore): SessionStore {
  const refuse = async (): Promise<never> => {
    throw refused("STORE_READ_ONLY", "The store is open for reading only.");
  };
  const { search } = store;
  return {
    capabilities: store.capabilities,
    // Of an index only what a search needs: rebuilding it is a write.
    ...(search === undefined ? {} : { search: { search: (query) => search.search(query), lag: () => search.lag() } }),
    read: (ref, options) => store.read(ref, options),
    load: (ref, options) => store.load(ref, options),
    list: (query) => store.list(query),
    append: refuse,
    save: refuse,
    move: refuse,
    remove: refuse,
    redact: refuse,
    close: refuse,
    [Symbol.asyncDispose]: refuse,
  };
}

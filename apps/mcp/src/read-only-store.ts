import type { SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";

/** Refuses every write, so that no code path of a client can change the store. */
export function readOnlyStore(store: SessionStore): SessionStore {
  const refuse = async (): Promise<never> => {
    throw refused("STORE_READ_ONLY", "The store is open for reading only.");
  };
  const { search } = store;
  return {
    capabilities: store.capabilities,
    // A search needs only these two methods of the index; rebuilding the index would be a write.
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

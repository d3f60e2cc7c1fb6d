import { ThroughlineError, type SessionStore } from "@throughline/core";
import { aroundCalls } from "./store-proxies.ts";

/** A store whose process ends at one of its calls. */
export interface EndingStore {
  readonly store: SessionStore;
  /** How many calls were begun. */
  made(): number;
}

/**
 * A store whose process ends at its n-th call: before the call is done, or after it. Every later call fails too, with
 * STORE_CLOSED.
 */
export function endingStore(store: SessionStore, calls: number, isDone: boolean): EndingStore {
  let made = 0;
  const gone = (): ThroughlineError => new ThroughlineError("STORE_CLOSED", "the process is gone");
  const ending = aroundCalls(store, ({ name, run }) => {
    if (name === "close") return run();
    made++;
    if (made > calls || (made === calls && !isDone)) {
      if (name === "read") throw gone();
      return Promise.reject(gone());
    }
    const result = run();
    return made < calls || name === "read" ? result : Promise.resolve(result).then(() => Promise.reject(gone()));
  });
  return { store: ending, made: () => made };
}

/**
 * Ends a process at its 1st, 2nd, … call, before the call is done and after it, until one survives.
 * @param tryEnd makes what is needed with the real store, lets the work run over `end(store)`, and checks what is left
 * @returns how many calls the work makes
 */
export async function endEverywhere(
  tryEnd: (end: (store: SessionStore) => SessionStore) => Promise<void>,
): Promise<number> {
  let made = 0;
  for (const isDone of [false, true]) {
    for (let calls = 1; ; calls++) {
      const ends: EndingStore[] = [];
      await tryEnd((store) => {
        const ending = endingStore(store, calls, isDone);
        ends.push(ending);
        return ending.store;
      });
      const [end] = ends;
      if (end === undefined || ends.length > 1) throw new Error(`${ends.length} stores that end; there must be one`);
      made = end.made();
      if (made < calls) break;
    }
  }
  return made;
}

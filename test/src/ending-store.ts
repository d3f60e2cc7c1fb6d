import { ThroughlineError, type SessionStore } from "@throughline/core";
import { aroundCalls } from "./store-proxies.ts";

/** Simulates a store whose process ends at one of its calls. */
export interface EndingStore {
  readonly store: SessionStore;
  /** Returns how many calls have started. */
  made(): number;
}

/**
 * Creates a store whose process ends at its n-th call. `isDone` decides whether that call takes effect. Every later
 * call fails with STORE_CLOSED.
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
 * Runs the work once for each call and ends the process there, first before the call takes effect, then after it. It
 * stops at the first run that survives.
 * @param tryEnd prepares data with the real store, runs the work over `end(store)`, and checks the result
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

import type { Clock } from "@throughline/core";
import { within } from "../within.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";

/** A call whose answer the client has heard, and that is on its way into the store. */
export interface CallInStoring {
  readonly stored: Promise<unknown>;
  /** The key of its session; null until that is chosen. */
  readonly key: () => string | null;
}

/** How long a request waits for what the client has heard already, and the store not yet. */
const mostWaitMs = 5000;
/** The same while other requests wait for this one. */
const mostPlacingMs = 1000;

/** Calls in storing. What a client asks next may follow one of them. */
export class CallsInStoring {
  readonly #clock: Clock;
  readonly #byScope = new Map<string, Set<CallInStoring>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(scope: GatewayScope, call: CallInStoring): void {
    const name = JSON.stringify(scope);
    const calls = this.#byScope.get(name) ?? new Set();
    this.#byScope.set(name, calls.add(call));
    const done = (): void => {
      calls.delete(call);
      if (calls.size === 0) this.#byScope.delete(name);
    };
    call.stored.then(done, done);
  }

  /**
   * The same look-up, which looks again for a reply once the calls of the scope are stored.
   *
   * @param isPlacing the look-up is a part of the choice of a session: a call whose own choice comes later is not waited for
   */
  waitedFor(lookup: SessionLookup, isPlacing: boolean): SessionLookup {
    return {
      ...lookup,
      find: async (scope, what, id) => {
        const keys = await lookup.find(scope, what, id);
        if (keys.length > 0 || what === "first-message") return keys;
        const all = this.#of(scope);
        const calls = isPlacing ? all.filter((call) => call.key() !== null) : all;
        if (calls.length === 0) return keys;
        await this.#stored(calls, isPlacing ? mostPlacingMs : mostWaitMs);
        return lookup.find(scope, what, id);
      },
    };
  }

  /** Resolves once the calls of a session are stored, or after a time. */
  async settled(scope: GatewayScope, key: string): Promise<void> {
    const calls = this.#of(scope).filter((call) => call.key() === key);
    if (calls.length > 0) await this.#stored(calls, mostPlacingMs);
  }

  #of(scope: GatewayScope): readonly CallInStoring[] {
    return [...(this.#byScope.get(JSON.stringify(scope)) ?? [])];
  }

  async #stored(calls: readonly CallInStoring[], ms: number): Promise<void> {
    await within(this.#clock, Promise.allSettled(calls.map((call) => call.stored)), ms);
  }
}

import type { Clock } from "@throughline/core";
import { type SplitRequest, unitIds } from "@throughline/wire/internal";
import { within } from "../within.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";

/** A call whose answer the client has heard, and that is on its way into the store. */
export interface CallInStoring {
  readonly stored: Promise<unknown>;
  /** Settles once its session is chosen, or cannot be. */
  readonly placed: Promise<unknown>;
  /** The key of its session; null until that is chosen. */
  readonly key: () => string | null;
  /** When it began, among all; null: its session is chosen later, and elsewhere. */
  readonly order: CallOrder | null;
}

/** Where a call stands among the others. */
export interface CallOrder {
  /** Grows with each call that begins. */
  readonly number: number;
  /** The id of its first message; null for none. */
  readonly first: string | null;
}

/** @param split what the first message is read from, once it is asked for */
export function orderOf(number: number, split: SplitRequest): CallOrder {
  let first: string | null | undefined;
  return {
    number,
    get first() {
      return (first ??= unitIds(split).first);
    },
  };
}

/** How long a request waits for what the client has heard already, and the store not yet. */
const mostWaitMs = 5000;
/** The same while other requests wait for this one. */
const mostPlacingMs = 1000;

/** How long a request waits for the note of a reply that another node may be storing, and how often it looks. */
const mostNodeMs = 2000;
const nodePollMs = 100;

/** A look-up that can wait for other nodes. */
export interface WaitingLookup extends SessionLookup {
  /**
   * Finds a reply that the client has heard, so that another node may be storing it. Gives nothing where no note of it comes
   * in time, or where no other node writes to the store.
   */
  awaited(scope: GatewayScope, what: "first-reply" | "response", id: string): Promise<readonly string[]>;
}

/** Calls in storing. What a client asks next may follow one of them. */
export class CallsInStoring {
  readonly #clock: Clock;
  readonly #hasNodes: boolean;
  readonly #byScope = new Map<string, Set<CallInStoring>>();

  /** @param hasNodes whether other nodes may write to the store */
  constructor(clock: Clock, hasNodes: boolean) {
    this.#clock = clock;
    this.#hasNodes = hasNodes;
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
   * The same look-up, which looks again for a reply once the calls of the scope are stored. The id of a response is one that a
   * client was given, so that other nodes are waited for as well.
   *
   * @param before the look-up is a part of the choice of a session, of this call: what began after it is not waited for, nor is
   * a conversation that begins otherwise
   * @param mayWait whether other nodes are waited for
   */
  waitedFor(lookup: SessionLookup, before: CallOrder | null = null, mayWait = true): WaitingLookup {
    const awaited: WaitingLookup["awaited"] = async (scope, what, id) => {
      if (!this.#hasNodes || !mayWait) return [];
      for (let waitedMs = 0; waitedMs < mostNodeMs; waitedMs += nodePollMs) {
        await this.#clock.sleep(nodePollMs);
        const keys = await lookup.find(scope, what, id);
        if (keys.length > 0) return keys;
      }
      return [];
    };
    const here = this.#foundHere(lookup, before);
    return {
      ...lookup,
      awaited,
      find: async (scope, what, id) => {
        const keys = await here(scope, what, id);
        return keys.length > 0 || what !== "response" ? keys : awaited(scope, what, id);
      },
    };
  }

  /** The look-up of a reply that calls of this process may still be storing. */
  #foundHere(lookup: SessionLookup, before: CallOrder | null): SessionLookup["find"] {
    return async (scope, what, id) => {
      const keys = await lookup.find(scope, what, id);
      if (keys.length > 0 || what === "first-message") return keys;
      const all = before === null ? this.#of(scope) : this.#before(scope, before);
      const calls = what === "response" ? all : all.filter(({ order }) => order?.first === before?.first);
      if (calls.length === 0) return keys;
      if (before !== null) {
        // Behind others that begin alike the choice takes its time, and only after that the storing.
        const placed = Promise.allSettled(calls.map((call) => call.placed));
        await within(this.#clock, placed, mostWaitMs);
      }
      await this.#stored(calls, before === null ? mostWaitMs : mostPlacingMs);
      const noted = lookup.remembered(scope, what, id);
      return noted.length > 0 ? noted : lookup.find(scope, what, id);
    };
  }

  /** Resolves once the calls of a session that began before this one are stored, or after a time. */
  async settled(scope: GatewayScope, key: string, order: CallOrder): Promise<void> {
    const calls = this.#before(scope, order).filter((call) => call.key() === key);
    if (calls.length > 0) await this.#stored(calls, mostPlacingMs);
  }

  #before(scope: GatewayScope, { number }: CallOrder): readonly CallInStoring[] {
    return this.#of(scope).filter(({ order }) => order !== null && order.number < number);
  }

  #of(scope: GatewayScope): readonly CallInStoring[] {
    return [...(this.#byScope.get(JSON.stringify(scope)) ?? [])];
  }

  async #stored(calls: readonly CallInStoring[], ms: number): Promise<void> {
    await within(this.#clock, Promise.allSettled(calls.map((call) => call.stored)), ms);
  }
}

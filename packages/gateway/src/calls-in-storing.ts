import type { Clock } from "@throughline/core";
import { type SplitRequest, unitIds } from "./wire/index.ts";
import { within } from "./within.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";

export interface CallInStoring {
  readonly stored: Promise<unknown>;
  /** Settles when the session of the call is chosen or the choice failed. */
  readonly placed: Promise<unknown>;
  readonly key: () => string | null;
  /** Is null when other code chooses the session later, so that no later call can wait for this one by order. */
  readonly order: CallOrder | null;
}

export interface CallOrder {
  /** Grows with each call that starts in this process. */
  readonly number: number;
  /** Is null when the request has no message. */
  readonly first: string | null;
}

/** @param split the request; its first message is hashed only when `first` is read */
export function orderOf(number: number, split: SplitRequest): CallOrder {
  let first: string | null | undefined;
  return {
    number,
    get first() {
      return (first ??= unitIds(split).first);
    },
  };
}

/** Limits how long a request waits for the records of a reply that the client already has. */
const mostWaitMs = 5000;
/** Is shorter than `mostWaitMs`, because other requests wait for this one meanwhile. */
const mostPlacingMs = 1000;

/** Limits how long a request polls for the note of a reply that another node may be storing. */
const mostNodeMs = 2000;
const nodePollMs = 100;

export interface WaitingLookup extends SessionLookup {
  /**
   * Finds a reply that the client has seen, which another node may be storing now. Returns no keys when the note does
   * not appear in time, or when no other node writes to the store.
   */
  awaited(scope: GatewayScope, what: "first-reply" | "response", id: string): Promise<readonly string[]>;
}

/** Tracks the calls that are being stored, because the client's next request may continue one of them. */
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
   * Wraps a lookup so that it repeats a failed search after the calls of the scope are stored. The client may have the
   * id of a response from another node, so that search waits for other nodes too.
   *
   * @param before the call whose session is being chosen; the search waits only for calls that started before it and
   *   share its first message
   * @param mayWait whether the search waits for other nodes
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

  #foundHere(lookup: SessionLookup, before: CallOrder | null): SessionLookup["find"] {
    return async (scope, what, id) => {
      const keys = await lookup.find(scope, what, id);
      if (keys.length > 0 || what === "first-message") return keys;
      const all = before === null ? this.#of(scope) : this.#before(scope, before);
      const calls = what === "response" ? all : all.filter(({ order }) => order?.first === before?.first);
      if (calls.length === 0) return keys;
      if (before !== null) {
        // Calls that share a first message choose their sessions one after the other, so their choices must end before
        // the storing is awaited.
        const placed = Promise.allSettled(calls.map((call) => call.placed));
        await within(this.#clock, placed, mostWaitMs);
      }
      await this.#stored(calls, before === null ? mostWaitMs : mostPlacingMs);
      const noted = lookup.remembered(scope, what, id);
      return noted.length > 0 ? noted : lookup.find(scope, what, id);
    };
  }

  /** Stops waiting after a timeout, because a slow store must not block the next request. */
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

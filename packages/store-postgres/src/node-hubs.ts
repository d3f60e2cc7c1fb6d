import type { SessionRef, ThroughlineError } from "@throughline/core";
import type { WatchHub } from "@throughline/store-kit";
import type { Reached } from "@throughline/store-kit/internal";

/**
 * Holds a hub for each node of Citus, and one for a server without others. The watches of a node that does not answer
 * hold up no others. A watch stays in its hub when its shard moves to another node.
 */
export class NodeHubs {
  readonly #hubs = new Map<string | null, WatchHub<Reached>>();
  readonly #create: (node: string | null) => WatchHub<Reached>;
  readonly #nodeOf: (ref: SessionRef) => string | null;
  #error: ThroughlineError | null = null;

  constructor(create: (node: string | null) => WatchHub<Reached>, nodeOf: (ref: SessionRef) => string | null) {
    this.#create = create;
    this.#nodeOf = nodeOf;
  }

  /** Returns the hub for a new watch of a session. */
  of(ref: SessionRef): WatchHub<Reached> {
    const node = this.#nodeOf(ref);
    const known = this.#hubs.get(node);
    if (known !== undefined) return known;
    const hub = this.#create(node);
    this.#hubs.set(node, hub);
    if (this.#error !== null) hub.end(this.#error);
    return hub;
  }

  /** Wakes the watches of a session that this handle has written to. */
  wake(key: string): void {
    for (const hub of this.#hubs.values()) hub.wake(key);
  }

  /** Refreshes at once after a change that names no session. */
  lookSoon(): void {
    for (const hub of this.#hubs.values()) hub.lookSoon();
  }

  /** Ends every watch with the error. */
  end(error: ThroughlineError): void {
    this.#error ??= error;
    for (const hub of this.#hubs.values()) hub.end(error);
  }
}

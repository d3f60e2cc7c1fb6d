import type { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { TenantAgent } from "./layout.ts";

/** Gives a share back, and states whether the node had answered, if it was asked. */
export type GiveShareBack = (hasAnswered?: boolean) => void;

/** Returns the node of an agent's rows, or a name for all nodes together without an agent. It is null for one node. */
type NodeOf = (agent: TenantAgent | undefined) => string | null;

interface Line {
  held: number;
  hasAnswered: boolean;
  readonly waiting: (() => void)[];
}

/**
 * Limits how many connections of a pool work for one node of Citus. A node that does not answer keeps its connections
 * until their deadlines. The operations of its tenants then wait in their own line, and the rest of the pool stays free
 * for the other tenants.
 */
export class NodeShares {
  readonly #lines = new Map<string, Line>();
  readonly #most: number;
  readonly #maxWaiting: number;
  readonly nodeOf: NodeOf;

  /**
   * One node has at most a third of the connections, and so have the operations that ask all nodes. While one node does
   * not answer, a third is left in any case.
   */
  constructor(maxConnections: number, maxWaiting: number, nodeOf: NodeOf) {
    this.#most = Math.max(1, Math.floor(maxConnections / 3));
    this.#maxWaiting = maxWaiting;
    this.nodeOf = nodeOf;
  }

  /** @throws {ThroughlineError} STORE_OVERLOADED if too many operations wait for this node already */
  take(node: string): Promise<GiveShareBack> {
    const line = this.#lineOf(node);
    const giveBack = once((hasAnswered) => {
      line.hasAnswered = hasAnswered ?? line.hasAnswered;
      const next = line.waiting.shift();
      // The share goes to the next operation, so the number of shares stays.
      if (next === undefined) line.held -= 1;
      else next();
    });
    if (line.held < this.#most) {
      line.held += 1;
      return Promise.resolve(giveBack);
    }
    if (line.waiting.length >= this.#maxWaiting)
      throw refused("STORE_OVERLOADED", `${this.#maxWaiting} operations wait for one node already.`, {
        maxWaiting: this.#maxWaiting,
      });
    return new Promise((resolve) => line.waiting.push(() => resolve(giveBack)));
  }

  /** Returns the error for an operation that got no share by its deadline. */
  refusal(node: string, timeoutMs: number, place: string): ThroughlineError {
    const details = { timeoutMs, place };
    return this.#lineOf(node).hasAnswered
      ? refused("STORE_OVERLOADED", `No connection for this node was free within ${timeoutMs} ms.`, details)
      : refused("STORE_UNREACHABLE", `A node behind ${place} did not answer within ${timeoutMs} ms.`, details);
  }

  #lineOf(node: string): Line {
    let line = this.#lines.get(node);
    if (line === undefined) this.#lines.set(node, (line = { held: 0, hasAnswered: true, waiting: [] }));
    return line;
  }
}

/** A connection may be given back twice, because it may break afterwards. */
function once(giveBack: GiveShareBack): GiveShareBack {
  let isGiven = false;
  return (hasAnswered) => {
    if (isGiven) return;
    isGiven = true;
    giveBack(hasAnswered);
  };
}

import type { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { TenantAgent } from "./layout.ts";
import { waitWithin, type WaitOptions } from "./wait-within.ts";

/** Gives a share back, and states whether the node had answered, if it was asked. */
export type GiveShareBack = (hasAnswered?: boolean) => void;

/** Returns the node of an agent's rows, or a name for all nodes together without an agent. It is null for one node. */
type NodeOf = (agent: TenantAgent | undefined) => string | null;

/** States how long an operation waits for a share, and what the error says. */
interface ShareWait extends Pick<WaitOptions<GiveShareBack>, "withinMs" | "signal" | "ending"> {
  /** Limits the whole operation. */
  readonly timeoutMs: number;
  /** Names host and database. */
  readonly place: string;
}

interface Line {
  held: number;
  hasAnswered: boolean;
  readonly waiting: Set<() => void>;
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
   * not answer, at least a third is left. A pool of one or two connections has no thirds. There one node has one of
   * them, so nothing may be left.
   */
  constructor(maxConnections: number, maxWaiting: number, nodeOf: NodeOf) {
    this.#most = shareOf(maxConnections);
    this.#maxWaiting = maxWaiting;
    this.nodeOf = nodeOf;
  }

  /**
   * Waits for a share of a node. An operation that gives up leaves the line at once.
   * @throws {ThroughlineError} STORE_OVERLOADED if too many operations wait for this node already, or if no share is free
   * by the deadline; STORE_UNREACHABLE if the node did not answer before; ABORTED, STORE_CLOSED
   */
  async take(node: string, wait: ShareWait): Promise<GiveShareBack> {
    const line = this.#lineOf(node);
    const giveBack = once((hasAnswered) => {
      line.hasAnswered = hasAnswered ?? line.hasAnswered;
      const [next] = line.waiting;
      // The share goes to the next operation, so the number of shares stays.
      if (next === undefined) line.held -= 1;
      else next();
    });
    if (line.held < this.#most) {
      line.held += 1;
      return giveBack;
    }
    if (line.waiting.size >= this.#maxWaiting)
      throw refused("STORE_OVERLOADED", `${this.#maxWaiting} operations wait for one node already.`, {
        maxWaiting: this.#maxWaiting,
      });
    const { promise, resolve } = Promise.withResolvers<GiveShareBack>();
    const begin = (): void => {
      line.waiting.delete(begin);
      resolve(giveBack);
    };
    line.waiting.add(begin);
    const late = (): ThroughlineError => refusal(line, wait);
    return waitWithin(promise, { ...wait, late, unwanted: (giveUnused) => giveUnused() }).finally(() =>
      line.waiting.delete(begin),
    );
  }

  #lineOf(node: string): Line {
    let line = this.#lines.get(node);
    if (line === undefined) this.#lines.set(node, (line = { held: 0, hasAnswered: true, waiting: new Set() }));
    return line;
  }
}

function refusal({ hasAnswered }: Line, { timeoutMs, place }: ShareWait): ThroughlineError {
  const details = { timeoutMs, place };
  return hasAnswered
    ? refused("STORE_OVERLOADED", `No connection for this node was free within ${timeoutMs} ms.`, details)
    : refused("STORE_UNREACHABLE", `A node behind ${place} did not answer within ${timeoutMs} ms.`, details);
}

/** Returns how many of a pool's connections may work for one node. */
export function shareOf(maxConnections: number): number {
  return Math.max(1, Math.floor(maxConnections / 3));
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

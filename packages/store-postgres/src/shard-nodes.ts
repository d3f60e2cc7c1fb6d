import type { Clock } from "@throughline/core";
import type { ConnectionPool } from "./connection-pool.ts";
import { tenantOf, type TenantAgent } from "./layout.ts";

/** Shards move seldom. An outdated place only counts a connection for the wrong node. */
const freshForMs = 60_000;

interface ShardRange {
  readonly last: number;
  readonly node: string;
}

interface ShardPlace {
  readonly pool: ConnectionPool;
  readonly schema: string;
  readonly clock: Clock;
}

/** Knows on which node of Citus the rows of an agent are. */
export class ShardNodes {
  readonly #place: ShardPlace;
  #ranges: readonly ShardRange[] = [];
  #hasMany = false;
  #readAtMs = 0;

  private constructor(place: ShardPlace) {
    this.#place = place;
  }

  static async read(place: ShardPlace): Promise<ShardNodes> {
    const nodes = new ShardNodes(place);
    await nodes.#read();
    return nodes;
  }

  /**
   * Returns the node of an agent, and a name for all nodes together without an agent. It is null while one node has all
   * shards, because then no other tenants need protection.
   */
  nodeOf(agent: TenantAgent | undefined): string | null {
    const { clock } = this.#place;
    if (clock.nowMs() - this.#readAtMs > freshForMs) {
      this.#readAtMs = clock.nowMs();
      // The next minute tries again, and the operation itself reports an unreachable server.
      this.#read().catch(() => undefined);
    }
    if (!this.#hasMany) return null;
    // The operation itself refuses an agent without texts.
    if (typeof agent?.namespace !== "string" || typeof agent.agentId !== "string") return "all";
    const hash = hashOf(BigInt(tenantOf(agent)));
    return this.#ranges.find(({ last }) => hash <= last)?.node ?? "all";
  }

  async #read(): Promise<void> {
    const { pool, schema, clock } = this.#place;
    const rows = await pool.run(
      `SELECT s.shardmaxvalue AS last, min(p.groupid)::text AS node
       FROM pg_catalog.pg_dist_shard s JOIN pg_catalog.pg_dist_placement p ON p.shardid OPERATOR(pg_catalog.=) s.shardid
       WHERE s.logicalrelid OPERATOR(pg_catalog.=) '${schema}.sessions'::pg_catalog.regclass
       GROUP BY s.shardid, s.shardmaxvalue ORDER BY s.shardmaxvalue::int`,
      [],
      { isRead: true, node: null },
    );
    this.#ranges = rows.map(({ last, node }) => ({ last: Number(last), node: String(node) }));
    this.#hasMany = new Set(this.#ranges.map(({ node }) => node)).size > 1;
    this.#readAtMs = clock.nowMs();
  }
}

/** Returns PostgreSQL's `hashint8` of a number, by which Citus finds the shard of a row. */
export function hashOf(value: bigint): number {
  const [low, high] = [Number(BigInt.asUintN(32, value)), Number(BigInt.asUintN(32, value >> 32n))];
  const start = (0x9e_37_79_b9 + 4 + 3_923_095) | 0;
  let [a, b, c] = [(start + (low ^ (value >= 0n ? high : ~high))) | 0, start, start];
  const turned = (word: number, by: number): number => (word << by) | (word >>> (32 - by));
  c = ((c ^ b) - turned(b, 14)) | 0;
  a = ((a ^ c) - turned(c, 11)) | 0;
  b = ((b ^ a) - turned(a, 25)) | 0;
  c = ((c ^ b) - turned(b, 16)) | 0;
  a = ((a ^ c) - turned(c, 4)) | 0;
  b = ((b ^ a) - turned(a, 14)) | 0;
  return ((c ^ b) - turned(b, 24)) | 0;
}

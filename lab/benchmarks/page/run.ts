// What one run of lab/benchmarks/page.ts measures.
import type { GatewayResult } from "../../../benchmarks/gateway.ts";
import type { PeerClass } from "../../../benchmarks/peers.ts";
import type { Growth } from "./growth.ts";

/** Everything that the page shows. */
export interface Run {
  readonly date: string;
  readonly machine: {
    readonly cores: number;
    readonly memoryGb: number;
    readonly system: string;
    readonly node: string;
  };
  readonly version: string;
  readonly turns: number;
  readonly rounds: number;
  readonly minutes: number;
  readonly peers: readonly PeerClass[];
  readonly growth: readonly Growth[];
  readonly gateway: GatewayResult;
}

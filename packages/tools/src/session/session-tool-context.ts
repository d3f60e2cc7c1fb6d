import type { AgentToolCall, Clock, RandomSource } from "@throughline/core";
import type { SpawnLimits } from "./spawn-session.ts";
import type { SendPolicy } from "@throughline/policy";
import type { HistoryLimits } from "./history-lines.ts";
import type { SessionDeliverer } from "./deliver-message.ts";
import type { VisibleSessions } from "./visible-sessions.ts";

export interface SessionToolContext {
  /** @throws {SessionToolRefusal} `no-session` for a call that belongs to no session */
  sessionsOf(call: AgentToolCall): VisibleSessions;
  readonly deliver: SessionDeliverer;
  readonly spawnLimits: SpawnLimits;
  readonly sendPolicy: SendPolicy | null;
  readonly limits: HistoryLimits & { readonly messageLength: number; readonly hops: number };
  readonly clock: Clock;
  readonly random: RandomSource;
}

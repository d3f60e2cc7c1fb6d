import type { AgentToolCall, Clock, RandomSource } from "@throughline/core";
import type { SpawnLimits } from "./spawn-session.ts";
import type { SendPolicy } from "@throughline/policy";
import type { HistoryLimits } from "./history-lines.ts";
import type { SessionDeliverer } from "./deliver-message.ts";
import type { VisibleSessions } from "./visible-sessions.ts";

/** What the tools share. */
export interface SessionToolContext {
  /** What the session of a call may see. @throws {SessionToolRefusal} for a call outside of one */
  sessionsOf(call: AgentToolCall): VisibleSessions;
  readonly deliver: SessionDeliverer;
  readonly spawnLimits: SpawnLimits;
  readonly sendPolicy: SendPolicy | null;
  readonly limits: HistoryLimits & { readonly messageLength: number; readonly hops: number };
  readonly clock: Clock;
  readonly random: RandomSource;
}

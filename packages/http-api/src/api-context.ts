import type { Clock, Finding, SessionRef, SessionStore } from "@throughline/core";
import type { UsageQueue } from "@throughline/usage/internal";
import type { BodyBudget } from "@throughline/gateway/internal";
import type { TurnRules } from "@throughline/session/internal";
import type { Hub } from "./events/hub.ts";
import type { OpenStreams } from "./events/open-streams.ts";
import type { CursorSeal } from "./http/seal-cursor.ts";
import type { AuditLog } from "./security/audit-log.ts";
import type { LiveAnswers } from "./security/live-answers.ts";
import type { TokenStore } from "./security/token-store.ts";
import type { SessionApiLimits } from "./api-options.ts";
import type { UsageMeter } from "./operations/usage-meter.ts";
import type { Summaries } from "./summaries.ts";

export interface ApiContext {
  readonly store: SessionStore;
  readonly version: string;
  readonly limits: SessionApiLimits;
  readonly cursors: CursorSeal;
  readonly clock: Clock;
  readonly hub: Hub;
  readonly streams: OpenStreams;
  readonly live: LiveAnswers;
  readonly bodies: BodyBudget;
  readonly tokens: TokenStore;
  readonly audit: AuditLog;
  readonly usage: UsageMeter;
  /** Adds up the tokens and the cost of the calls in sessions. */
  readonly callUsage: UsageQueue;
  readonly summaries: Summaries;
  readonly turnRules: TurnRules;
  document(): string;
  /** Is called after a request changed a session, so that the gateway drops its cached copy. */
  onChanged(ref: SessionRef): void;
  /** Handles a redaction or purge. Returns how many spooled gateway calls may still hold the erased content. */
  onErased(ref: SessionRef, isPurged: boolean): Promise<number>;
  drain(): void;
  findingsOf(namespace: string, agentId: string | undefined): readonly Finding[];
}

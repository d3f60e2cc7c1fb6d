import type { Clock, Finding, SessionRef, SessionStore } from "@throughline/core";
import type { Hub } from "./events/hub.ts";
import type { OpenStreams } from "./events/open-streams.ts";
import type { BodyBudget } from "./http/body-budget.ts";
import type { CursorSeal } from "./http/seal-cursor.ts";
import type { AuditLog } from "./security/audit-log.ts";
import type { LiveAnswers } from "./security/live-answers.ts";
import type { TokenStore } from "./security/token-store.ts";
import type { ServerLimits } from "./server-options.ts";
import type { TurnRules } from "./turn-rules.ts";
import type { UsageMeter } from "./operations/usage-meter.ts";
import type { Summaries } from "./summaries.ts";

/** What every request of a server shares. */
export interface ServerContext {
  readonly store: SessionStore;
  readonly version: string;
  readonly limits: ServerLimits;
  readonly cursors: CursorSeal;
  readonly clock: Clock;
  readonly hub: Hub;
  readonly streams: OpenStreams;
  readonly live: LiveAnswers;
  readonly bodies: BodyBudget;
  readonly tokens: TokenStore;
  readonly audit: AuditLog;
  readonly usage: UsageMeter;
  readonly summaries: Summaries;
  readonly turnRules: TurnRules;
  /** The document of the API, as JSON. */
  document(): string;
  /** Called when a request has changed a session. */
  onChanged(ref: SessionRef): void;
  /** Something of a session was redacted, or all of it is purged: how many spooled calls of the gateway may hold it still. */
  onErased(ref: SessionRef, isPurged: boolean): Promise<number>;
  /** Readiness says `draining` from now on. */
  drain(): void;
  /** What the store has found wrong, by session, as far as it is remembered. */
  findingsOf(namespace: string, agentId: string | undefined): readonly Finding[];
}

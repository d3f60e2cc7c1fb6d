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
import type { SessionDigests } from "./session-digests.ts";
import type { Summaries } from "./summaries.ts";

/** Looks at the files of imported sessions. Only a host whose sessions all come from its own user has it. */
export interface SourceFiles {
  /** Returns when a file was last written, in UTC milliseconds; null for one that is missing or cannot be seen. */
  modifiedMs(path: string): Promise<number | null>;
  /** Names what a command that resumes a session needs and what is not on this machine; null where that is not known. */
  missing(needs: ResumeNeeds): Promise<readonly MissingForResume[] | null>;
}

type MissingForResume = "file" | "folder" | "program";

interface ResumeNeeds {
  /** Names the program's own file. */
  readonly path: string;
  readonly cwd: string | null;
  /** Names the program that the command starts. */
  readonly executable: string;
}

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
  /** Is null where a client sets entries: the server looks at no path that a request names. */
  readonly sourceFiles: SourceFiles | null;
  /** Loads the digests of sessions on first use, because most servers of programs need none. */
  digests(): Promise<SessionDigests>;
  document(): string;
  /** Is called after a request changed a session, so that the gateway drops its cached copy. */
  onChanged(ref: SessionRef): void;
  /** Handles a redaction or purge. Returns how many spooled gateway calls may still hold the erased content. */
  onErased(ref: SessionRef, isPurged: boolean): Promise<number>;
  drain(): void;
  findingsOf(namespace: string, agentId: string | undefined): readonly Finding[];
}

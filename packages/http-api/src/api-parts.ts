import { monotonicMs, systemClock } from "@throughline/core/internal";
import { createBodyBudget } from "@throughline/gateway/internal";
import { createTurnRules } from "@throughline/session/internal";
import { apiDocument, apiRoutes } from "./api-routes.ts";
import type { ApiContext, SourceFiles } from "./api-context.ts";
import { defaultAuditDays, defaultLimits, type NeighborGateway, type SessionApiOptions } from "./api-options.ts";
import { createHub } from "./events/hub.ts";
import { createOpenStreams } from "./events/open-streams.ts";
import type { ApiParts } from "./http/answer-request.ts";
import { createRouteTable } from "./http/match-route.ts";
import { createCursorSeal } from "./http/seal-cursor.ts";
import type { Findings } from "./operations/findings.ts";
import { createReadinessCheck, type ReadinessCheck } from "./operations/readiness.ts";
import { createServerLog, type ServerLog } from "./operations/request-log.ts";
import { createServerMetrics, type ServerMetrics } from "./operations/server-metrics.ts";
import { createUsageQueue } from "@throughline/usage/internal";
import { createUsageMeter } from "./operations/usage-meter.ts";
import { isCallerId } from "./security/api-caller.ts";
import { createAuditLog, noAudit } from "./security/audit-log.ts";
import { createAuthenticator } from "./security/authenticate.ts";
import type { SameSite } from "./security/host-check.ts";
import { type LocalToken, localTokens } from "./security/local-token.ts";
import { createLiveAnswers } from "./security/live-answers.ts";
import { createRateLimits } from "./security/rate-limits.ts";
import { secretBytes } from "./security/secret-bytes.ts";
import { createTokenStore } from "./security/token-store.ts";
import type { SessionDigests } from "./session-digests.ts";
import { createSummaries } from "./summaries.ts";
import { version as ownVersion } from "./version.ts";

/** Has what a program of Throughline sets beside the public options. */
export interface ServiceOptions extends Omit<SessionApiOptions, "gateway"> {
  /** Holds what the store found when it was opened. */
  readonly findings: Findings;
  /** Takes unexpected failures when there is no log. @default nothing takes them */
  readonly onFailure?: ServerLog["failed"];
  /** Sets the version that the API reports. @default the version of this package */
  readonly version?: string;
  /** Looks at the files of imported sessions. @default nothing looks at them */
  readonly sourceFiles?: SourceFiles | undefined;
  /**
   * Accepts one token, which is in memory only, and none of the store. The routes then write no tokens and no audit
   * events. @default the tokens of the store
   */
  readonly localToken?: LocalToken;
}

/** Holds the parts of an API that need no gateway. A gateway is created over them. */
export interface ApiServices extends Omit<
  ApiContext,
  "digests" | "document" | "onChanged" | "onErased" | "drain" | "findingsOf"
> {
  readonly metrics: ServerMetrics;
  readonly log: ServerLog;
  readonly findings: Findings;
}

export function createServices(options: ServiceOptions): ApiServices {
  const { clock = systemClock, auditDays = defaultAuditDays, cursorKey = secretBytes(32), findings } = options;
  const log = createServerLog(options.log ?? null, options.logLevel ?? "info", options.onFailure);
  const limits = { ...defaultLimits, ...options.limits };
  const nowMs = (): number => clock.nowMs();
  const metrics: ServerMetrics = createServerMetrics(() => streams.count);
  const streams = createOpenStreams(limits, (end) => metrics.streamEnded(end));
  const store = metrics.counted(options.store);
  const { localToken } = options;
  const tokens = localToken === undefined ? createTokenStore(store, nowMs) : localTokens(localToken, nowMs);
  // The count reads in the background, so the metrics of the store leave it out.
  const usage = createUsageMeter(options.store, clock, (error) =>
    log.failed("The bytes of a namespace could not be counted.", error),
  );
  metrics.registry.gauge(
    "throughline_namespace_record_bytes",
    "Bytes of the records of a namespace with a token, counted in the background.",
    () => Array.from(usage.all(tokens.namespaces()), ([namespace, value]) => ({ labels: { namespace }, value })),
  );
  return {
    store,
    clock,
    limits,
    tokens,
    hub: createHub(store, clock, (error) => log.failed("A session could not be looked at.", error)),
    streams,
    live: createLiveAnswers((id) => isCallerId(id) || tokens.isValid(id)),
    bodies: createBodyBudget(limits),
    audit: localToken === undefined ? createAuditLog(store, nowMs, auditDays) : noAudit,
    usage,
    // The count reads whole sessions, so the metrics of the store leave it out, too.
    callUsage: createUsageQueue(options.store),
    summaries: createSummaries(store, clock, options.summaries, (error) =>
      log.failed("A summary could not be made again.", error),
    ),
    turnRules: createTurnRules(options.sessionPolicy ?? {}, clock),
    cursors: createCursorSeal(cursorKey),
    sourceFiles: options.sourceFiles ?? null,
    version: options.version ?? ownVersion,
    metrics,
    log,
    findings,
  };
}

/** Creates everything that answers requests over the services. */
export function createApiParts(
  services: ApiServices,
  options: Pick<SessionApiOptions, "publicUrl" | "allowedHosts" | "allowedOrigins" | "trustedProxies">,
  gateway: NeighborGateway | null,
): ApiParts {
  const { store, tokens, clock, limits, metrics, log } = services;
  const readiness = createReadinessCheck(store, {
    nowMs: monotonicMs,
    isUnwritable: () => metrics.isUnwritable,
    onFailure: (error) => log.failed("The store cannot be read or written.", error),
  });
  return {
    context: contextOf(services, gateway, readiness),
    routes: createRouteTable(apiRoutes),
    authenticator: createAuthenticator(tokens, { nowMs: () => clock.nowMs(), monotonicMs }),
    rates: createRateLimits(limits, monotonicMs),
    readiness,
    metrics,
    log,
    gateway,
    sites: sitesOf(options),
    trustedProxies: options.trustedProxies ?? [],
  };
}

function contextOf(services: ApiServices, gateway: NeighborGateway | null, readiness: ReadinessCheck): ApiContext {
  const { findings, log } = services;
  let document: string | null = null;
  let digests: Promise<SessionDigests> | null = null;
  return {
    ...services,
    digests: () => (digests ??= import("./session-digests.ts").then((module) => new module.SessionDigests())),
    document: () => (document ??= JSON.stringify(apiDocument())),
    onChanged: (ref) => gateway?.forget(ref),
    onErased: async (ref, isPurged) => {
      (await digests)?.clear();
      return (await gateway?.erased(ref, isPurged)) ?? 0;
    },
    drain: () => {
      if (readiness.isDraining) return;
      readiness.drain();
      log.info("The server is draining.");
    },
    findingsOf: (namespace, agentId) => findings.of(namespace, agentId),
  };
}

function sitesOf({
  publicUrl,
  allowedHosts = [],
  allowedOrigins = [],
}: Pick<SessionApiOptions, "publicUrl" | "allowedHosts" | "allowedOrigins">): SameSite {
  const own = publicUrl === undefined ? null : new URL(publicUrl);
  return {
    hosts: [...(own === null ? [] : [own.hostname]), ...allowedHosts].map((name) => name.toLowerCase()),
    origins: [...(own === null ? [] : [own.origin]), ...allowedOrigins],
  };
}

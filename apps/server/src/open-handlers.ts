import { randomBytes } from "node:crypto";
import type { SessionStore } from "@throughline/core";
import { monotonicMs, systemClock } from "@throughline/core/internal";
import {
  createBodyBudget,
  createGatewayHandlers,
  type GatewayHandlers,
  type Upstream,
  upstreamsOf,
} from "@throughline/gateway/internal";
import { createTurnRules } from "@throughline/session/internal";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { apiDocument, apiRoutes } from "./api-routes.ts";
import { createHub } from "./events/hub.ts";
import { createOpenStreams } from "./events/open-streams.ts";
import type { RequestHandlers } from "./http/answer-request.ts";
import { createRouteTable } from "./http/match-route.ts";
import { createCursorSeal } from "./http/seal-cursor.ts";
import { createFindings, type Findings } from "./operations/findings.ts";
import { createReadinessCheck, type ReadinessCheck } from "./operations/readiness.ts";
import { createServerLog, type ServerLog } from "./operations/request-log.ts";
import { createServerMetrics, type ServerMetrics } from "./operations/server-metrics.ts";
import { createUsageMeter } from "./operations/usage-meter.ts";
import { createAuditLog } from "./security/audit-log.ts";
import { createAuthenticator } from "./security/authenticate.ts";
import type { SameSite } from "./security/host-check.ts";
import { createLiveAnswers } from "./security/live-answers.ts";
import { createRateLimits } from "./security/rate-limits.ts";
import { createTokenStore } from "./security/token-store.ts";
import type { ServerContext } from "./server-context.ts";
import { defaultAuditDays, defaultLimits, type ServerOptions } from "./server-options.ts";
import { createSummaries } from "./summaries.ts";
import { version as ownVersion } from "./version.ts";

/**
 * Opens the store and creates everything that answers requests over it.
 * @throws {ThroughlineError} CONFIG_INVALID, and what opening the store throws
 */
export async function openHandlers(options: ServerOptions): Promise<RequestHandlers> {
  const log = createServerLog(options.log ?? null, options.logLevel ?? "info");
  const upstreams = options.gateway === undefined ? null : upstreamsOf(options.gateway);
  const findings = createFindings();
  const opened = await options.openStore((event) => findings.take(event));
  const metrics: ServerMetrics = createServerMetrics(() => services.streams.count);
  const services = createServices(options, opened, { metrics, log });
  const { store, tokens, clock, limits } = services;
  publishUsage(services, metrics);
  const readiness = createReadinessCheck(store, {
    nowMs: monotonicMs,
    isUnwritable: () => metrics.isUnwritable,
    onFailure: (error) => log.failed("The store cannot be read or written.", error),
  });
  const gateway = await openGateway(options, upstreams, services, { metrics, log });
  return {
    context: contextOf(services, gateway, { findings, readiness, log }),
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

interface Observers {
  readonly metrics: ServerMetrics;
  readonly log: ServerLog;
}

/** Holds the parts of the context that need no gateway. */
type Services = Omit<ServerContext, "document" | "onChanged" | "onErased" | "drain" | "findingsOf">;

function createServices(options: ServerOptions, opened: SessionStore, { metrics, log }: Observers): Services {
  const { clock = systemClock, auditDays = defaultAuditDays, cursorKey = randomBytes(32) } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const nowMs = (): number => clock.nowMs();
  const store = metrics.counted(opened);
  const tokens = createTokenStore(store, nowMs);
  return {
    store,
    clock,
    limits,
    tokens,
    hub: createHub(store, clock, (error) => log.failed("A session could not be looked at.", error)),
    streams: createOpenStreams(limits, (end) => metrics.streamEnded(end)),
    live: createLiveAnswers((id) => tokens.isValid(id)),
    bodies: createBodyBudget(limits),
    audit: createAuditLog(store, nowMs, auditDays),
    // The count reads in the background, so the metrics of the store leave it out.
    usage: createUsageMeter(opened, clock, (error) =>
      log.failed("The bytes of a namespace could not be counted.", error),
    ),
    summaries: createSummaries(store, clock, options.summaries, (error) =>
      log.failed("A summary could not be made again.", error),
    ),
    turnRules: createTurnRules(options.sessionPolicy ?? {}, clock),
    cursors: createCursorSeal(cursorKey),
    version: options.version ?? ownVersion,
  };
}

function publishUsage({ usage, tokens }: Services, { registry }: ServerMetrics): void {
  registry.gauge(
    "throughline_namespace_record_bytes",
    "Bytes of the records of a namespace with a token, counted in the background.",
    () => Array.from(usage.all(tokens.namespaces()), ([namespace, value]) => ({ labels: { namespace }, value })),
  );
}

async function openGateway(
  options: ServerOptions,
  upstreams: ReadonlyMap<string, Upstream> | null,
  { store, turnRules, bodies, clock, summaries }: Services,
  { metrics, log }: Observers,
): Promise<GatewayHandlers | null> {
  if (upstreams === null || options.gateway === undefined) return null;
  return createGatewayHandlers(options.gateway, {
    upstreams,
    store,
    turnRules,
    bodies,
    clock,
    log,
    metrics: metrics.registry,
    estimator: summaries.estimator,
    summarizers: [...(options.summaries?.summarizers ?? []), createExtractiveSummarizer()],
  });
}

function contextOf(
  services: Services,
  gateway: GatewayHandlers | null,
  { findings, ...draining }: DrainingParts & { readonly findings: Findings },
): ServerContext {
  let document: string | null = null;
  return {
    ...services,
    document: () => (document ??= JSON.stringify(apiDocument())),
    onChanged: (ref) => gateway?.forget(ref),
    onErased: async (ref, isPurged) => (await gateway?.erased(ref, isPurged)) ?? 0,
    drain: () => beginDrain(draining),
    findingsOf: (namespace, agentId) => findings.of(namespace, agentId),
  };
}

interface DrainingParts {
  readonly readiness: ReadinessCheck;
  readonly log: ServerLog;
}

function beginDrain({ readiness, log }: DrainingParts): void {
  if (readiness.isDraining) return;
  readiness.drain();
  log.info("The server is draining.");
}

function sitesOf({ host = "127.0.0.1", publicUrl, allowedHosts = [], allowedOrigins = [] }: ServerOptions): SameSite {
  const own = publicUrl === undefined ? null : new URL(publicUrl);
  // A wildcard address such as 0.0.0.0 is never a host name that a client sends, so it allows nothing.
  const bound = host === "0.0.0.0" || host === "::" ? [] : [host.includes(":") ? `[${host}]` : host];
  return {
    hosts: [...bound, ...(own === null ? [] : [own.hostname]), ...allowedHosts].map((name) => name.toLowerCase()),
    origins: [...(own === null ? [] : [own.origin]), ...allowedOrigins],
  };
}

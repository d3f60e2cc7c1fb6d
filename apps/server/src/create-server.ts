import { randomBytes } from "node:crypto";
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from "node:http";
import { hasErrorCode } from "@throughline/core";
import { monotonicMs, systemClock } from "@throughline/core/internal";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { apiDocument, apiRoutes } from "./api-routes.ts";
import { createHub } from "./events/hub.ts";
import { createOpenStreams } from "./events/open-streams.ts";
import { createBodyBudget } from "./http/body-budget.ts";
import { answerClientErrors } from "./http/client-errors.ts";
import { trackConnections } from "./http/connections.ts";
import { answerRequest } from "./http/answer-request.ts";
import { createRouteTable } from "./http/match-route.ts";
import { createCursorSeal } from "./http/seal-cursor.ts";
import { createFindings } from "./operations/findings.ts";
import { createReadinessCheck } from "./operations/readiness.ts";
import { createServerLog } from "./operations/request-log.ts";
import { createGateway } from "./gateway/gateway.ts";
import { uploadMs } from "./gateway/request-body.ts";
import { upstreamsOf } from "./gateway/gateway-options.ts";
import { createUsageMeter } from "./operations/usage-meter.ts";
import { createServerMetrics } from "./operations/server-metrics.ts";
import { createAuditLog } from "./security/audit-log.ts";
import { createAuthenticator } from "./security/authenticate.ts";
import type { SameSite } from "./security/host-check.ts";
import { createLiveAnswers } from "./security/live-answers.ts";
import { createRateLimits } from "./security/rate-limits.ts";
import { createTokenStore, type TokenStore } from "./security/token-store.ts";
import type { ServerContext } from "./server-context.ts";
import { defaultAuditDays, defaultLimits, type ServerOptions } from "./server-options.ts";
import { createSummaries } from "./summaries.ts";
import { createTurnRules } from "./turn-rules.ts";
import { within } from "./within.ts";
import { version as ownVersion } from "./version.ts";

export interface Server {
  /** States the bound port too, because port 0 selects a free port: `http://127.0.0.1:4788`. */
  readonly url: string;
  readonly tokens: TokenStore;
  /** Exempts a token from the rate limits of this node. The programs of the server's machine use such a token. */
  exempt(tokenId: string): void;
  /** Makes readiness report `draining` and ends event streams. The server still answers requests. */
  drain(): void;
  /** Drains, waits at most 30 s for running requests, and closes the store. */
  close(): Promise<void>;
}

/** Limits how long startup waits for the token list, so that the server also starts while its store does not answer. */
const mostTokenWaitMs = 5000;
/** Clients of event streams wait this long before they reconnect, because the node is stopping. */
const retryMs = 1000;
/**
 * Other processes revoke tokens too. At this interval a revocation reaches every node and every open response within 5
 * s.
 */
const tokenEveryMs = 2000;

/**
 * Opens the store and starts to listen.
 *
 * @throws {ThroughlineError} CONFIG_INVALID, what opening the store throws; Error of the system when the address cannot
 *   be listened on
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { clock = systemClock, host = "127.0.0.1", port = 4788, drainDelayMs = 0 } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const nowMs = (): number => clock.nowMs();
  const log = createServerLog(options.log ?? null, options.logLevel ?? "info");
  const upstreams = options.gateway === undefined ? null : upstreamsOf(options.gateway);
  const findings = createFindings();
  const opened = await options.openStore((event) => findings.take(event));
  const metrics = createServerMetrics(() => streams.count);
  const store = metrics.counted(opened);
  const tokens = createTokenStore(store, nowMs);
  const authenticator = createAuthenticator(tokens, { nowMs, monotonicMs });
  const hub = createHub(store, clock, (error) => log.failed("A session could not be looked at.", error));
  const live = createLiveAnswers((id) => tokens.isValid(id));
  const streams = createOpenStreams(limits, (end) => metrics.streamEnded(end));
  const bodies = createBodyBudget(limits);
  const readiness = createReadinessCheck(store, {
    nowMs: monotonicMs,
    isUnwritable: () => metrics.isUnwritable,
    onFailure: (error) => log.failed("The store cannot be read or written.", error),
  });
  const usage = createUsageMeter(opened, clock, (error) =>
    log.failed("The bytes of a namespace could not be counted.", error),
  );
  metrics.registry.gauge(
    "throughline_namespace_record_bytes",
    "Bytes of the records of a namespace with a token, counted in the background.",
    () => Array.from(usage.all(tokens.namespaces()), ([namespace, value]) => ({ labels: { namespace }, value })),
  );
  const summaries = createSummaries(store, clock, options.summaries, (error) =>
    log.failed("A summary could not be made again.", error),
  );
  const turnRules = createTurnRules(options.sessionPolicy ?? {}, clock);
  const gateway =
    upstreams === null || options.gateway === undefined
      ? null
      : await createGateway(options.gateway, {
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
  const rates = createRateLimits(limits, monotonicMs);
  let document: string | null = null;
  const context: ServerContext = {
    store,
    hub,
    streams,
    live,
    bodies,
    tokens,
    audit: createAuditLog(store, nowMs, options.auditDays ?? defaultAuditDays),
    usage,
    summaries,
    turnRules,
    document: () => (document ??= JSON.stringify(apiDocument())),
    onChanged: (ref) => gateway?.forget(ref),
    onErased: async (ref, isPurged) => (await gateway?.erased(ref, isPurged)) ?? 0,
    drain: () => drain(),
    version: options.version ?? ownVersion,
    limits,
    cursors: createCursorSeal(options.cursorKey ?? randomBytes(32)),
    clock,
    findingsOf: (namespace, agentId) => findings.of(namespace, agentId),
  };
  const parts = {
    context,
    routes: createRouteTable(apiRoutes),
    authenticator,
    rates,
    readiness,
    metrics,
    log,
    gateway,
    sites: sitesOf(options),
    trustedProxies: options.trustedProxies ?? [],
  };
  const http = createHttpServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: 10_000,
    requestTimeout: Math.max(limits.bodyMs, uploadMs),
    connectionsCheckingInterval: 4000,
    keepAliveTimeout: 65_000,
  });
  const clientErrors = answerClientErrors(http);
  // `checkContinue` has a listener so that a client with `Expect: 100-continue` sends its body only after the request
  // passed the checks.
  for (const event of ["request", "checkContinue"] as const)
    http.on(event, (request: IncomingMessage, response: ServerResponse) => {
      clientErrors.began(response);
      void answerRequest(parts, request, response);
    });
  // With the default limit, Node silently drops every header after the 2,000th.
  http.maxHeadersCount = 0;
  const connections = trackConnections(http);
  try {
    // Load the tokens before listening: a node that has just started must not reject a valid token. A store that is
    // away does not prevent the start.
    await within(clock, tokens.refresh(), mostTokenWaitMs).catch((error: unknown) => {
      if (!hasErrorCode(error, "STORE_UNREACHABLE", "STORE_OVERLOADED", "STORE_LOCKED")) throw error;
      log.failed("The store cannot be reached yet; requests are answered once it can.", error);
    });
    await listen(http, host, port);
  } catch (error) {
    http.close();
    await gateway?.close();
    streams.close();
    hub.close();
    usage.close();
    metrics.close();
    await store.close();
    throw error;
  }
  const refreshing = setInterval(() => {
    // Check open responses before the refresh as well, because a token also expires while the store is away.
    live.check();
    tokens
      .refresh()
      .then(() => live.check())
      .catch((error: unknown) => log.failed("The tokens could not be read.", error));
  }, tokenEveryMs);
  refreshing.unref();
  const address = http.address();
  const boundPort = typeof address === "object" && address !== null ? address.port : port;
  const drain = (): void => {
    if (readiness.isDraining) return;
    readiness.drain();
    log.info("The server is draining.");
  };
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    drain();
    if (drainDelayMs > 0) await clock.sleep(drainDelayMs);
    readiness.servesWhileDraining = false;
    streams.bye(retryMs);
    await connections.end();
    // Close the gateway before the store: it still has to store the calls that it passed on.
    await gateway?.close();
    clearInterval(refreshing);
    streams.close();
    hub.close();
    usage.close();
    metrics.close();
    await Promise.all([summaries.checkpointer.close(), summaries.retries.close()]);
    try {
      await options.onStopping?.(tokens);
    } finally {
      await store.close();
    }
    log.info("The server has stopped.");
  };
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    tokens,
    exempt: (tokenId) => rates.exempt(tokenId),
    drain,
    close: () => (closing ??= close()),
  };
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

function listen(http: HttpServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve();
    });
  });
}

import { type ErrorCode, hasErrorCode, ThroughlineError } from "@throughline/core";
import { monotonicMs, refused } from "@throughline/core/internal";
import { maskDeep } from "@throughline/config/internal";
import { asksForWebSocket } from "@throughline/gateway/internal";
import type { NeighborGateway } from "../api-options.ts";
import type { ReadinessCheck } from "../operations/readiness.ts";
import type { ServerLog } from "../operations/request-log.ts";
import type { ServerMetrics } from "../operations/server-metrics.ts";
import type { Authenticator } from "../security/authenticate.ts";
import { tokenOfCaller } from "../security/api-caller.ts";
import {
  assertHost,
  assertOrigin,
  corsHeaders,
  isNavigation,
  preflightHeaders,
  type SameSite,
} from "../security/host-check.ts";
import type { RateLimits } from "../security/rate-limits.ts";
import { secretBytes } from "../security/secret-bytes.ts";
import type { TokenInfo } from "../security/token-store.ts";
import type { ApiContext } from "../api-context.ts";
import { handleApi } from "./api-handler.ts";
import { clientAddress } from "./client-address.ts";
import type { HeaderMap } from "./answer.ts";
import type { ApiIncoming, Exchange } from "./exchange.ts";
import type { RouteTable } from "./match-route.ts";
import { problemOf } from "./problem.ts";
import type { RouteDefinition } from "./route.ts";
import { writeAnswer } from "./write-answer.ts";

export interface ApiParts {
  readonly context: ApiContext;
  readonly routes: RouteTable<RouteDefinition>;
  readonly authenticator: Authenticator;
  readonly rates: RateLimits;
  readonly readiness: ReadinessCheck;
  readonly metrics: ServerMetrics;
  readonly log: ServerLog;
  readonly gateway: NeighborGateway | null;
  readonly sites: SameSite;
  /** The forwarding headers of these proxies are trusted; any other client could forge them. */
  readonly trustedProxies: readonly string[];
}

/** Answers one request in the place of the routes, behind the same checks of sizes, host and origin. */
export interface Neighbor {
  /** Labels the request in the metrics and the log. */
  readonly route: string;
  answer(authenticate: (token: string | null) => Promise<TokenInfo>): Promise<void>;
  /** Answers with an error in the format that the client of the neighbor reads. @default a problem */
  refuse?(error: unknown): void;
  /**
   * True where the answer is a page without data, to which a link of any other page may lead. @default false: pages of
   * other origins are refused
   */
  readonly isNavigable?: boolean;
}

interface Trace {
  readonly id: string;
  /** Holds the route pattern of the OpenAPI document, so that metrics have few labels. */
  route: string;
  tokenId: string | null;
}

const apiPath = "/api/v1";
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * Answers one request. The cheap checks come first: sizes, probes, host, origin, token, then the route.
 *
 * @param neighbor answers a request that is not for the routes
 */
export async function answerRequest(
  parts: ApiParts,
  exchange: Exchange,
  neighbor: Neighbor | null = null,
): Promise<void> {
  const { metrics, log } = parts;
  const { request, response } = exchange;
  const beganMs = monotonicMs();
  const trace: Trace = { id: requestId(request), route: "none", tokenId: null };
  let code: ErrorCode | null = null;
  try {
    await answerChecked(parts, exchange, trace, neighbor);
  } catch (error) {
    code = ThroughlineError.isInstance(error) ? error.code : "INTERNAL";
    if (code === "INTERNAL") log.failed("A request failed.", error);
    if (code === "RATE_LIMITED") metrics.rateLimited();
    try {
      if (neighbor?.refuse !== undefined) neighbor.refuse(error);
      else
        exchange.refuse(problemOf(error, trace.id, maskDeep), errorHeaders(error, corsHeaders(request, parts.sites)));
    } catch (failure) {
      // No caller awaits this promise, so a rejection would end the process.
      log.failed("A request could not be refused.", failure);
      response.destroy();
    }
  }
  const method = methods.has(request.method ?? "") ? String(request.method) : "other";
  const { statusCode: status } = response;
  const ms = monotonicMs() - beganMs;
  const { id, route, tokenId } = trace;
  metrics.request({ route, method, status }, ms);
  log.request({ id, route, method, status, ms: Math.round(ms * 10) / 10, token: tokenId, code });
}

async function answerChecked(
  parts: ApiParts,
  exchange: Exchange,
  trace: Trace,
  neighbor: Neighbor | null,
): Promise<void> {
  const { context, routes, sites } = parts;
  const { request } = exchange;
  const { limits } = context;
  const target = request.url ?? "";
  if (request.rawHeaders.length > limits.headerLines * 2)
    throw tooLarge(`The request has more than ${limits.headerLines} header lines.`, 431);
  if (target.length > limits.urlBytes) throw tooLarge(`The URL has more than ${limits.urlBytes} bytes.`, 414);
  const method = request.method ?? "";
  if (!methods.has(method)) throw methodRefused(["GET"]);
  const mark = target.indexOf("?");
  const [path, query] = mark === -1 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)];
  if (path === "/healthz" || path === "/readyz") return answerProbe(parts, path, exchange, trace);
  assertHost(request, sites);
  if (neighbor?.isNavigable !== true || !isNavigation(request)) assertOrigin(request, sites);
  if (method === "OPTIONS") return answerPreflight(exchange, sites, trace);
  if (neighbor !== null) {
    trace.route = neighbor.route;
    return neighbor.answer((text) =>
      authenticateLive(parts, exchange, trace, text === null ? undefined : `Bearer ${text}`),
    );
  }
  // Java's client may ask for HTTP/2 in the same header, so only a request for a WebSocket is refused.
  if (asksForWebSocket(request)) throw refused("INPUT_INVALID", "The server speaks HTTP only.");
  if (path === "/inspect" || path.startsWith("/inspect/")) throw noRoute();
  if (path === "/metrics") return answerMetrics(parts, exchange, trace);
  const token = await authenticateLive(parts, exchange, trace, authorizationOf(request));
  const found = path.startsWith(`${apiPath}/`) ? routes.find(method, path.slice(apiPath.length)) : [];
  if (!("route" in found)) throw found.length === 0 ? noRoute() : methodRefused(found);
  trace.route = `${apiPath}${found.route.path}`;
  await handleApi(context, token, found, {
    exchange,
    id: trace.id,
    query,
    headers: corsHeaders(request, sites),
    onAllowed: () => parts.rates.take(token.id, token.requestsPerMinute),
  });
}

/** Identifies the caller of a request whose answer ends when the token becomes invalid. */
async function authenticateLive(
  parts: ApiParts,
  exchange: Exchange,
  trace: Trace,
  authorization: string | undefined,
): Promise<TokenInfo> {
  const token = await authenticate(parts, exchange, authorization);
  trace.tokenId = token.id;
  parts.context.live.add(token.id, exchange.response);
  assertNotDraining(parts.readiness);
  return token;
}

function assertNotDraining({ isDraining, servesWhileDraining }: ReadinessCheck): void {
  if (isDraining && !servesWhileDraining)
    throw refused("SERVER_DRAINING", "The server is stopping.", { retryAfterMs: 1000 });
}

/**
 * Joins repeated headers, which makes the token invalid: a proxy in front of the server may have checked the other one.
 */
function authorizationOf({ headersDistinct }: ApiIncoming): string | undefined {
  const values = headersDistinct["authorization"];
  return values === undefined || values.length > 1 ? values?.join() : values[0];
}

async function authenticate(
  parts: ApiParts,
  { request: { headers }, address, caller }: Exchange,
  authorization: string | undefined,
): Promise<TokenInfo> {
  const { authenticator, rates, metrics, trustedProxies } = parts;
  if (caller === null) throw refused("UNAUTHENTICATED", "The server does not know the caller of the request.");
  if (caller !== undefined) return tokenOfCaller(caller);
  try {
    return await authenticator.authenticate(authorization);
  } catch (error) {
    if (!hasErrorCode(error, "UNAUTHENTICATED")) throw error;
    metrics.authFailed(authorization === undefined ? "missing" : "invalid");
    if (authorization === undefined) throw error;
    const { isOver, retryAfterMs } = rates.failed(clientAddress(address, headers, trustedProxies));
    if (isOver)
      throw refused("RATE_LIMITED", "The address has shown too many tokens that are not valid.", { retryAfterMs });
    throw error;
  }
}

async function answerProbe(
  { readiness, gateway }: ApiParts,
  path: string,
  { request: { method }, response }: Exchange,
  trace: Trace,
): Promise<void> {
  trace.route = path;
  if (method !== "GET" && method !== "HEAD") throw methodRefused(["GET", "HEAD"]);
  const state = path === "/healthz" ? "ok" : await readiness.state();
  const status = state === "ok" || state === "ready" ? 200 : 503;
  const word = state === "ready" && gateway?.isWaiting === true ? "degraded" : state;
  const { calls, oldestMs } = gateway?.unstored ?? { calls: 0, oldestMs: 0 };
  const headers: HeaderMap =
    path === "/healthz" || gateway === null
      ? {}
      : { "throughline-unstored-calls": String(calls), "throughline-oldest-unstored-ms": String(oldestMs) };
  const answer = { kind: "text", status, type: "text/plain; charset=utf-8", headers, body: `${word}\n` } as const;
  await writeAnswer(response, answer, { requestId: trace.id });
}

async function answerMetrics(parts: ApiParts, exchange: Exchange, trace: Trace): Promise<void> {
  const { request, response } = exchange;
  trace.route = "/metrics";
  const token = await authenticate(parts, exchange, authorizationOf(request));
  trace.tokenId = token.id;
  if (!token.scopes.includes("metrics"))
    throw refused("UNAUTHENTICATED", 'The metrics need a token with the scope "metrics".', { needs: "metrics" });
  if (request.method !== "GET") throw methodRefused(["GET"]);
  const type = "text/plain; version=0.0.4; charset=utf-8";
  const body = parts.metrics.registry.text();
  await writeAnswer(response, { kind: "text", status: 200, type, body }, { requestId: trace.id });
}

async function answerPreflight({ request, response }: Exchange, sites: SameSite, trace: Trace): Promise<void> {
  const cors = corsHeaders(request, sites);
  const isAllowed = Object.keys(cors).length > 0;
  const headers = { allow: "GET, POST, PUT, PATCH, DELETE", ...cors, ...(isAllowed ? preflightHeaders : {}) };
  await writeAnswer(response, { kind: "empty", status: 204, headers }, { requestId: trace.id });
}

/**
 * Accepts the client's request id, so that the client can find its request in the log. Other characters are refused to
 * keep the log parseable.
 */
function requestId({ headers }: ApiIncoming): string {
  const given = headers["throughline-request-id"];
  if (typeof given === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(given)) return given;
  return secretBytes(9).toString("base64url");
}

function errorHeaders(error: unknown, headers: HeaderMap): HeaderMap {
  if (hasErrorCode(error, "UNAUTHENTICATED")) return { ...headers, "www-authenticate": "Bearer" };
  if (!hasErrorCode(error, "METHOD_REFUSED")) return headers;
  const { allow } = error.details;
  return Array.isArray(allow) ? { ...headers, allow: allow.join(", ") } : headers;
}

function tooLarge(message: string, status: number): ThroughlineError {
  return refused("REQUEST_TOO_LARGE", message, { status });
}

function methodRefused(allow: readonly string[]): ThroughlineError {
  return refused("METHOD_REFUSED", "The path does not take this method.", { allow });
}

function noRoute(): ThroughlineError {
  return refused("ROUTE_NOT_FOUND", "The server has nothing at this path.");
}

import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type ErrorCode, hasErrorCode, ThroughlineError } from "@throughline/core";
import { monotonicMs, refused } from "@throughline/core/internal";
import { maskDeep } from "@throughline/config/internal";
import type { ReadinessCheck } from "../operations/readiness.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { ServerLog } from "../operations/request-log.ts";
import type { ServerMetrics } from "../operations/server-metrics.ts";
import type { Authenticator } from "../security/authenticate.ts";
import { assertHost, assertOrigin, corsHeaders, preflightHeaders, type SameSite } from "../security/host-check.ts";
import type { RateLimits } from "../security/rate-limits.ts";
import type { ServerContext } from "../server-context.ts";
import { handleApi } from "./api-handler.ts";
import { clientAddress } from "./client-address.ts";
import type { HeaderMap } from "./answer.ts";
import type { RouteTable } from "./match-route.ts";
import { problemOf } from "./problem.ts";
import type { RouteDefinition } from "./route.ts";
import { asksForWebSocket } from "./web-socket.ts";
import { writeAnswer, writeProblem } from "./write-answer.ts";

/** What stands before every route. */
export interface RequestHandlers {
  readonly context: ServerContext;
  readonly routes: RouteTable<RouteDefinition>;
  readonly authenticator: Authenticator;
  readonly rates: RateLimits;
  readonly readiness: ReadinessCheck;
  readonly metrics: ServerMetrics;
  readonly log: ServerLog;
  /** Null: none is configured. */
  readonly gateway: Gateway | null;
  readonly sites: SameSite;
  /** Addresses of proxies whose word counts about who asks. */
  readonly trustedProxies: readonly string[];
}

/** What is known of a request while it is answered. */
interface Trace {
  readonly id: string;
  /** The route as the document writes it. */
  route: string;
  tokenId: string | null;
}

const apiPath = "/api/v1";
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Answers one request: sizes, probes, host, origin, token, then the route. */
export async function answerRequest(
  parts: RequestHandlers,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { metrics, log } = parts;
  const beganMs = monotonicMs();
  const trace: Trace = { id: requestId(request), route: "none", tokenId: null };
  let code: ErrorCode | null = null;
  try {
    await answerChecked(parts, request, response, trace);
  } catch (error) {
    code = ThroughlineError.isInstance(error) ? error.code : "INTERNAL";
    if (code === "INTERNAL") log.failed("A request failed.", error);
    if (code === "RATE_LIMITED") metrics.rateLimited();
    try {
      const upstream = parts.gateway?.upstreamOf(request.url ?? "") ?? null;
      if (upstream !== null) parts.gateway?.refuse(upstream, request, response, error);
      else refuse(request, response, error, trace.id, errorHeaders(error, corsHeaders(request, parts.sites)));
    } catch (failure) {
      // Nobody waits for this promise: thrown on, it would end the process.
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
  parts: RequestHandlers,
  request: IncomingMessage,
  response: ServerResponse,
  trace: Trace,
): Promise<void> {
  const { context, routes, readiness, sites } = parts;
  const { limits } = context;
  const target = request.url ?? "";
  if (request.rawHeaders.length > limits.headerLines * 2)
    throw tooLarge(`The request has more than ${limits.headerLines} header lines.`, 431);
  if (target.length > limits.urlBytes) throw tooLarge(`The URL has more than ${limits.urlBytes} bytes.`, 414);
  const method = request.method ?? "";
  if (!methods.has(method)) throw methodRefused(["GET"]);
  const mark = target.indexOf("?");
  const [path, query] = mark === -1 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)];
  if (path === "/healthz" || path === "/readyz") return answerProbe(parts, path, request, response, trace);
  assertHost(request, sites);
  assertOrigin(request, sites);
  if (method === "OPTIONS") return answerPreflight(request, response, sites, trace);
  const upstream = parts.gateway?.upstreamOf(target) ?? null;
  if (upstream !== null) {
    trace.route = `/${upstream.name}`;
    const authenticated = async (text: string | null): Promise<TokenOf> => {
      const token = await authenticate(parts, request, text === null ? undefined : `Bearer ${text}`);
      trace.tokenId = token.id;
      context.live.add(token.id, response);
      assertNotDraining(readiness);
      parts.rates.takeCall(token.id);
      return token;
    };
    return parts.gateway?.answer({ upstream, request, response, authenticate: authenticated });
  }
  // A request that asks to speak another protocol: this server has none.
  if (asksForWebSocket(request)) throw refused("INPUT_INVALID", "The server speaks HTTP only.");
  if (path === "/inspect" || path.startsWith("/inspect/")) throw noRoute();
  if (path === "/metrics") return answerMetrics(parts, request, response, trace);
  const token = await authenticate(parts, request);
  trace.tokenId = token.id;
  context.live.add(token.id, response);
  assertNotDraining(readiness);
  const found = path.startsWith(`${apiPath}/`) ? routes.find(method, path.slice(apiPath.length)) : [];
  if (!("route" in found)) throw found.length === 0 ? noRoute() : methodRefused(found);
  trace.route = `${apiPath}${found.route.path}`;
  await handleApi(context, token, found, {
    request,
    response,
    id: trace.id,
    query,
    headers: corsHeaders(request, sites),
    onAllowed: () => parts.rates.take(token.id),
  });
}

type TokenOf = Awaited<ReturnType<Authenticator["authenticate"]>>;

function assertNotDraining({ isDraining, servesWhileDraining }: ReadinessCheck): void {
  if (isDraining && !servesWhileDraining)
    throw refused("SERVER_DRAINING", "The server is stopping.", { retryAfterMs: 1000 });
}

/** The header with the token. Two of them are none: what stands before the server may have read the other. */
function authorizationOf({ headersDistinct }: IncomingMessage): string | undefined {
  const values = headersDistinct["authorization"];
  return values === undefined || values.length > 1 ? values?.join() : values[0];
}

/** @param authorization the header with the token; the request's own where no other is meant */
async function authenticate(
  parts: RequestHandlers,
  request: IncomingMessage,
  authorization: string | undefined = authorizationOf(request),
): Promise<TokenOf> {
  const { authenticator, rates, metrics, trustedProxies } = parts;
  try {
    return await authenticator.authenticate(authorization);
  } catch (error) {
    if (!hasErrorCode(error, "UNAUTHENTICATED")) throw error;
    metrics.authFailed(authorization === undefined ? "missing" : "invalid");
    if (authorization === undefined) throw error;
    const { isOver, retryAfterMs } = rates.failed(clientAddress(request, trustedProxies));
    if (isOver)
      throw refused("RATE_LIMITED", "The address has shown too many tokens that are not valid.", { retryAfterMs });
    throw error;
  }
}

async function answerProbe(
  { readiness, gateway }: RequestHandlers,
  path: string,
  { method }: IncomingMessage,
  response: ServerResponse,
  trace: Trace,
): Promise<void> {
  trace.route = path;
  if (method !== "GET" && method !== "HEAD") throw methodRefused(["GET", "HEAD"]);
  const state = path === "/healthz" ? "ok" : await readiness.state();
  const status = state === "ok" || state === "ready" ? 200 : 503;
  const word = state === "ready" && gateway?.isWaiting === true ? "degraded" : state;
  const answer = { kind: "text", status, type: "text/plain; charset=utf-8", body: `${word}\n` } as const;
  await writeAnswer(response, answer, { requestId: trace.id });
}

async function answerMetrics(
  parts: RequestHandlers,
  request: IncomingMessage,
  response: ServerResponse,
  trace: Trace,
): Promise<void> {
  trace.route = "/metrics";
  const token = await authenticate(parts, request);
  trace.tokenId = token.id;
  if (!token.scopes.includes("metrics"))
    throw refused("UNAUTHENTICATED", 'The metrics need a token with the scope "metrics".', { needs: "metrics" });
  if (request.method !== "GET") throw methodRefused(["GET"]);
  const type = "text/plain; version=0.0.4; charset=utf-8";
  const body = parts.metrics.registry.text();
  await writeAnswer(response, { kind: "text", status: 200, type, body }, { requestId: trace.id });
}

async function answerPreflight(
  request: IncomingMessage,
  response: ServerResponse,
  sites: SameSite,
  trace: Trace,
): Promise<void> {
  const cors = corsHeaders(request, sites);
  const isAllowed = Object.keys(cors).length > 0;
  const headers = { allow: "GET, POST, PUT, PATCH, DELETE", ...cors, ...(isAllowed ? preflightHeaders : {}) };
  await writeAnswer(response, { kind: "empty", status: 204, headers }, { requestId: trace.id });
}

/** A client may name its request, so that it finds it in the log; the name is one word. */
function requestId({ headers }: IncomingMessage): string {
  const given = headers["throughline-request-id"];
  if (typeof given === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(given)) return given;
  return randomBytes(9).toString("base64url");
}

/** How much of a refused body is read, so that the connection can serve the next request. */
const readOnBytes = 64 * 1024;
/** How much is read of one whose end nobody knows, so that a client that is about to end it can read the answer. */
const endlessBytes = 1024 * 1024;
const lingerMs = 1000;
/** How long the rest of a short body may take once its request is answered. */
const restMs = 10_000;

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  id: string,
  headers: HeaderMap,
): void {
  if (request.destroyed && !request.complete) return void response.destroy();
  const declared = Number(request.headers["content-length"] ?? 0);
  const { expect, "transfer-encoding": chunked } = request.headers;
  // A client that waits to be asked for its body may send it after all, or its next request in its place.
  const problem = problemOf(error, id, maskDeep);
  // Nor does one that was too slow get to send its next request.
  const isLong = chunked !== undefined || expect !== undefined || declared > readOnBytes || problem.status === 408;
  const isUnread = !request.complete && isLong;
  writeProblem(response, problem, { ...headers, ...(isUnread ? { connection: "close" } : {}) });
  if (!isUnread) {
    response.end();
    request.resume();
    // All of it has come: the connection serves the next request.
    if (request.complete) return;
    // The rest of a short body comes soon, or the connection waits for it as long as an upload may take.
    const { socket } = request;
    const late = setTimeout(() => socket.destroy(), restMs).unref();
    for (const event of ["end", "close"] as const) request.once(event, () => clearTimeout(late));
    return;
  }
  // The client may be writing still. Closed now, its connection would be reset, and the answer lost: it gets a moment.
  let read = 0;
  request.on("data", ({ length }: Buffer) => {
    read += length;
    if (declared === 0 && read > endlessBytes) request.pause();
  });
  for (const event of ["end", "close"] as const) request.once(event, () => void response.end());
  request.resume();
  const { socket } = request;
  setTimeout(() => socket.destroy(), lingerMs).unref();
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

import type { IncomingMessage, ServerResponse } from "node:http";
import { refused } from "@throughline/core/internal";
import type { WireApi } from "./wire/index.ts";
import { asksForWebSocket } from "./http/web-socket.ts";
import type { GatewayCaller } from "./gateway-caller.ts";
import { sessionOfHeader } from "./choose-session.ts";
import type { GatewayMode, Upstream } from "./gateway-options.ts";
import { isUnsafePath, pathOf, type PathRule, ruleOf } from "./gateway-path.ts";
import { assertGatewayScope, modeOf, scopeOf, tokenText } from "./gateway-rights.ts";
import { hasToken, requestHeaders } from "./raw-headers.ts";
import { secretOf } from "./secrets.ts";
import type { GatewayScope } from "./session-lookup.ts";

export interface GatewayRequest {
  readonly upstream: Upstream;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** @throws {ThroughlineError} UNAUTHENTICATED, RATE_LIMITED */
  readonly authenticate: (token: string | null) => Promise<GatewayCaller>;
}

export interface CallRoute {
  readonly upstream: Upstream;
  readonly method: string;
  readonly path: string;
  /** Holds the path and query as the client sent them, without decoding. */
  readonly target: string;
  readonly rule: PathRule;
}

/** Holds what a call may do. It is decided from the head of the request, before the body is read. */
export interface AdmittedCall extends Omit<CallRoute, "rule"> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly scope: GatewayScope;
  readonly mode: GatewayMode;
  readonly mayWrite: boolean;
  /** Is null for a call that is passed on without a record. */
  readonly api: WireApi | null;
  /** Holds the server's key, which must not reach the client. Is null when the client sends its own key. */
  readonly secret: string | null;
  /** Holds the headers for the provider. */
  readonly headers: readonly string[];
  /** Aborts when the client goes away. */
  readonly gone: AbortController;
}

/** @throws {ThroughlineError} INPUT_INVALID for an address that no provider may see */
export function routeOf({ upstream, request }: GatewayRequest): CallRoute {
  const { path, target } = pathOf(upstream, request);
  const method = request.method ?? "";
  if (isUnsafePath(path)) throw refused("INPUT_INVALID", "The path has a segment that no path may have.");
  if (hasToken(target))
    throw refused("INPUT_INVALID", "The address holds a token of the server, which no provider may see.");
  return { upstream, method, path, target, rule: ruleOf(upstream, method, path) };
}

/**
 * Checks the token and its rights.
 * @throws {ThroughlineError} UNAUTHENTICATED, RATE_LIMITED, UPGRADE_REFUSED, FORBIDDEN, ROUTE_NOT_FOUND, INPUT_INVALID
 */
export async function admitCall(
  { rule, ...route }: CallRoute,
  { request, response, authenticate }: GatewayRequest,
): Promise<AdmittedCall> {
  const { upstream } = route;
  const token = await authenticate(tokenText(upstream, request));
  // Clients that ask for a WebSocket fall back to HTTP only at the status of this error.
  if (asksForWebSocket(request))
    throw refused("UPGRADE_REFUSED", "The gateway speaks HTTP only.", { upgrade: request.headers.upgrade });
  assertGatewayScope(upstream, rule, token);
  const scope = scopeOf(token, request);
  const api = rule.does === "record" ? rule.api : null;
  const mode = api === null ? "record" : modeOf(upstream, token, request);
  const missing = missingScope(token, mode);
  const mayWrite = missing === undefined;
  sessionOfHeader(request.headers["throughline-session"], scope, mayWrite, missing);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const isOwnCredential = upstream.credentials === "server";
  const secret = isOwnCredential ? secretOf(upstream.apiKey) : null;
  const headers = [...requestHeaders(request, isOwnCredential), ...(isOwnCredential ? credentialOf(upstream) : [])];
  return { ...route, request, response, scope, mode, mayWrite, api, secret, headers, gone };
}

/**
 * In the modes other than `record`, the session's content reaches the provider and, through the answer, the client. The
 * token therefore needs `read` as well.
 */
function missingScope({ scopes }: GatewayCaller, mode: GatewayMode): "write" | "read" | undefined {
  const needs = mode === "record" ? (["write"] as const) : (["write", "read"] as const);
  return needs.find((needed) => !scopes.includes(needed));
}

function credentialOf({ api, apiKey }: Upstream): readonly string[] {
  if (apiKey === null) return [];
  return api === "anthropic" ? ["x-api-key", apiKey] : ["authorization", `Bearer ${apiKey}`];
}

import { hasErrorCode, parseSessionKey, sessionRef, type SessionRef, ThroughlineError } from "@throughline/core";
import { z } from "zod";
import { refused, sessionNotFound } from "@throughline/core/internal";
import { assertDeclared, type BodyShare, readBody } from "@throughline/gateway/internal";
import { createView, type View } from "../security/view.ts";
import type { TokenInfo } from "../security/token-store.ts";
import type { ApiContext } from "../api-context.ts";
import type { SessionApiLimits } from "../api-options.ts";
import type { HeaderMap } from "./answer.ts";
import type { ApiIncoming, Exchange } from "./exchange.ts";
import type { RouteMatch } from "./match-route.ts";
import { assertShortLists, parseQuery, parseWith } from "./parse-request.ts";
import { parseJson } from "./parse-body.ts";
import type { ApiRequest, RouteDefinition } from "./route.ts";
import { decodeSegment, keyOfSegment } from "./session-segment.ts";
import { writeAnswer } from "./write-answer.ts";

const noQuery = z.strictObject({});

/** Is an exchange that the checks before the routes accepted. */
interface RoutedExchange {
  readonly exchange: Exchange;
  readonly id: string;
  readonly query: string;
  readonly headers: HeaderMap;
  /**
   * Is called when the token has the required scope, before the body is read and held in memory. @throws
   * {ThroughlineError} RATE_LIMITED
   */
  readonly onAllowed: () => void;
}

/**
 * Handles one request of a valid token. The checks run in this order: scope, rate, media type, body, schema. The route
 * runs last.
 */
export async function handleApi(
  context: ApiContext,
  token: TokenInfo,
  { route, parameters }: RouteMatch<RouteDefinition>,
  routed: RoutedExchange,
): Promise<void> {
  const view = createView(context.store, token, namespaceOf(routed.exchange.request));
  await requireScope(context, view, route, routed);
  routed.onAllowed();
  const share = context.bodies.share(token.id);
  try {
    await answerWith(share, context, view, { route, parameters }, routed);
  } finally {
    share.release();
  }
}

async function answerWith(
  share: BodyShare,
  context: ApiContext,
  view: View,
  { route, parameters }: RouteMatch<RouteDefinition>,
  { exchange, id, query: queryText, headers: ownHeaders }: RoutedExchange,
): Promise<void> {
  const { request, response } = exchange;
  const { body, type } = await bodyOf(route, exchange, context, share);
  const query = parseQuery(route.query ?? noQuery, queryText) as Readonly<Record<string, unknown>>;
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const api: ApiRequest<Record<string, unknown>> = {
    context,
    view,
    query,
    body,
    bodyType: type,
    id,
    parameters,
    header: (name) => headerOf(request, name),
    signal: gone.signal,
    ref: () => refOf(keyOfSegment(parameters["session"] ?? ""), query, view),
    refOf: (key) => refOf(key, query, view),
    // A new session needs a key that `sessionRef` accepts, because people and programs will type the key again.
    newRef: () => sessionRef(api.ref()),
    response,
  };
  try {
    const answer = await route.handle(api);
    if (route.method !== "GET" && parameters["session"] !== undefined) {
      context.hub.touch(api.ref());
      context.onChanged(api.ref());
    }
    if (answer === null) return;
    const headers = { ...ownHeaders, ...answer.headers };
    // A client that does not read its answer keeps the answer in the server's memory, so the write has a timeout.
    response.setTimeout(context.limits.bodyMs);
    const { accept, "accept-encoding": acceptEncoding } = request.headers;
    await writeAnswer(response, { ...answer, headers }, { requestId: id, accept, acceptEncoding });
  } catch (error) {
    // A token for some agents must not learn whether another agent has the key, so the answer is the one for a missing
    // session.
    if (view.token.agents !== "*" && hasErrorCode(error, "KEY_AGENT_MISMATCH") && parameters["session"] !== undefined)
      throw sessionNotFound(api.ref());
    throw error;
  }
}

/** Writes a refused `/admin` call to the audit log, because it may be an attack. */
async function requireScope(
  context: ApiContext,
  view: View,
  route: RouteDefinition,
  { id, onAllowed }: Pick<RoutedExchange, "id" | "onAllowed">,
): Promise<void> {
  try {
    view.require(route.scope);
    if (route.isAlsoRead === true) view.require("read");
  } catch (error) {
    if (route.scope === "admin") {
      // Each refusal writes an audit event, so the rate limit must apply first. Otherwise one token could fill the
      // audit log.
      onAllowed();
      const { token, namespace } = view;
      const about = { by: token.id, namespace, agentId: view.onlyAgent, requestId: id };
      await context.audit.write({ ...about, action: "refused", details: { operation: route.id } });
    }
    throw error;
  }
}

async function bodyOf(
  route: RouteDefinition,
  { request, isBodyRead, continueBody }: Pick<Exchange, "request" | "isBodyRead" | "continueBody">,
  { limits: all }: ApiContext,
  share: BodyShare,
): Promise<{ readonly body: unknown; readonly type: string }> {
  const { headers } = request;
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  const rule = route.body;
  if (rule === undefined || (!hasBody && rule.isOptional === true)) {
    if (hasBody) throw refused("INPUT_INVALID", "The route takes no body.");
    return { body: undefined, type: "" };
  }
  const type = (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const { types = ["application/json"] } = rule;
  if (!types.includes(type))
    throw refused("MEDIA_TYPE_UNSUPPORTED", `The body must be ${types.join(" or ")}.`, { types });
  if ((headers["content-encoding"] ?? "identity") !== "identity")
    throw refused("MEDIA_TYPE_UNSUPPORTED", "The body must not be encoded.", { contentEncoding: "identity" });
  if ((headers["transfer-encoding"] ?? "chunked").toLowerCase() !== "chunked")
    throw refused("MEDIA_TYPE_UNSUPPORTED", "The body must not be encoded.", { transferEncoding: "chunked" });
  if (rule.isStream === true) {
    if (isBodyRead) throw bodyReadError();
    continueBody();
    return { body: arriving(request, all.bodyMs), type };
  }
  const limits: SessionApiLimits = {
    ...all,
    bodyBytes: Math.min(all.bodyBytes, rule.most?.bytes ?? Infinity),
    jsonValues: Math.min(all.jsonValues, rule.most?.values ?? Infinity),
  };
  assertDeclared(request, limits.bodyBytes);
  if (isBodyRead) throw bodyReadError();
  continueBody();
  const bytes = await readBody(request, limits, type !== "application/x-ndjson", share);
  const value = rule.read === undefined ? parseJson(bytes) : rule.read(bytes, type, limits);
  assertShortLists(value);
  return { body: parseWith(rule.schema, value, "body"), type };
}

/** Yields the body as it arrives. A client that sends nothing for the time of a body is refused. */
async function* arriving(request: ApiIncoming, bodyMs: number): AsyncGenerator<Uint8Array> {
  const pieces = request.iterator({ destroyOnReturn: false });
  for (;;) {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(refused("REQUEST_TIMEOUT", "The body did not arrive in time.")), bodyMs);
    try {
      const next = (await Promise.race([pieces.next(), late.promise])) as IteratorResult<Uint8Array>;
      if (next.done === true) return;
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}

function bodyReadError(): ThroughlineError {
  const message = "Another handler of this server has read the body of the request, so the API cannot read it.";
  const remedy = "Mount the session API before the middleware that reads bodies, such as express.json().";
  return new ThroughlineError("CONFIG_INVALID", message, { outcome: "not-applied", remedy });
}

function namespaceOf(request: ApiIncoming): string | undefined {
  const named = headerOf(request, "throughline-namespace");
  return named === undefined ? undefined : decodeSegment(named);
}

/** @throws {ThroughlineError} INPUT_INVALID for a header that occurs twice */
function headerOf({ headersDistinct }: ApiIncoming, name: string): string | undefined {
  const values = headersDistinct[name] ?? [];
  if (values.length > 1) throw refused("INPUT_INVALID", `The header ${name} occurs more than once.`, { header: name });
  return values[0];
}

function refOf(key: string, query: Readonly<Record<string, unknown>>, view: View): SessionRef {
  const agentId = textOf(query["agent"]) ?? agentOf(key) ?? view.onlyAgent ?? "main";
  const archiveId = textOf(query["archive"]);
  const ref = { namespace: view.namespace, agentId, key, ...(archiveId === undefined ? {} : { archiveId }) };
  view.assertSeen(ref);
  return ref;
}

function agentOf(key: string): string | null {
  try {
    return parseSessionKey(key).agentId;
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID")) return null;
    throw error;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

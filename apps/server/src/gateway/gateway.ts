import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, hasErrorCode, type SessionRef, type SessionStore } from "@throughline/core";
import { monotonicMs } from "@throughline/core/node";
import { refused } from "@throughline/core/store";
import { bodyText, readReply, splitRequest, type ReadReply, type SplitRequest, type WireApi } from "@throughline/wire";
import { readBody } from "../http/read-body.ts";
import type { Metrics } from "../operations/metrics.ts";
import type { ServerLog } from "../operations/request-log.ts";
import type { TokenInfo } from "../security/token-store.ts";
import { AnswerCopy, mostCopied, unpacked } from "./answer-copy.ts";
import type { EndedCall } from "./call-record.ts";
import { sessionOfHeader } from "./choose-session.ts";
import { createGatewayMetrics } from "./gateway-metrics.ts";
import type { Upstream } from "./gateway-options.ts";
import { isUnsafePath, ruleOf } from "./gateway-path.ts";
import { assertGatewayScope, assertOwnIds, scopeOf, tokenText } from "./gateway-rights.ts";
import { writeProviderError } from "./provider-error.ts";
import { keptHeaders, requestHeaders, responseHeaders } from "./raw-headers.ts";
import { type OpenCall, Recorder } from "./recorder.ts";
import { createUpstreamConnections, relayBody, type RelayEnd } from "./relay.ts";

/** Passes requests on to providers, and stores the calls among them. */
export interface Gateway {
  /** The upstream that a request is for; null for one of the server's own. */
  upstreamOf(target: string): Upstream | null;
  answer(request: GatewayRequest): Promise<void>;
  /** Answers with an error of ours in the words of the provider. */
  refuse(upstream: Upstream, request: IncomingMessage, response: ServerResponse, error: unknown): void;
  /** What is known of a session may be wrong: something else changed it. */
  forget(ref: SessionRef): void;
  /** Stores what waits, and lets go of connections. */
  close(): Promise<void>;
}

/** A request that names an upstream, once host and origin are checked. */
export interface GatewayRequest {
  readonly upstream: Upstream;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** @throws {ThroughlineError} UNAUTHENTICATED, RATE_LIMITED */
  readonly authenticate: (token: string | null) => Promise<TokenInfo>;
}

export interface GatewayParts {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly log: ServerLog;
  readonly metrics: Metrics;
}

/** The largest body of a request. */
const bodyBytes = 32 * 1024 * 1024;
/** How long the body of a request may take to arrive: images go over slow lines. */
export const uploadMs: number = 300_000;
/** How long an answer that is there waits for the name of its session. */
const mostNameWaitMs = 50;
const mostErrorBytes = 64 * 1024;
const mostUnknownBytes = 16 * 1024;
/** How long what leads to a session is kept. */
const lookupMs = 7 * 24 * 3_600_000;
const pruneEveryMs = 3_600_000;

export function createGateway({ upstreams, store, clock, log, metrics: registry }: GatewayParts): Gateway {
  const connections = createUpstreamConnections();
  const metrics = createGatewayMetrics(registry);
  const recorder = new Recorder({ store, clock });
  const prune = (): void => {
    recorder.lookup
      .prune(clock.nowMs() - lookupMs)
      .catch((error: unknown) => log.failed("Old notes of the gateway could not be removed.", error));
  };
  const pruning = setInterval(prune, pruneEveryMs);
  pruning.unref();
  const storing = new Set<Promise<void>>();

  const keep = (work: Promise<void>): void => {
    const kept = work
      .catch((error: unknown) => {
        metrics.unrecorded(hasErrorCode(error, "FORBIDDEN") ? "refused" : "store");
        log.failed("A call of the gateway could not be stored.", error);
      })
      .finally(() => storing.delete(kept));
    storing.add(kept);
  };

  const answer = async ({ upstream, request, response, authenticate }: GatewayRequest): Promise<void> => {
    const { path, target } = pathOf(upstream, request);
    const method = request.method ?? "";
    if (isUnsafePath(path)) throw refused("INPUT_INVALID", "The path has a segment that no path may have.");
    const rule = ruleOf(upstream, method, path);
    if (rule.does === "probe") return void response.writeHead(200, { "content-length": "0" }).end();
    const token = await authenticate(tokenText(upstream, request));
    // A client that asks for a WebSocket falls back to HTTP at this status only.
    if (request.headers.upgrade !== undefined)
      throw refused("UPGRADE_REFUSED", "The gateway speaks HTTP only.", { upgrade: request.headers.upgrade });
    assertGatewayScope(upstream, rule, token);
    const scope = scopeOf(token, request);
    const mayWrite = token.scopes.includes("write");
    sessionOfHeader(request.headers["throughline-session"], scope, mayWrite);
    const body = await readBody(request, { bodyBytes, bodyMs: uploadMs, jsonLevels: 0 }, false);
    const beganMs = monotonicMs();
    const startedMs = clock.nowMs();
    const api = rule.does === "record" ? rule.api : null;
    const encoding = request.headers["content-encoding"];
    const isPlain = encoding === undefined || encoding === "identity";
    // With a key of ours, an id that another token was given must not continue its conversation.
    const isOwnCredential = upstream.credentials === "server";
    if (isOwnCredential) await assertOwnIds({ upstream, target, body, isPlain, api, scope }, recorder.lookup);

    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const headers = requestHeaders(request, isOwnCredential);
    if (isOwnCredential) headers.push(...credentialOf(upstream));
    const sentMs = monotonicMs();
    const answered = connections.send(upstream, { method, target, headers, body }, gone.signal);
    // It is awaited below; until then nobody hears of a failure.
    answered.catch(() => {});
    const recordId = `call-${randomBytes(15).toString("base64url")}`;
    const copied = await copyOf(api, body, encoding);
    const sent: SentCall | null =
      copied === null
        ? null
        : {
            ...copied,
            recordId,
            upstream: upstream.name,
            method,
            path,
            query: keptQuery(target),
            requestHeaders: keptHeaders(request, "request"),
            startedMs,
            requestBytes: body.length,
            requestEncoding: isPlain ? null : String(encoding),
          };
    const call =
      sent === null
        ? null
        : { sent, open: recorder.open({ ...sent, scope, headers: request.headers, mayWrite }, recordId) };
    if (api !== null && call === null) metrics.unrecorded("unreadable");
    let outgoing: IncomingMessage;
    try {
      outgoing = await answered;
    } catch (error) {
      if (call !== null) keep(storeCall(call, { error }));
      if (hasErrorCode(error, "ABORTED")) return void response.destroy();
      throw error;
    }
    const firstByteMs = clock.nowMs();
    const headMs = monotonicMs();
    const session = call === null ? null : await within(call.open.session, mostNameWaitMs);
    const addedMs = monotonicMs() - headMs + sentMs - beganMs;
    writeHead(response, outgoing, { session, call: call === null ? null : recordId, addedMs });
    metrics.added(addedMs);
    const copy = new AnswerCopy();
    const end = await relayBody(outgoing, response, (chunk) => {
      if (call !== null) copy.take(chunk);
    });
    if (call !== null) keep(storeCall(call, { outgoing, copy, end, firstByteMs }));
    else metrics.call({ upstream: upstream.name, api: api ?? "other", mode: "pass", outcome: end });
  };

  /** Stores what came of a call, and counts it. */
  async function storeCall({ sent, open }: RecordedCall, came: Came): Promise<void> {
    const { split, ...facts } = sent;
    const answer = answerOf(came);
    const isError = answer.status < 200 || answer.status >= 300;
    const text = "copy" in came ? await came.copy.text(came.outgoing.headers["content-encoding"]) : null;
    const reply = text === null || isError || !("copy" in came) ? null : replyOf(facts.api, came.outgoing, text, split);
    const outcome = outcomeOf(came, isError, reply);
    metrics.call({ upstream: facts.upstream, api: facts.api, mode: "record", outcome });
    const { usage } = reply?.draft?.message ?? {};
    if (usage !== undefined) {
      const { input, output, cacheRead, cacheWrite } = usage;
      metrics.tokens(facts.upstream, { input, output, cacheRead, cacheWrite });
    }
    const ended: EndedCall = {
      ...facts,
      ...answer,
      outcome,
      endedMs: clock.nowMs(),
      errorBody: errorOf(came, isError ? text : (reply?.error ?? null)),
      unknownEvents: fitting(reply?.unknown ?? []),
    };
    await open.end(ended, reply);
  }

  return {
    upstreamOf: (target) => upstreams.get(/^\/([a-z0-9-]+)(?:[/?]|$)/.exec(target)?.[1] ?? "") ?? null,
    answer,
    refuse: (upstream, request, response, error) => {
      const isUnread = !request.complete;
      const isLast = isUnread || hasErrorCode(error, "UPGRADE_REFUSED");
      writeProviderError(response, upstream.api, error, isLast ? { connection: "close" } : {});
      request.resume();
      if (isUnread) setTimeout(() => request.socket.destroy(), 1000).unref();
    },
    forget: (ref) => recorder.forget(ref),
    async close() {
      clearInterval(pruning);
      connections.close();
      while (storing.size > 0) await Promise.allSettled(storing);
      await recorder.settled();
    },
  };
}

/** What is known of a call before there is an answer. */
interface SentCall extends Omit<EndedCall, keyof AnswerFacts | "outcome" | "endedMs" | "errorBody" | "unknownEvents"> {
  readonly split: SplitRequest;
}

/** A call that is recorded. */
interface RecordedCall {
  readonly sent: SentCall;
  readonly open: OpenCall;
}

type AnswerFacts = Pick<EndedCall, "status" | "responseHeaders" | "firstByteMs" | "responseSha256" | "responseBytes">;

/** What came of a call: an answer, or why there was none. */
type Came =
  | {
      readonly outgoing: IncomingMessage;
      readonly copy: AnswerCopy;
      readonly end: RelayEnd;
      readonly firstByteMs: number;
    }
  | { readonly error: unknown };

function answerOf(came: Came): AnswerFacts {
  if (!("copy" in came))
    return { status: 0, responseHeaders: {}, firstByteMs: null, responseSha256: "", responseBytes: 0 };
  const { outgoing, copy, firstByteMs } = came;
  return {
    status: outgoing.statusCode ?? 0,
    responseHeaders: keptHeaders(outgoing, "response"),
    firstByteMs,
    responseSha256: copy.sha256,
    responseBytes: copy.bytes,
  };
}

/** The path below the upstream's name without the query, and with it. */
function pathOf({ name }: Upstream, { url = "" }: IncomingMessage): { readonly path: string; readonly target: string } {
  const target = url.slice(name.length + 1);
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  return { path: path === "" ? "/" : path, target: path === "" ? `/${target}` : target };
}

async function copyOf(
  api: WireApi | null,
  body: Buffer,
  encoding: string | undefined,
): Promise<Pick<SentCall, "api" | "split" | "requestSha256"> | null> {
  if (api === null) return null;
  const plain = await unpacked(body, encoding);
  const text = plain === null || plain.length > mostCopied ? null : bodyText(plain);
  const split = text === null ? null : splitRequest(api, text);
  if (plain === null || split === null || split.units.length === 0) return null;
  return { api, split, requestSha256: createHash("sha256").update(plain).digest("hex") };
}

function replyOf(api: WireApi, { headers }: IncomingMessage, text: string, split: SplitRequest): ReadReply {
  const model = split.member("model");
  return readReply(
    api,
    headers["content-type"] ?? "",
    text,
    typeof model === "string" && model !== "" ? model : undefined,
  );
}

function outcomeOf(came: Came, isError: boolean, reply: ReadReply | null): EndedCall["outcome"] {
  if (!("copy" in came)) return hasErrorCode(came.error, "ABORTED") ? "aborted" : "failed";
  if (came.end === "aborted") return "aborted";
  if (isError) return "failed";
  if (came.end === "cut") return "partial";
  // An answer that is too large to be read ended all the same.
  if (reply === null || reply.isEnded) return reply?.error == null ? "answered" : "failed";
  return reply.error === null ? "partial" : "failed";
}

function errorOf(came: Came, text: string | null): string | null {
  if ("error" in came) return came.error instanceof Error ? came.error.message : null;
  return text === null ? null : text.slice(0, mostErrorBytes);
}

function fitting(events: readonly string[]): readonly string[] {
  let bytes = 0;
  return events.filter((event) => (bytes += event.length) <= mostUnknownBytes);
}

function credentialOf({ api, apiKey }: Upstream): readonly string[] {
  if (apiKey === null) return [];
  return api === "anthropic" ? ["x-api-key", apiKey] : ["authorization", `Bearer ${apiKey}`];
}

const secretNames = /key|token|secret|sign|pass|auth|cred/i;

/** The query as it is stored: what may be a secret is left out. */
function keptQuery(target: string): string {
  const mark = target.indexOf("?");
  if (mark === -1) return "";
  const parts = target.slice(mark + 1, mark + 1 + 2048).split("&");
  return parts.filter((part) => !secretNames.test(part.split("=")[0] ?? "")).join("&");
}

function writeHead(
  response: ServerResponse,
  answer: IncomingMessage,
  {
    session,
    call,
    addedMs,
  }: { readonly session: string | null; readonly call: string | null; readonly addedMs: number },
): void {
  const headers = responseHeaders(answer);
  if (session !== null) headers.push("throughline-session", session);
  if (call !== null) headers.push("throughline-call", call);
  headers.push("server-timing", `throughline;dur=${addedMs.toFixed(2)}`);
  // The provider's own date stands among the headers.
  response.sendDate = false;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers);
  response.flushHeaders();
}

/** What a promise gives within a time; null where it takes longer or fails. */
async function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } catch {
    // Whoever stores the call reports it.
    return null;
  } finally {
    clearTimeout(timer);
  }
}

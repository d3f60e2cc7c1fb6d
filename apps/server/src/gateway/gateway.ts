import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { type Clock, hasErrorCode, type SessionRef, type SessionStore, type Summarizer } from "@throughline/core";
import { monotonicMs, parsedFields, refused } from "@throughline/core/internal";
import type { TokenEstimator } from "@throughline/tokens";
import { continueBody } from "../http/api-handler.ts";
import type { BodyBudget } from "../http/body-budget.ts";
import { assertDeclared } from "../http/read-body.ts";
import { asksForWebSocket } from "../http/web-socket.ts";
import type { Metrics } from "../operations/metrics.ts";
import type { ServerLog } from "../operations/request-log.ts";
import type { TokenInfo } from "../security/token-store.ts";
import { writeHead } from "./answer-head.ts";
import { AnswerCopy, mostCopied } from "./answer-copy.ts";
import { type Came, copyOf, type SentCall } from "./call-facts.ts";
import { sessionOfHeader } from "./choose-session.ts";
import { readGuardedCall } from "./ended-call.ts";
import { createGatewayMetrics } from "./gateway-metrics.ts";
import { type GatewayOptions, spoolOf, type Upstream } from "./gateway-options.ts";
import { isUnsafePath, pathOf, ruleOf } from "./gateway-path.ts";
import { assertGatewayScope, assertOwnIds, modeOf, noteGiven, scopeOf, tokenText } from "./gateway-rights.ts";
import { Guard, passUnchanged, type PassedCall, type RebuiltCall } from "./guard.ts";
import { writeProviderError } from "./provider-error.ts";
import { hasToken, headersOfMade, keptHeaders, requestHeaders } from "./raw-headers.ts";
import { bodyBytes, bodyOf, bodyWeight, type HeldBody } from "./request-body.ts";
import { type OpenCall, Recorder } from "./recorder.ts";
import { credentialsIn, keptQuery, secretOf } from "./secrets.ts";
import type { GatewayScope } from "./session-lookup.ts";
import { createUpstreamConnections, relayBody, type RelayEnd } from "./relay.ts";
import { createCallKeeper, mostBusyMs, mostBusySpoolMs } from "./keep-calls.ts";
import { assertBegun, assertNotBehind, beginTurn, denialOf, logOf, mostStoreWaitMs, nameOf } from "./store-waits.ts";
import { endOf } from "./terminal-event.ts";
import { type GatewayTurn, Turns } from "./turns.ts";
import type { TurnRules } from "../turn-rules.ts";
import { within } from "../within.ts";

export interface Gateway {
  /** Returns null for a route of the server itself. */
  upstreamOf(target: string): Upstream | null;
  answer(request: GatewayRequest): Promise<void>;
  /** Answers with an error in the format of the provider's API, because the client's SDK parses that format. */
  refuse(upstream: Upstream, request: IncomingMessage, response: ServerResponse, error: unknown): void;
  /** Drops the cached session, because another component changed it. */
  forget(ref: SessionRef): void;
  /** Handles a redaction or purge. Returns how many spooled calls may still hold the erased content. */
  erased(ref: SessionRef, isPurged: boolean): Promise<number>;
  /** Is true while calls wait for the store. It is also true for a minute after a call was lost. */
  readonly isWaiting: boolean;
  close(): Promise<void>;
}

interface GatewayRequest {
  readonly upstream: Upstream;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** @throws {ThroughlineError} UNAUTHENTICATED, RATE_LIMITED */
  readonly authenticate: (token: string | null) => Promise<TokenInfo>;
}

export interface GatewayParts {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly store: SessionStore;
  readonly turnRules: TurnRules;
  readonly bodies: BodyBudget;
  readonly clock: Clock;
  readonly log: ServerLog;
  readonly metrics: Metrics;
  readonly estimator: TokenEstimator;
  readonly summarizers: readonly Summarizer[];
}

/**
 * Bodies from this size on are streamed to the provider while they arrive. Smaller bodies arrive with the head, so
 * streaming them gains nothing.
 */
const leastUploaded = 64 * 1024;
/**
 * Limits how long notes for the session lookup are kept, because the store would otherwise grow with each conversation.
 */
const lookupMs = 7 * 24 * 3_600_000;
const pruneEveryMs = 3_600_000;

export async function createGateway(
  options: GatewayOptions,
  { upstreams, store, turnRules, bodies, clock, log, metrics: registry, estimator, summarizers }: GatewayParts,
): Promise<Gateway> {
  const spool = spoolOf(options);
  const isRefusing = options.onStoreDown === "refuse";
  const connections = createUpstreamConnections(options.proxyVariables);
  const metrics = createGatewayMetrics(registry);
  const recorder = new Recorder({ store, clock, busyWaitMs: spool === null ? mostBusyMs : mostBusySpoolMs });
  const turns = new Turns({ store, turnRules, clock, logs: recorder.logs, lookup: recorder.lookup });
  const guard = new Guard({ clock, log, metrics, estimator, summarizers });
  const keeper = await createCallKeeper({ clock, recorder, metrics, log, spool });
  const prune = (): void => {
    recorder.lookup
      .prune(clock.nowMs() - lookupMs)
      .catch((error: unknown) => log.failed("Old notes of the gateway could not be removed.", error));
  };
  prune();
  const pruning = setInterval(prune, pruneEveryMs);
  pruning.unref();
  const storing = new Set<Promise<unknown>>();

  const keep = (work: Promise<boolean>): Promise<boolean> => {
    const kept = work
      .catch((error: unknown) => {
        metrics.unrecorded("failed");
        log.failed("A call of the gateway could not be stored.", error);
        return false;
      })
      .finally(() => storing.delete(kept));
    storing.add(kept);
    return kept;
  };

  const keepEnded = (call: RecordedCall, ...came: readonly [Came, RebuiltCall | null]): Promise<boolean> => {
    const kept = keep(storeCall(call, ...came));
    recorder.addStoring(call.scope, call.open, kept);
    return kept;
  };

  const answer = async (asked: GatewayRequest): Promise<void> => {
    const held: HeldBody = { share: null, until: Promise.resolve() };
    try {
      await pass(asked, held);
    } finally {
      void held.until.finally(() => held.share?.release());
    }
  };

  const pass = async ({ upstream, request, response, authenticate }: GatewayRequest, held: HeldBody): Promise<void> => {
    const { path, target } = pathOf(upstream, request);
    const method = request.method ?? "";
    if (isUnsafePath(path)) throw refused("INPUT_INVALID", "The path has a segment that no path may have.");
    if (hasToken(target))
      throw refused("INPUT_INVALID", "The address holds a token of the server, which no provider may see.");
    const rule = ruleOf(upstream, method, path);
    if (rule.does === "probe") return void response.writeHead(200, { "content-length": "0" }).end();
    const token = await authenticate(tokenText(upstream, request));
    // Clients that ask for a WebSocket fall back to HTTP only at the status of this error.
    if (asksForWebSocket(request))
      throw refused("UPGRADE_REFUSED", "The gateway speaks HTTP only.", { upgrade: request.headers.upgrade });
    assertGatewayScope(upstream, rule, token);
    const scope = scopeOf(token, request);
    const mode = rule.does === "record" ? modeOf(upstream, token, request) : "record";
    // In these modes the session's content reaches the provider and, through the answer, the client. The token
    // therefore needs `read`.
    const needs = (["write", ...(mode === "record" ? [] : ["read" as const])] as const).find(
      (needed) => !token.scopes.includes(needed),
    );
    const mayWrite = needs === undefined;
    sessionOfHeader(request.headers["throughline-session"], scope, mayWrite, needs);
    // Several tokens share the server's key. An id that another token received must not continue that token's
    // conversation.
    const isOwnCredential = upstream.credentials === "server";
    const secret = isOwnCredential ? secretOf(upstream.apiKey) : null;
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const headers = requestHeaders(request, isOwnCredential);
    if (isOwnCredential) headers.push(...credentialOf(upstream));
    // The request is sent before it is parsed, so that recording adds no latency. Exceptions are a required record and
    // an Ollama request that may be cut.
    const isLooked = mode === "guard" && upstream.api === "ollama";
    assertDeclared(request, bodyBytes);
    continueBody(request, response);
    const declaredBytes = Number(request.headers["content-length"] ?? 0);
    const isRecorded = rule.does === "record" && mode !== "stateful";
    // Without room in the spool, a call is passed on only if the store accepts it.
    const isStrict = isRefusing || (isRecorded && !(await keeper.hasRoom(declaredBytes || bodyBytes)));
    if (isStrict && isRecorded) assertNotBehind(keeper);
    const isEarly = !isStrict && !isLooked && mode === "record";
    const upload =
      isEarly && !isOwnCredential && declaredBytes >= leastUploaded
        ? connections.begin(upstream, { method, target, headers, bodyBytes: declaredBytes }, gone.signal)
        : null;
    // The promise is awaited below. Without this handler, an earlier failure would be an unhandled rejection.
    upload?.answer.catch(() => {});
    held.share = bodies.share(token.id, bodyWeight);
    const body = await bodyOf(request, upload, held.share).catch((error: unknown) => {
      gone.abort();
      throw error;
    });
    const beganMs = monotonicMs();
    const startedMs = clock.nowMs();
    const api = rule.does === "record" ? rule.api : null;
    const encoding = request.headers["content-encoding"];
    const isPlain = encoding === undefined || encoding === "identity";
    if (isOwnCredential) await assertOwnIds({ upstream, body, isPlain, api, mode, scope }, recorder.lookup);

    let turn: GatewayTurn | null = null;
    let sentMs = monotonicMs();
    const send = (own: Buffer | null = null): Promise<IncomingMessage> => {
      const made = own ?? turn?.body ?? null;
      const sending = made === null ? headers : headersOfMade(headers, own !== null);
      const answered = connections.send(
        upstream,
        { method, target, headers: sending, body: made ?? body },
        gone.signal,
      );
      // The promise is awaited below. Without this handler, an earlier failure would be an unhandled rejection.
      answered.catch(() => {});
      return answered;
    };
    const early = upload === null ? (isEarly ? send() : null) : upload.answer;
    const recordId = `call-${randomBytes(15).toString("base64url")}`;
    const copied = api === null ? null : await copyOf(api, body, encoding);
    const isRead = copied !== null && copied.read.split.unread === null;
    const sent: SentCall | null =
      copied === null
        ? null
        : {
            ...copied.read,
            recordId,
            upstream: upstream.name,
            mode,
            method,
            path,
            query: keptQuery(target),
            requestHeaders: keptHeaders(request, "request"),
            startedMs,
            requestBytes: body.length,
            requestEncoding: isPlain ? null : String(encoding),
          };
    if (mode === "stateful") {
      if (sent === null || !isRead || parsedFields(sent.split.text) === null)
        throw refused("INPUT_INVALID", "The session holds the history of JSON requests with messages only.");
      turn = await beginTurn(turns, clock, { ...sent, scope, headers: request.headers, mayWrite }, recordId);
      sentMs = monotonicMs();
    }
    const call: RecordedCall | null =
      sent === null || copied === null
        ? null
        : {
            sent: turn === null ? sent : { ...sent, ...asTurn(turn) },
            turn,
            body: copied.plain,
            scope,
            mayWrite,
            headers: request.headers,
            // While calls wait for the store, a new call waits behind them, so that records keep their order.
            open:
              keeper.isBehind || turn !== null
                ? null
                : recorder.open({ ...sent, scope, headers: request.headers, mayWrite }, recordId),
          };
    if (isStrict && call?.open != null) await assertBegun(clock, call.open);
    if (mode === "guard" && call?.open != null) {
      const denied = await denialOf(clock, call.open, { store, turnRules, scope });
      if (denied !== null) {
        void keep(storeCall(call, { error: denied }));
        throw denied;
      }
    }
    let passed: PassedCall;
    try {
      passed =
        mode !== "record" && call !== null && isRead
          ? await guard.pass({
              upstream,
              sent: call.sent,
              send: (own) => (own === null ? (early ?? send()) : send(own)),
              ask: (asked, askedTarget, text) =>
                connections.send(
                  upstream,
                  {
                    method: asked,
                    target: askedTarget,
                    headers: headersOfMade(headers, true),
                    body: Buffer.from(text),
                  },
                  gone.signal,
                ),
              signal: gone.signal,
              log: () => logOf(clock, recorder.logs, scope, turn === null ? (call.open?.session ?? null) : turn.key),
            })
          : await passUnchanged(early ?? send());
    } catch (error) {
      if (call !== null) held.until = keep(storeCall(call, { error }));
      if (hasErrorCode(error, "ABORTED")) return void response.destroy();
      throw error;
    }
    const { peeked, rebuilt } = passed;
    const outgoing = peeked.answer;
    const firstByteMs = clock.nowMs();
    const headMs = monotonicMs();
    const session = turn?.key ?? (call?.open == null ? null : await nameOf(clock, call.open));
    const addedMs = monotonicMs() - headMs + sentMs - beganMs;
    writeHead(response, outgoing, {
      session,
      call: call === null ? null : recordId,
      guard: rebuilt,
      addedMs,
      secret,
    });
    metrics.added(addedMs);
    const copy = new AnswerCopy();
    let kept: Promise<boolean> | null = null;
    const storeEnd = (end: RelayEnd): Promise<boolean> =>
      (kept ??= call === null ? Promise.resolve(true) : keepEnded(call, { outgoing, copy, end, firstByteMs }, rebuilt));
    const end = await relayBody(peeked, response, {
      secret: secret ?? "",
      onChunk: (chunk) => {
        if (call !== null) copy.take(chunk);
        if (call !== null && copy.bytes <= mostCopied) held.share?.add(chunk.length);
      },
      hold:
        (isStrict || turn !== null || keeper.isBehind) && call !== null
          ? { isLast: endOf(outgoing), until: () => storeEnd("whole") }
          : null,
    });
    held.until = storeEnd(end);
    if (call === null) metrics.call({ upstream: upstream.name, api: api ?? "other", mode: "pass", outcome: end });
  };

  async function storeCall(
    { sent, turn, ...rest }: RecordedCall,
    came: Came,
    rebuilt: RebuiltCall | null = null,
  ): Promise<boolean> {
    const credentials = credentialsIn(rest.headers, upstreams.get(sent.upstream)?.apiKey ?? null);
    const ended = await readGuardedCall(sent, came, rebuilt, { clock, credentials }).catch(async (error: unknown) => {
      // Without this the turn would keep the session busy until the process ends.
      await turn?.abandon();
      throw error;
    });
    const { upstream, api, mode } = sent;
    for (const { outcome } of [ended.call, ...(ended.rebuilt === null ? [] : [ended.rebuilt.call])])
      metrics.call({ upstream, api, mode, outcome });
    const { usage } = ended.read?.draft?.message ?? {};
    if (usage !== undefined) {
      const { input, output, cacheRead, cacheWrite } = usage;
      metrics.tokens(upstream, { input, output, cacheRead, cacheWrite });
    }
    const isKept = await (turn === null ? keeper.keep({ ...rest, ...ended }) : turn.end(ended));
    if (upstreams.get(sent.upstream)?.credentials === "server" && ended.reply !== null) {
      const key = turn?.key ?? rest.open?.place?.key ?? "";
      await noteGiven(recorder.lookup, { ...rest, api: sent.api, reply: ended.reply, key }).catch((error: unknown) =>
        log.failed("The ids of an answer could not be noted: its client cannot name them.", error),
      );
    }
    return isKept;
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
    erased: (ref, isPurged) => keeper.erase(ref, isPurged),
    get isWaiting() {
      return keeper.isWaiting || keeper.isLosing;
    },
    async close() {
      clearInterval(pruning);
      connections.close();
      recorder.limitBusyWait(mostStoreWaitMs);
      while (storing.size > 0) await Promise.allSettled(storing);
      await keeper.close();
      // Do not wait long for spooled calls: the next process stores them.
      await (keeper.isWaiting ? within(clock, recorder.settled(), mostStoreWaitMs) : recorder.settled());
    },
  };
}

/** The record must show the request that the provider received, so it replaces the client's request. */
function asTurn({ split, body, requestSha256 }: GatewayTurn): Partial<SentCall> {
  return { split, requestSha256, requestBytes: body.length, requestEncoding: null };
}

interface RecordedCall {
  readonly sent: SentCall;
  /** Is set for a call in stateful mode only. */
  readonly turn: GatewayTurn | null;
  /** Holds the decoded body, because hashes and messages refer to it. */
  readonly body: Buffer;
  readonly scope: GatewayScope;
  readonly mayWrite: boolean;
  readonly headers: IncomingHttpHeaders;
  /** Is null when the call has to wait behind other calls for the store. */
  readonly open: OpenCall | null;
}

function credentialOf({ api, apiKey }: Upstream): readonly string[] {
  if (apiKey === null) return [];
  return api === "anthropic" ? ["x-api-key", apiKey] : ["authorization", `Bearer ${apiKey}`];
}

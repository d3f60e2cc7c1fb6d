import type { IncomingHttpHeaders } from "node:http";
import type { Clock, SessionStore } from "@throughline/core";
import { parsedFields, refused, systemRandom } from "@throughline/core/internal";
import type { WireApi } from "./wire/index.ts";
import type { GatewayLog } from "./gateway-log.ts";
import type { TurnRules } from "@throughline/session/internal";
import { type Came, copyOf, type SentCall } from "./call-facts.ts";
import { type ReadCalls, readGuardedCall } from "./ended-call.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { Upstream } from "./gateway-options.ts";
import { noteGiven } from "./gateway-rights.ts";
import type { RebuiltCall } from "./guard.ts";
import type { CallKeeper, KeptCall } from "./keep-calls.ts";
import { newCallId } from "./new-call-id.ts";
import { PendingWork } from "./pending-work.ts";
import { keptHeaders } from "./raw-headers.ts";
import type { ReceivedCall } from "./receive-call.ts";
import type { Recorder } from "./recorder.ts";
import { encodingOf } from "./request-body.ts";
import type { RunningCall } from "./running-calls.ts";
import { credentialsIn, keptQuery } from "./secrets.ts";
import type { GatewayScope } from "./session-lookup.ts";
import { assertStored, beginTurn, denialOf } from "./store-waits.ts";
import type { GatewayTurn, Turns } from "./turns.ts";

export interface RecordedCall {
  readonly sent: SentCall;
  /** Is set for a call in stateful mode only. */
  readonly turn: GatewayTurn | null;
  /** Holds the decoded body, because hashes and messages refer to it. */
  readonly body: Buffer;
  readonly scope: GatewayScope;
  readonly mayWrite: boolean;
  readonly headers: IncomingHttpHeaders;
  /** Is null for a call in stateful mode. */
  readonly running: RunningCall | null;
  /** Whether the client may not hear the end of an answer that the gateway itself fails to read. */
  readonly isStrict: boolean;
}

export interface EndedAnswer {
  /** Resolves to false when neither the journal nor the store has the call. */
  readonly isKept: Promise<boolean>;
  /** Resolves when the first attempt to store the call has ended. */
  readonly stored: Promise<unknown>;
}

export interface RecordingParts {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly store: SessionStore;
  readonly turnRules: TurnRules;
  readonly recorder: Recorder;
  readonly turns: Turns;
  readonly keeper: CallKeeper;
  readonly clock: Clock;
  readonly metrics: GatewayMetrics;
  readonly log: GatewayLog;
}

/** Records calls from the request to the end of the answer, and knows the calls that are being stored. */
export class CallRecording {
  readonly #parts: RecordingParts;
  readonly #keeping = new PendingWork();

  constructor(parts: RecordingParts) {
    this.#parts = parts;
  }

  /**
   * Begins the record of a call. Null means that the call is passed on without a record.
   * @throws {ThroughlineError} SEND_DENIED, STORE_UNREACHABLE when the store must accept the call and does not,
   *   INPUT_INVALID, SESSION_BUSY, FORBIDDEN, ROUTE_NOT_FOUND
   */
  async begin(received: ReceivedCall): Promise<RecordedCall | null> {
    const { api, scope, mode, mayWrite, request, isStrict } = received;
    if (api === null) return null;
    const { clock, keeper, recorder, turns } = this.#parts;
    const { sent, body } = await readSent(received, api);
    const asked = { ...sent, scope, headers: request.headers, mayWrite };
    const call = { sent, turn: null, body, scope, mayWrite, headers: request.headers, isStrict };
    if (mode === "stateful") {
      assertHasHistory(sent);
      const turn = await beginTurn(turns, clock, asked, sent.recordId);
      return { ...call, sent: { ...sent, ...asTurn(turn) }, turn, running: null, isStrict: true };
    }
    const running = recorder.begin(asked, sent.recordId);
    // The store may know the session by the time of the answer. The code that stores the call reports an error.
    if (!keeper.isBehind) recorder.locate(running, mode === "guard").catch(() => {});
    if (isStrict) await assertStored(keeper, recorder, running, clock);
    if (mode === "guard") await this.#assertMaySend({ ...call, running }, running);
    return { ...call, running };
  }

  /** Keeps a call that got no answer. */
  fail(call: RecordedCall, error: unknown): EndedAnswer {
    return this.#ended(call, this.#keep(call, { error }, null));
  }

  /** Keeps a call whose answer has ended. The client may hear the end when `isKept` has resolved to true. */
  end(call: RecordedCall, came: Came, rebuilt: RebuiltCall | null): EndedAnswer {
    return this.#ended(call, this.#keep(call, came, rebuilt));
  }

  /** Resolves when every call that has ended is in the journal or the store, or counted as lost. */
  settled(): Promise<void> {
    return this.#keeping.settled();
  }

  async #assertMaySend(call: RecordedCall, running: RunningCall): Promise<void> {
    const denied = await denialOf(running, this.#parts);
    if (denied === null) return;
    void this.fail(call, denied);
    throw denied;
  }

  #ended({ isStrict }: RecordedCall, keeping: Promise<KeptCall>): EndedAnswer {
    const { metrics, log } = this.#parts;
    const kept = this.#keeping.track(
      keeping.catch((error: unknown): KeptCall => {
        metrics.unrecorded("failed");
        log.failed("A call of the gateway could not be stored.", error);
        // A repeat would fail as well, so breaking the answer off would not help its client.
        return { isKept: !isStrict, stored: Promise.resolve() };
      }),
    );
    return {
      isKept: kept.then(({ isKept }) => isKept),
      // The keeper reports a failure of the attempt.
      stored: kept.then(({ stored }) => stored).catch(() => {}),
    };
  }

  async #keep(call: RecordedCall, came: Came, rebuilt: RebuiltCall | null): Promise<KeptCall> {
    const { upstreams, keeper, clock, metrics, recorder } = this.#parts;
    const { sent, turn, running, ...rest } = call;
    const upstream = upstreams.get(sent.upstream) ?? null;
    const credentials = credentialsIn(rest.headers, upstream?.apiKey ?? null);
    const ended = await readGuardedCall(sent, came, rebuilt, { clock, credentials }).catch(async (error: unknown) => {
      // Without this the turn would keep the session busy until the process ends.
      await turn?.abandon();
      if (running !== null) recorder.release(running);
      throw error;
    });
    countCall(metrics, sent, ended);
    const noted = upstream?.credentials === "server" ? await this.#noteIds(call, ended) : null;
    if (running === null)
      return { isKept: turn === null || (await turn.end(ended)), stored: noted?.stored ?? Promise.resolve() };
    recorder.hear(running, ended);
    const kept = await keeper.keep({ ...rest, ...ended, running });
    return { ...kept, stored: Promise.allSettled([kept.stored, noted?.stored]) };
  }

  /** Remembers the ids of an answer before its client can use them, and starts to store their notes. */
  async #noteIds(
    { sent, turn, running, scope }: RecordedCall,
    { reply }: ReadCalls,
  ): Promise<{ readonly stored: Promise<unknown> } | null> {
    if (reply === null) return null;
    const { recorder, log } = this.#parts;
    const failed = (error: unknown): null => {
      log.failed("The ids of an answer could not be noted: its client cannot name them.", error);
      return null;
    };
    const key = turn?.key ?? running?.choice.place.key ?? "";
    const noted = await noteGiven(recorder.lookup, { api: sent.api, reply, scope, key }).catch(failed);
    return noted === null ? null : { stored: this.#keeping.track(noted.stored.catch(failed)) };
  }
}

/** Reads the request of a call, as its record keeps it. */
async function readSent(
  { upstream, mode, method, path, target, request, body, startedMs }: ReceivedCall,
  api: WireApi,
): Promise<Pick<RecordedCall, "sent" | "body">> {
  const { plain, read } = await copyOf(api, body, request.headers["content-encoding"]);
  const sent: SentCall = {
    ...read,
    recordId: newCallId(systemRandom),
    upstream: upstream.name,
    mode,
    method,
    path,
    query: keptQuery(target),
    requestHeaders: keptHeaders(request, "request"),
    startedMs,
    requestBytes: body.length,
    requestEncoding: encodingOf(request),
  };
  return { sent, body: plain };
}

function assertHasHistory({ split }: SentCall): void {
  if (split.unread !== null || parsedFields(split.text) === null)
    throw refused("INPUT_INVALID", "The session holds the history of JSON requests with messages only.");
}

/** The record must show the request that the provider received, so it replaces the client's request. */
function asTurn({ split, body, requestSha256 }: GatewayTurn): Partial<SentCall> {
  return { split, requestSha256, requestBytes: body.length, requestEncoding: null };
}

function countCall(
  metrics: GatewayMetrics,
  { upstream, api, mode }: SentCall,
  { call, read, rebuilt }: ReadCalls,
): void {
  for (const { outcome } of rebuilt === null ? [call] : [call, rebuilt.call])
    metrics.call({ upstream, api, mode, outcome });
  const { usage } = read?.draft?.message ?? {};
  if (usage === undefined) return;
  const { input, output, cacheRead, cacheWrite } = usage;
  metrics.tokens(upstream, { input, output, cacheRead, cacheWrite });
}

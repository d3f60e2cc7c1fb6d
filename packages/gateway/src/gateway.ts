import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, hasErrorCode, type SessionRef, type SessionStore, type Summarizer } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";
import type { TokenEstimator } from "@throughline/tokens";
import type { BodyBudget } from "./http/body-budget.ts";
import type { TurnRules } from "@throughline/session/internal";
import { admitCall, type GatewayRequest, routeOf } from "./admit-call.ts";
import type { GatewayLog } from "./gateway-log.ts";
import { createGatewayMetrics, type MetricsRegistry, type UnstoredCalls } from "./gateway-metrics.ts";
import { type GatewaySettings, journalOf, type Upstream } from "./gateway-options.ts";
import { Guard, type PassedCall } from "./guard.ts";
import { CallKeeper } from "./keep-calls.ts";
import { writeProviderError } from "./provider-error.ts";
import { receiveCall, type ReceivingParts } from "./receive-call.ts";
import { CallRecording } from "./record-call.ts";
import { Recorder } from "./recorder.ts";
import { askUpstream, relayAnswer, type RelayParts } from "./relay-call.ts";
import { createUpstreamConnections } from "./relay.ts";
import type { HeldBody } from "./request-body.ts";
import type { SessionLookup } from "./session-lookup.ts";
import { Turns } from "./turns.ts";

/** Answers the calls of a server that checks and traces its requests itself. */
export interface GatewayHandlers {
  /** Returns null for a route of the server itself. */
  upstreamOf(target: string): Upstream | null;
  answer(request: GatewayRequest): Promise<void>;
  /** Answers with an error in the format of the provider's API, because the client's SDK parses that format. */
  refuse(upstream: Upstream, request: IncomingMessage, response: ServerResponse, error: unknown): void;
  /** Drops the cached session, because another component changed it. */
  forget(ref: SessionRef): void;
  /** Handles a redaction or purge. Returns how many calls in the journal may still hold the erased content. */
  erased(ref: SessionRef, isPurged: boolean): Promise<number>;
  /** Is true while calls wait for the store. It is also true for a minute after a call was lost. */
  readonly isWaiting: boolean;
  /** Counts the calls that ended and that the store does not have yet. */
  readonly unstored: UnstoredCalls;
  close(): Promise<void>;
}

export interface GatewayParts {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly store: SessionStore;
  readonly turnRules: TurnRules;
  readonly bodies: BodyBudget;
  readonly clock: Clock;
  readonly log: GatewayLog;
  readonly metrics: MetricsRegistry;
  readonly estimator: TokenEstimator;
  readonly summarizers: readonly Summarizer[];
}

/**
 * Limits how long notes for the session lookup are kept, because the store would otherwise grow with each conversation.
 */
const lookupMs = 7 * 24 * 3_600_000;
/** Limits how long a call that could not be stored stays in the journal, because it holds a conversation. */
const failedMs = 30 * 24 * 3_600_000;
const pruneEveryMs = 3_600_000;

export async function createGatewayHandlers(options: GatewaySettings, parts: GatewayParts): Promise<GatewayHandlers> {
  const { upstreams, store, turnRules, bodies, clock, log, estimator, summarizers } = parts;
  const isRefusing = options.onStoreDown === "refuse";
  const connections = createUpstreamConnections(options.proxyVariables);
  const metrics = createGatewayMetrics(parts.metrics);
  const recorder = new Recorder({ store, clock });
  const { logs, lookup } = recorder;
  const turns = new Turns({ store, turnRules, clock, logs, lookup });
  const guard = new Guard({ clock, log, metrics, estimator, summarizers });
  const keeper = await CallKeeper.open({ clock, recorder, metrics, log, place: journalOf(options) });
  const recording = new CallRecording({ upstreams, store, turnRules, recorder, turns, keeper, clock, metrics, log });
  const pruning = pruneRegularly({ lookup, keeper, clock, log });
  const steps = { bodies, keeper, connections, lookup, recorder, guard, recording, metrics, clock, isRefusing };
  return {
    upstreamOf: (target) => upstreams.get(/^\/([a-z0-9-]+)(?:[/?]|$)/.exec(target)?.[1] ?? "") ?? null,
    answer: (asked) => answerCall(asked, steps),
    refuse: refuseCall,
    forget: (ref) => recorder.forget(ref),
    erased(ref, isPurged) {
      if (isPurged) recorder.purged(ref);
      return keeper.erase(ref, isPurged);
    },
    get isWaiting() {
      return keeper.isWaiting || keeper.isLosing;
    },
    get unstored() {
      return keeper.unstored;
    },
    async close() {
      clearInterval(pruning);
      connections.close();
      await keeper.close(recording.settled());
    },
  };
}

interface PruningParts extends Pick<GatewayParts, "clock" | "log"> {
  readonly lookup: SessionLookup;
  readonly keeper: CallKeeper;
}

/** Removes old notes and old failed calls, now and every hour. */
function pruneRegularly({ lookup, keeper, clock, log }: PruningParts): NodeJS.Timeout {
  const prune = (): void => {
    lookup
      .prune(clock.nowMs() - lookupMs)
      .catch((error: unknown) => log.failed("Old notes of the gateway could not be removed.", error));
    keeper
      .prune(clock.nowMs() - failedMs)
      .catch((error: unknown) => log.failed("Old failed calls of the gateway could not be removed.", error));
  };
  prune();
  return setInterval(prune, pruneEveryMs).unref();
}

type CallSteps = ReceivingParts & RelayParts;

/** Answers one call. Its body counts in the budget until the call is stored. */
async function answerCall(asked: GatewayRequest, steps: CallSteps): Promise<void> {
  const held: HeldBody = { share: null, until: Promise.resolve() };
  try {
    await passCall(asked, held, steps);
  } finally {
    void held.until.finally(() => held.share?.release());
  }
}

/** Takes a call through its steps: admit, receive, begin its record, ask the provider, relay the answer. */
async function passCall(asked: GatewayRequest, held: HeldBody, steps: CallSteps): Promise<void> {
  const { response } = asked;
  const route = routeOf(asked);
  if (route.rule.does === "probe") return void response.writeHead(200, { "content-length": "0" }).end();
  const admitted = await admitCall(route, asked);
  const received = await receiveCall(admitted, held, steps);
  const recorded = await steps.recording.begin(received);
  // In stateful mode the question is stored before it is sent.
  const call = recorded?.turn == null ? received : { ...received, sentMs: monotonicMs() };
  let passed: PassedCall;
  try {
    passed = await askUpstream(call, recorded, steps);
  } catch (error) {
    if (recorded !== null) held.until = steps.recording.fail(recorded, error).stored;
    if (hasErrorCode(error, "ABORTED")) return void response.destroy();
    throw error;
  }
  await relayAnswer(call, recorded, passed, held, steps);
}

function refuseCall(upstream: Upstream, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const isUnread = !request.complete;
  const isLast = isUnread || hasErrorCode(error, "UPGRADE_REFUSED");
  writeProviderError(response, upstream.api, error, isLast ? { connection: "close" } : {});
  request.resume();
  if (isUnread) setTimeout(() => request.socket.destroy(), 1000).unref();
}

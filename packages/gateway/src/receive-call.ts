import type { IncomingMessage } from "node:http";
import type { Clock } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";
import type { BodyBudget } from "./http/body-budget.ts";
import { assertDeclared, continueBody } from "./http/read-body.ts";
import type { AdmittedCall } from "./admit-call.ts";
import { assertOwnIds } from "./gateway-rights.ts";
import type { CallKeeper } from "./keep-calls.ts";
import { headersOfMade } from "./raw-headers.ts";
import type { BegunRequest, UpstreamConnections } from "./relay.ts";
import { bodyBytes, bodyOf, bodyWeight, encodingOf, type HeldBody } from "./request-body.ts";
import type { SessionLookup } from "./session-lookup.ts";
import { assertNotBehind } from "./store-waits.ts";

export interface ReceivedCall extends AdmittedCall {
  readonly body: Buffer;
  /** Is true for a call that is passed on only if the store accepts it. */
  readonly isStrict: boolean;
  /** Holds the answer to a request that was sent at once. Is null for a request that is sent later. */
  readonly early: Promise<IncomingMessage> | null;
  readonly startedMs: number;
  /** Is the monotonic time at which the body had arrived. */
  readonly beganMs: number;
  /** Is the monotonic time at which the request could be sent. */
  readonly sentMs: number;
}

export interface ReceivingParts {
  readonly bodies: BodyBudget;
  readonly keeper: CallKeeper;
  readonly connections: UpstreamConnections;
  readonly lookup: SessionLookup;
  readonly clock: Clock;
  /** Whether every call is refused that the store does not accept. */
  readonly isRefusing: boolean;
}

/**
 * Bodies from this size on are streamed to the provider while they arrive. Smaller bodies arrive with the head, so
 * streaming them gains nothing.
 */
const leastUploaded = 64 * 1024;

/**
 * Reads the body of a call. The request is sent before it is parsed, so that recording adds no latency. Exceptions are
 * a call that must be recorded, and a call whose request may be rebuilt.
 */
export async function receiveCall(call: AdmittedCall, held: HeldBody, parts: ReceivingParts): Promise<ReceivedCall> {
  const { request, response, scope, mode, gone } = call;
  const { bodies, connections, clock } = parts;
  assertDeclared(request, bodyBytes);
  continueBody(request, response);
  const declaredBytes = Number(request.headers["content-length"] ?? 0);
  const isStrict = await isStoreRequired(call, declaredBytes, parts);
  const isEarly = !isStrict && mode === "record";
  const upload = isEarly ? beginUpload(call, declaredBytes, connections) : null;
  held.share = bodies.share(scope.tokenId, bodyWeight);
  const body = await bodyOf(request, upload, held.share).catch((error: unknown) => {
    gone.abort();
    throw error;
  });
  const beganMs = monotonicMs();
  const startedMs = clock.nowMs();
  await assertIdsOfToken(call, body, parts.lookup);
  const sentMs = monotonicMs();
  const early = upload?.answer ?? (isEarly ? sendBody(connections, call, body) : null);
  return { ...call, body, isStrict, early, startedMs, beganMs, sentMs };
}

/** @throws {ThroughlineError} STORE_UNREACHABLE when neither the store nor the spool can take the call */
async function isStoreRequired(
  { api, mode }: AdmittedCall,
  declaredBytes: number,
  { keeper, isRefusing }: ReceivingParts,
): Promise<boolean> {
  if (api === null || mode === "stateful") return isRefusing;
  // Without room in the spool, a call is passed on only if the store accepts it.
  const isStrict = isRefusing || !(await keeper.hasRoom(declaredBytes || bodyBytes));
  if (isStrict) assertNotBehind(keeper);
  return isStrict;
}

/** A body under the server's key is checked before it is sent, so it is never streamed. */
function beginUpload(
  { upstream, method, target, headers, gone }: AdmittedCall,
  bodyBytes: number,
  connections: UpstreamConnections,
): BegunRequest | null {
  if (upstream.credentials === "server" || bodyBytes < leastUploaded) return null;
  const upload = connections.begin(upstream, { method, target, headers, bodyBytes }, gone.signal);
  // The relay awaits the promise. Without this handler, an earlier failure would be an unhandled rejection.
  upload.answer.catch(() => {});
  return upload;
}

async function assertIdsOfToken(call: AdmittedCall, body: Buffer, lookup: SessionLookup): Promise<void> {
  const { upstream, request, api, mode, scope } = call;
  if (upstream.credentials !== "server") return;
  await assertOwnIds({ upstream, body, isPlain: encodingOf(request) === null, api, mode, scope }, lookup);
}

/** Sends the client's request with its own body. */
export function sendBody(
  connections: UpstreamConnections,
  { upstream, method, target, headers, gone }: AdmittedCall,
  body: Buffer,
): Promise<IncomingMessage> {
  const answered = connections.send(upstream, { method, target, headers, body }, gone.signal);
  // The relay awaits the promise. Without this handler, an earlier failure would be an unhandled rejection.
  answered.catch(() => {});
  return answered;
}

/** Sends a body that the gateway built. @param isRepeat whether the provider already received the client's request */
export function sendMade(
  connections: UpstreamConnections,
  call: AdmittedCall,
  body: Buffer,
  isRepeat: boolean,
): Promise<IncomingMessage> {
  return sendBody(connections, { ...call, headers: headersOfMade(call.headers, isRepeat) }, body);
}

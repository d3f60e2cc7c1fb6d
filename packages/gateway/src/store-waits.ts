import { type Clock, hasErrorCode, type SessionState, type SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { WireLog } from "./wire/index.ts";
import type { TurnRules } from "@throughline/session/internal";
import { within } from "./within.ts";
import { isStoreAway } from "./call-waits.ts";
import type { CallKeeper } from "./keep-calls.ts";
import type { TurnRequest } from "./question-place.ts";
import type { Recorder } from "./recorder.ts";
import type { RunningCall } from "./running-calls.ts";
import type { SessionLogs } from "./session-logs.ts";
import type { GatewayScope } from "./session-lookup.ts";
import type { GatewayTurn, Turns } from "./turns.ts";

/** Limits how long a finished answer waits for the name of its session, because the client is waiting. */
const mostNameWaitMs = 50;
/**
 * Limits how long a call waits for the store before the gateway refuses it. Applies to calls that must not pass
 * unrecorded.
 */
const mostStoreWaitMs = 5000;

/** @throws {ThroughlineError} STORE_UNREACHABLE when the question cannot be stored in time */
export async function assertStored(
  keeper: CallKeeper,
  recorder: Recorder,
  call: RunningCall,
  clock: Clock,
): Promise<void> {
  let cause: unknown;
  try {
    const storing = keeper.whileBusy(() => recorder.storeQuestion(call), mostStoreWaitMs);
    if ((await within(clock, storing, mostStoreWaitMs)) === true) return;
  } catch (error) {
    cause = error;
  }
  recorder.release(call);
  const message = "The call cannot be stored in time, so it is not passed on.";
  throw refused("STORE_UNREACHABLE", message, { retryAfterMs: 1000 }, cause);
}

/** @throws {ThroughlineError} STORE_UNREACHABLE when calls already wait for the store and the spool has no room */
export function assertNotBehind({ isBehind }: CallKeeper): void {
  if (!isBehind) return;
  const message = "Calls wait for the store in files, and there is no room for one more, so it is not passed on.";
  throw refused("STORE_UNREACHABLE", message, { retryAfterMs: 1000 });
}

interface DenialParts {
  readonly clock: Clock;
  readonly store: SessionStore;
  readonly recorder: Recorder;
  readonly turnRules: TurnRules;
}

/**
 * Reports why the provider must not be asked in this session. Null allows the call, also when the store does not answer
 * in time.
 */
export async function denialOf(
  call: RunningCall,
  { clock, store, recorder, turnRules }: DenialParts,
): Promise<unknown> {
  const { namespace, agentId } = call.request.scope;
  const load = async (): Promise<Pick<SessionState, "ref" | "entry">> => {
    const ref = { namespace, agentId, key: (await recorder.locate(call, true)) ?? call.choice.place.key };
    return (await store.load(ref)) ?? { ref, entry: { ...call.choice.place.entry, channel: "gateway", sessionId: "" } };
  };
  try {
    const state = await within(clock, load(), mostStoreWaitMs);
    if (state !== null) turnRules.assertMaySend(state);
    return null;
  } catch (error) {
    // The code that stores the call reports any other error, so it is ignored here.
    return hasErrorCode(error, "SEND_DENIED") ? error : null;
  }
}

/** Gives up after a short wait, because the client's answer is ready. Null leaves the header out. */
export async function nameOf(clock: Clock, recorder: Recorder, call: RunningCall): Promise<string | null> {
  if (call.choice.place.basis !== "unknown") return call.choice.place.key;
  try {
    return await within(clock, recorder.locate(call, false), mostNameWaitMs);
  } catch {
    // The code that stores the call reports the error, so it is ignored here.
    return null;
  }
}

/** Returns null when the store does not answer in time, because the call must go on without the log. */
export async function logOf(
  clock: Clock,
  logs: SessionLogs,
  { namespace, agentId }: GatewayScope,
  key: string | null | Promise<string | null>,
): Promise<WireLog | null> {
  try {
    const reading = Promise.resolve(key).then((known) =>
      known === null ? null : logs.read({ namespace, agentId, key: known }),
    );
    return (await within(clock, reading, mostStoreWaitMs))?.log ?? null;
  } catch {
    // The code that stores the call reports the error, so it is ignored here.
    return null;
  }
}

/** @throws {ThroughlineError} STORE_UNREACHABLE when the question cannot be stored in time, and what `begin` throws */
export async function beginTurn(
  turns: Turns,
  clock: Clock,
  request: TurnRequest,
  recordId: string,
): Promise<GatewayTurn> {
  const beginning = turns.begin(request, recordId);
  let begun: GatewayTurn | null = null;
  try {
    begun = await within(clock, beginning, mostStoreWaitMs);
  } catch (cause) {
    if (!isStoreAway(cause) || hasErrorCode(cause, "SESSION_BUSY")) throw cause;
    throw refused(
      "STORE_UNREACHABLE",
      "The question cannot be stored, so it is not asked.",
      { retryAfterMs: 1000 },
      cause,
    );
  }
  if (begun !== null) return begun;
  // The turn may still begin later. Then it is abandoned, because the client already got an error.
  beginning.then((late) => late.abandon()).catch(() => {});
  throw refused("STORE_UNREACHABLE", "The question cannot be stored in time, so it is not asked.", {
    retryAfterMs: 1000,
  });
}

import { type Clock, hasErrorCode } from "@throughline/core";
import { refused } from "@throughline/core/store";
import type { WireLog } from "@throughline/wire";
import { within } from "../within.ts";
import type { OpenCall } from "./recorder.ts";
import type { SessionLogs } from "./session-logs.ts";
import type { GatewayScope } from "./session-lookup.ts";

/** How long an answer that is there waits for the name of its session. */
const mostNameWaitMs = 50;
/** How long a call waits for the store before it is refused, where it is not passed on without one. */
export const mostStoreWaitMs = 5000;

/** @throws {ThroughlineError} STORE_UNREACHABLE where the request cannot be stored in time, FORBIDDEN */
export async function assertBegun(clock: Clock, { session, abandon }: OpenCall): Promise<void> {
  try {
    if ((await within(clock, session, mostStoreWaitMs)) !== null) return;
    abandon();
  } catch (cause) {
    if (hasErrorCode(cause, "FORBIDDEN")) throw cause;
    throw refused(
      "STORE_UNREACHABLE",
      "The call cannot be stored, so it is not passed on.",
      { retryAfterMs: 1000 },
      cause,
    );
  }
  throw refused("STORE_UNREACHABLE", "The call cannot be stored in time, so it is not passed on.", {
    retryAfterMs: 1000,
  });
}

/** The session of a call, where it is known by the time that the answer is there. */
export async function nameOf(clock: Clock, { name }: OpenCall): Promise<string | null> {
  try {
    return await within(clock, name, mostNameWaitMs);
  } catch {
    // Whoever stores the call reports it.
    return null;
  }
}

/** What the session of a call has; null where the store does not say it in time. */
export async function logOf(
  clock: Clock,
  logs: SessionLogs,
  { namespace, agentId }: GatewayScope,
  key: string | Promise<string> | null,
): Promise<WireLog | null> {
  if (key === null) return null;
  try {
    const reading = Promise.resolve(key).then((known) => logs.read({ namespace, agentId, key: known }));
    return (await within(clock, reading, mostStoreWaitMs))?.log ?? null;
  } catch {
    // Whoever stores the call reports it.
    return null;
  }
}

import { type Clock, type ErrorCode, hasErrorCode, type SessionRef } from "@throughline/core";
import { type ReadReply, unreadRequest } from "@throughline/wire/internal";
import type { ServerLog } from "../operations/request-log.ts";
import { readRequest, replyOf } from "./call-facts.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { OpenCall, Recorder } from "./recorder.ts";
import { sessionHeaders } from "./session-ids.ts";
import { Spool } from "./spool.ts";
import type { SpooledCall } from "./spool-file.ts";
import { within } from "../within.ts";

/** A call that has ended, as it is stored and as it is spooled. */
interface CallToKeep extends Omit<SpooledCall, "session"> {
  /** Null: what came before it waits already, so nothing of it was stored when it began. */
  readonly open: OpenCall | null;
  readonly read: ReadReply | null;
}

/** Stores calls, or keeps them elsewhere while the store is away. */
export interface CallKeeper {
  /** Whether calls wait for the store. */
  readonly isWaiting: boolean;
  /** Whether a call was lost within the last minute: neither the store nor the spool took it. Or the spool has no room. */
  readonly isLosing: boolean;
  /** Whether a call that ends now waits as well: the store is away. Behind another's turn calls of that session wait only. */
  readonly isBehind: boolean;
  /** Whether the spool can take a call with a request of this size. True without a spool. */
  hasRoom(requestBytes: number): Promise<boolean>;
  /** Resolves with whether the call is kept: stored, or in the spool. */
  keep(call: CallToKeep): Promise<boolean>;
  /** See `Spool.erase`. */
  erase(ref: SessionRef, isPurged: boolean): Promise<number>;
  close(): Promise<void>;
}

/** How long the store may take before a call is in the spool as well. */
const spoolAfterMs = 2000;
/** How long a call waits for a turn of somebody else's before it is in the spool, and without a spool. */
export const mostBusySpoolMs = 500;
export const mostBusyMs = 600_000;

/** How long a loss is reported. */
const losingMs = 60_000;

const awayCodes: readonly ErrorCode[] = [
  "STORE_UNREACHABLE",
  "STORE_LOCKED",
  "STORE_OVERLOADED",
  "STORE_READ_ONLY",
  "STORE_FULL",
  "STORE_IO",
  "STORE_CLOSED",
  "SESSION_BUSY",
];

/** Whether an error says that the store cannot be reached or written just now. */
export function isStoreAway(error: unknown): boolean {
  return awayCodes.some((code) => hasErrorCode(error, code));
}

function isBusy(error: unknown): boolean {
  return hasErrorCode(error, "SESSION_BUSY");
}

interface KeeperParts {
  readonly clock: Clock;
  readonly recorder: Recorder;
  readonly metrics: GatewayMetrics;
  readonly log: ServerLog;
  /** Null: what cannot be stored is counted. */
  readonly spool: { readonly folder: string; readonly mostBytes: number } | null;
}

export async function createCallKeeper({
  clock,
  recorder,
  metrics,
  log,
  spool: place,
}: KeeperParts): Promise<CallKeeper> {
  let lostAtMs = -Infinity;
  const lost = (reason: string, error: unknown): false => {
    lostAtMs = clock.nowMs();
    metrics.unrecorded(reason);
    log.failed("A call of the gateway could not be stored.", error);
    return false;
  };
  const spool =
    place === null
      ? null
      : await Spool.open({
          ...place,
          clock,
          isAway: isStoreAway,
          isBusy,
          record: (call) => recordSpooled(recorder, call),
          onRemoved: () => metrics.unrecorded("removed"),
          onFailed: (error, file) => {
            metrics.unrecorded("spool-failed");
            log.failed(`A call in the spool could not be stored; its file is ${JSON.stringify(file)}.`, error);
          },
          onLeft: (error, file) =>
            log.failed(`A call is stored, and its file in the spool stays: ${JSON.stringify(file)}.`, error),
        });
  if (spool !== null) metrics.spool(() => spool.bytes);

  const spooled = async (
    { open, read: _read, ...call }: CallToKeep,
    running: Promise<boolean> | null,
    hasMetBusy = false,
  ): Promise<boolean> => {
    try {
      const session = open?.place ?? null;
      await (spool as Spool).add({ ...call, session, headers: sessionHeaders(call.headers) }, running, hasMetBusy);
      return true;
    } catch (error) {
      // It may be stored all the same: then nothing is lost.
      const isStored = await running?.catch(() => false);
      return isStored === true || lost("spool", error);
    }
  };
  return {
    get isLosing() {
      return spool?.isFull === true || clock.nowMs() - lostAtMs < losingMs;
    },
    hasRoom: async (requestBytes) => spool === null || spool.hasRoom(requestBytes),
    get isWaiting() {
      return spool?.isWaiting === true;
    },
    get isBehind() {
      return spool?.isBehind === true;
    },
    async keep(call) {
      if (call.open === null) return spooled(call, null);
      const stored = call.open.end(call.call, call.read, call.rebuilt).then(() => true);
      stored.catch(() => {});
      try {
        if (await (spool === null ? stored : within(clock, stored, spoolAfterMs))) return true;
      } catch (error) {
        if (spool !== null && isStoreAway(error)) return spooled(call, null, isBusy(error));
        return lost(reasonOf(error), error);
      }
      return spooled(call, stored);
    },
    erase: async (ref, isPurged) => (await spool?.erase(ref, isPurged)) ?? 0,
    close: async () => spool?.close(),
  };
}

function reasonOf(error: unknown): string {
  if (hasErrorCode(error, "SESSION_NOT_FOUND")) return "removed";
  return hasErrorCode(error, "FORBIDDEN") ? "refused" : "store";
}

async function recordSpooled(
  recorder: Recorder,
  { scope, session, headers, mayWrite, call, body, reply, rebuilt }: SpooledCall,
): Promise<boolean> {
  if (session !== null) {
    const { namespace, agentId } = scope;
    const now = await recorder.logs.read({ namespace, agentId, key: session.key });
    // It was purged or reset: a file must not bring it back.
    if (now?.sessionId !== session.sessionId) return false;
  }
  const split = (await readRequest(call.api, body)) ?? unreadRequest(call.api, body);
  const { requestSha256, recordId } = call;
  const open = recorder.open({ scope, headers, split, requestSha256, mayWrite }, recordId, false);
  await open.end(call, reply === null ? null : replyOf(split, reply), rebuilt);
  return true;
}

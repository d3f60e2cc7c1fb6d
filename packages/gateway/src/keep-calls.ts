import { type Clock, type ErrorCode, hasErrorCode, type SessionRef } from "@throughline/core";
import { type ReadReply, unreadRequest } from "./wire/index.ts";
import type { GatewayLog } from "./gateway-log.ts";
import { readRequest, replyOf } from "./call-facts.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { OpenCall, Recorder } from "./recorder.ts";
import { sessionHeaders } from "./session-ids.ts";
import { Spool } from "./spool.ts";
import type { SpooledCall } from "./spool-file.ts";
import { within } from "./within.ts";

interface CallToKeep extends Omit<SpooledCall, "session"> {
  /** Is null when earlier calls already wait for the store, so this call was never opened there. */
  readonly open: OpenCall | null;
  readonly read: ReadReply | null;
}

export interface CallKeeper {
  readonly isWaiting: boolean;
  /**
   * Is true for a minute after neither the store nor the spool took a call. It is also true while the spool is full.
   */
  readonly isLosing: boolean;
  /**
   * Is true when a call that ends now has to wait, because the store is away. Calls that wait only for a busy session
   * do not count, since they delay that session alone.
   */
  readonly isBehind: boolean;
  /** Returns whether the spool can take a call with a request of this size. Without a spool the result is true. */
  hasRoom(requestBytes: number): Promise<boolean>;
  keep(call: CallToKeep): Promise<boolean>;
  erase(ref: SessionRef, isPurged: boolean): Promise<number>;
  close(): Promise<void>;
}

/** Limits how long a call exists in memory only: after this time it is also written to the spool. */
const spoolAfterMs = 2000;
/**
 * Sets how long a call waits for another owner's turn: with a spool, before it is spooled; without one, before it is
 * lost.
 */
export const mostBusySpoolMs = 500;
export const mostBusyMs = 600_000;

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

/** Returns whether storing may succeed later, because the store is away or the session is busy. */
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
  readonly log: GatewayLog;
  /** Is null when there is no spool; then a call that cannot be stored is only counted. */
  readonly spool: { readonly folder: string; readonly mostBytes: number } | null;
}

export async function createCallKeeper(parts: KeeperParts): Promise<CallKeeper> {
  return new SpoolingKeeper(parts, await openSpool(parts));
}

async function openSpool({ clock, recorder, metrics, log, spool: place }: KeeperParts): Promise<Spool | null> {
  if (place === null) return null;
  const spool = await Spool.open({
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
  metrics.spool(() => spool.bytes);
  return spool;
}

/** Keeps a call in the store, else in the spool, and remembers when neither took one. */
class SpoolingKeeper implements CallKeeper {
  readonly #parts: Pick<KeeperParts, "clock" | "metrics" | "log">;
  readonly #spool: Spool | null;
  #lostAtMs = -Infinity;

  constructor(parts: Pick<KeeperParts, "clock" | "metrics" | "log">, spool: Spool | null) {
    this.#parts = parts;
    this.#spool = spool;
  }

  get isLosing(): boolean {
    return this.#spool?.isFull === true || this.#parts.clock.nowMs() - this.#lostAtMs < losingMs;
  }

  get isWaiting(): boolean {
    return this.#spool?.isWaiting === true;
  }

  get isBehind(): boolean {
    return this.#spool?.isBehind === true;
  }

  async hasRoom(requestBytes: number): Promise<boolean> {
    return this.#spool === null || this.#spool.hasRoom(requestBytes);
  }

  async keep(call: CallToKeep): Promise<boolean> {
    if (call.open === null) return this.#addToSpool(call, null);
    const stored = call.open.end(call.call, call.read, call.rebuilt).then(() => true);
    stored.catch(() => {});
    try {
      if (await (this.#spool === null ? stored : within(this.#parts.clock, stored, spoolAfterMs))) return true;
    } catch (error) {
      if (this.#spool !== null && isStoreAway(error)) return this.#addToSpool(call, null, isBusy(error));
      return this.#lose(reasonOf(error), error);
    }
    return this.#addToSpool(call, stored);
  }

  async erase(ref: SessionRef, isPurged: boolean): Promise<number> {
    return (await this.#spool?.erase(ref, isPurged)) ?? 0;
  }

  async close(): Promise<void> {
    await this.#spool?.close();
  }

  async #addToSpool(
    { open, read: _read, ...call }: CallToKeep,
    running: Promise<boolean> | null,
    hasMetBusy = false,
  ): Promise<boolean> {
    try {
      const session = open?.place ?? null;
      await (this.#spool as Spool).add(
        { ...call, session, headers: sessionHeaders(call.headers) },
        running,
        hasMetBusy,
      );
      return true;
    } catch (error) {
      // The running attempt may still store the call. Then nothing is lost, although the spool refused it.
      const isStored = await running?.catch(() => false);
      return isStored === true || this.#lose("spool", error);
    }
  }

  #lose(reason: string, error: unknown): false {
    const { clock, metrics, log } = this.#parts;
    this.#lostAtMs = clock.nowMs();
    metrics.unrecorded(reason);
    log.failed("A call of the gateway could not be stored.", error);
    return false;
  }
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
    // The session was purged or reset while the call waited. The spool file must not restore its content.
    if (now?.sessionId !== session.sessionId) return false;
  }
  const split = (await readRequest(call.api, body)) ?? unreadRequest(call.api, body);
  const { requestSha256, recordId } = call;
  const open = recorder.open({ scope, headers, split, requestSha256, mayWrite }, recordId, false);
  await open.end(call, reply === null ? null : replyOf(split, reply), rebuilt);
  return true;
}

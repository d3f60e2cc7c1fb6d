import { type Clock, type ErrorCode, hasErrorCode, type SessionRef } from "@throughline/core";
import { readRequest, replyOf } from "./call-facts.ts";
import type { GatewayMetrics, UnstoredCalls } from "./gateway-metrics.ts";
import type { GatewayLog } from "./gateway-log.ts";
import type { JournalPlace } from "./gateway-options.ts";
import { Journal } from "./journal.ts";
import type { JournaledCall } from "./journal-entry.ts";
import type { OpenCall, Recorder } from "./recorder.ts";
import { sessionHeaders } from "./session-ids.ts";
import { type ReadReply, unreadRequest } from "./wire/index.ts";

interface CallToKeep extends Omit<JournaledCall, "session"> {
  /** Is null when earlier calls already wait for the store, so this call was never opened there. */
  readonly open: OpenCall | null;
  readonly read: ReadReply | null;
}

export interface KeptCall {
  /** Is false when neither the journal nor the store has the call. Then its client may not hear the end of the answer. */
  readonly isKept: boolean;
  /** Settles when the first attempt to store the call has ended. */
  readonly stored: Promise<unknown>;
}

export interface CallKeeper {
  /** Counts the calls that the journal has and the store does not. */
  readonly unstored: UnstoredCalls;
  readonly hasJournal: boolean;
  readonly isWaiting: boolean;
  /**
   * Is true for a minute after neither the store nor the journal took a call. It is also true while the journal is full.
   */
  readonly isLosing: boolean;
  /**
   * Is true when a call that ends now has to wait, because the store is away. Calls that wait only for a busy session
   * do not count, since they delay that session alone.
   */
  readonly isBehind: boolean;
  /** Returns whether the journal can take a call with a request of this size. Without a journal the result is true. */
  hasRoom(requestBytes: number): Promise<boolean>;
  /** Resolves when the call is in the journal, or without one in the store. */
  keep(call: CallToKeep): Promise<KeptCall>;
  erase(ref: SessionRef, isPurged: boolean): Promise<number>;
  /** Removes the files of calls that could not be stored and that began before a time. */
  prune(beforeMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Limits how long a call waits for another owner's turn before it waits in the journal. */
export const mostBusyMs = 500;
/** Limits how long a call that no journal holds waits for another owner's turn before it is lost. */
export const mostBusyUnkeptMs = 600_000;

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

interface KeeperParts {
  readonly clock: Clock;
  readonly recorder: Recorder;
  readonly metrics: GatewayMetrics;
  readonly log: GatewayLog;
  /** Is null when there is no journal; then an answer may end before its call is stored. */
  readonly journal: JournalPlace | null;
}

export async function createCallKeeper(parts: KeeperParts): Promise<CallKeeper> {
  const { clock, recorder, metrics, log, journal: place } = parts;
  const keeper = new JournalKeeper(parts);
  if (place === null) return keeper;
  const journal = await Journal.open({
    ...place,
    clock,
    isAway: isStoreAway,
    isBusy: (error) => hasErrorCode(error, "SESSION_BUSY"),
    record: (call) => recordJournaled(recorder, call),
    onRemoved: () => metrics.unrecorded("removed"),
    onDropped: (error) => void keeper.lose(reasonOf(error), error),
    onFailed: (error, file) => {
      metrics.unrecorded("spool-failed");
      log.failed(`A call in the journal could not be stored; its file is ${JSON.stringify(file)}.`, error);
    },
    onLeft: (error, file) =>
      log.failed(`A call is stored, and its file in the journal stays: ${JSON.stringify(file)}.`, error),
  });
  metrics.journal(journal);
  keeper.journal = journal;
  return keeper;
}

/** Keeps a call in the journal until the store has it, and remembers when neither took one. */
class JournalKeeper implements CallKeeper {
  readonly #parts: KeeperParts;
  journal: Journal | null = null;
  #lostAtMs = -Infinity;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  get unstored(): UnstoredCalls {
    const { calls = 0, oldestMs = 0 } = this.journal ?? {};
    return { calls, oldestMs };
  }

  get hasJournal(): boolean {
    return this.journal !== null;
  }

  get isLosing(): boolean {
    return this.journal?.isFull === true || this.#parts.clock.nowMs() - this.#lostAtMs < losingMs;
  }

  get isWaiting(): boolean {
    return this.journal?.isWaiting === true;
  }

  get isBehind(): boolean {
    return this.#isKeeping && this.journal?.isBehind === true;
  }

  async hasRoom(requestBytes: number): Promise<boolean> {
    return this.journal === null || !this.#isKeeping || this.journal.hasRoom(requestBytes);
  }

  async keep({ open, read, ...call }: CallToKeep): Promise<KeptCall> {
    const store = open === null ? null : (): Promise<void> => open.end(call.call, read, call.rebuilt);
    if (this.journal === null) return this.#store(store, null);
    try {
      const entry = { ...call, session: open?.place ?? null, headers: sessionHeaders(call.headers) };
      const { stored } = await this.journal.append(entry, store);
      return { isKept: true, stored };
    } catch (error) {
      return this.#store(store, error);
    }
  }

  async erase(ref: SessionRef, isPurged: boolean): Promise<number> {
    return (await this.journal?.erase(ref, isPurged)) ?? 0;
  }

  async prune(beforeMs: number): Promise<void> {
    await this.journal?.prune(beforeMs);
  }

  async close(): Promise<void> {
    await this.journal?.close();
  }

  /** Counts a call that neither has. The answer still ends where calls pass without a record. */
  lose(reason: string, error: unknown): boolean {
    const { clock, metrics, log, journal } = this.#parts;
    this.#lostAtMs = clock.nowMs();
    metrics.unrecorded(reason);
    log.failed("A call of the gateway could not be stored.", error);
    return journal?.keepsFailed === false;
  }

  get #isKeeping(): boolean {
    return this.#parts.journal?.keepsFailed === true;
  }

  /** Stores a call that no journal has. @param refusal why the journal did not take it */
  async #store(store: (() => Promise<void>) | null, refusal: unknown): Promise<KeptCall> {
    const stored = Promise.resolve();
    try {
      if (store === null) return { isKept: this.lose("spool", refusal), stored };
      await store();
      return { isKept: true, stored };
    } catch (error) {
      return { isKept: this.lose(refusal === null ? reasonOf(error) : "spool", refusal ?? error), stored };
    }
  }
}

function reasonOf(error: unknown): string {
  if (hasErrorCode(error, "SESSION_NOT_FOUND")) return "removed";
  return hasErrorCode(error, "FORBIDDEN") ? "refused" : "store";
}

async function recordJournaled(
  recorder: Recorder,
  { scope, session, headers, mayWrite, call, body, reply, rebuilt }: JournaledCall,
): Promise<boolean> {
  if (session !== null) {
    const { namespace, agentId } = scope;
    const now = await recorder.logs.read({ namespace, agentId, key: session.key });
    // The session was purged or reset while the call waited. The journal must not restore its content.
    if (now?.sessionId !== session.sessionId) return false;
  }
  const split = (await readRequest(call.api, body)) ?? unreadRequest(call.api, body);
  const { requestSha256, recordId } = call;
  const open = recorder.open({ scope, headers, split, requestSha256, mayWrite }, recordId, false);
  await open.end(call, reply === null ? null : replyOf(split, reply), rebuilt);
  return true;
}

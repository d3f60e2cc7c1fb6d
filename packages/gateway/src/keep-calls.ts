import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, hasErrorCode, type SessionRef } from "@throughline/core";
import { readRequest, replyOf } from "./call-facts.ts";
import { type CallWait, keyReason, waitOf } from "./call-waits.ts";
import { newKey } from "./choose-session.ts";
import type { GatewayLog } from "./gateway-log.ts";
import type { GatewayMetrics, UnstoredCalls } from "./gateway-metrics.ts";
import type { JournalPlace } from "./gateway-options.ts";
import { Journal } from "./journal.ts";
import type { JournaledCall } from "./journal-entry.ts";
import type { CallSession, Recorder } from "./recorder.ts";
import type { RunningCall } from "./running-calls.ts";
import { sessionHeaders } from "./session-ids.ts";
import { within } from "./within.ts";
import { type ReadReply, unreadRequest } from "./wire/index.ts";

interface CallToKeep extends Omit<JournaledCall, "session" | "key"> {
  readonly running: RunningCall;
  readonly read: ReadReply | null;
  /** Whether its client may hear the end only when the store has the call. */
  readonly isStrict: boolean;
}

export interface KeptCall {
  /** Is false when neither the journal nor the store has the call. Then its client may not hear the end of the answer. */
  readonly isKept: boolean;
  /** Settles when the first attempt to store the call has ended. */
  readonly stored: Promise<unknown>;
}

interface KeeperParts {
  readonly clock: Clock;
  readonly recorder: Recorder;
  readonly metrics: GatewayMetrics;
  readonly log: GatewayLog;
  /** Is null when there is no journal; then an answer may end before its call is stored. */
  readonly place: JournalPlace | null;
}

interface Entry {
  readonly sinceMs: number;
  session: CallSession | null;
  /** `storing`: the first attempt runs. `failed`: the store is there and did not take the call. */
  state: CallWait | "storing" | "failed";
  tries: number;
  /** States when a call that waits for its key is tried again, since each attempt reads a whole file. */
  retryAtMs: number;
}

const retryMs = 1000;
const keyRetryMs = 10_000;
/**
 * A first attempt that takes longer counts as waiting for the store, so that later calls wait in files and not in
 * memory.
 */
const lateMs = 2000;
/** Limits how long a close waits for the attempts that run. */
const mostCloseMs = 6000;
/** Limits the attempts for a call that fails while the store is reachable. It would be retried forever otherwise. */
const mostTries = 3;
/** Limits how long a call that no journal holds waits for another owner's turn before it is lost. */
const mostBusyMs = 600_000;
const busyPollMs = 250;
const losingMs = 60_000;

/** Keeps each call in the journal until the recorder has stored it. Calls that have to wait are stored in their order. */
export class CallKeeper {
  readonly #parts: KeeperParts;
  readonly #journal: Journal | null;
  readonly #keepsFailed: boolean;
  /** Holds the calls of the journal by the names of their files. */
  readonly #entries = new Map<string, Entry>();
  /** Holds first attempts. Each promise resolves when the attempt has ended, and its file is removed or waits. */
  readonly #attempts = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  readonly #closed: Promise<void>;
  #draining: Promise<void> | null = null;
  #lostAtMs = -Infinity;
  /** Holds the reasons that the log has. */
  readonly #logged = new Set<string>();

  private constructor(parts: KeeperParts, journal: Journal | null) {
    this.#parts = parts;
    this.#journal = journal;
    this.#keepsFailed = parts.place?.keepsFailed === true;
    const { signal } = this.#closing;
    this.#closed = new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (const name of journal?.names ?? []) this.#add(name, null, "away");
  }

  /** Opens the journal and starts to store the calls that an earlier process left there. @throws Error of the system */
  static async open(parts: KeeperParts): Promise<CallKeeper> {
    const journal = parts.place === null ? null : await Journal.open(parts.place);
    const keeper = new CallKeeper(parts, journal);
    if (journal !== null) parts.metrics.journal(keeper);
    keeper.#drain();
    return keeper;
  }

  get bytes(): number {
    return this.#journal?.bytes ?? 0;
  }

  /** Counts the calls that the journal has and the store does not. */
  get calls(): number {
    return this.#entries.size;
  }

  /** Returns how long the oldest call is in the journal, in milliseconds; 0 without one. */
  get oldestMs(): number {
    const sinceMs = Math.min(...this.#entries.values().map((entry) => entry.sinceMs));
    return sinceMs === Infinity ? 0 : Math.max(0, this.#parts.clock.nowMs() - sinceMs);
  }

  get unstored(): UnstoredCalls {
    return { calls: this.calls, oldestMs: this.oldestMs };
  }

  /** Is true when a call waits for the store or for another owner's turn. */
  get isWaiting(): boolean {
    return this.#entries.values().some((entry) => entry.state !== "storing" || this.#isLate(entry));
  }

  /**
   * Is true for a minute after neither the store nor the journal took a call. It is also true while the journal is full.
   */
  get isLosing(): boolean {
    return this.#journal?.isFull === true || this.#parts.clock.nowMs() - this.#lostAtMs < losingMs;
  }

  /**
   * Is true when a call that ends now has to wait, because the store is away. Calls that wait only for a busy session
   * do not count, since they delay that session alone.
   */
  get isBehind(): boolean {
    return this.#keepsFailed && this.#entries.values().some((entry) => entry.state === "away" || this.#isLate(entry));
  }

  /** Returns whether the journal can take a call with a request of this size. Without a journal the result is true. */
  async hasRoom(requestBytes: number): Promise<boolean> {
    return this.#journal === null || !this.#keepsFailed || this.#journal.hasRoom(requestBytes);
  }

  /** Resolves when the call is in the journal, or without one in the store. */
  async keep({ running, read, isStrict, ...call }: CallToKeep): Promise<KeptCall> {
    const { recorder } = this.#parts;
    const store = (): Promise<boolean> => recorder.store(running, { ...call, read });
    if (this.#journal === null) {
      const storing = this.#storeUnkept(store, null);
      return isStrict ? storing : { isKept: true, stored: storing };
    }
    const session = sessionOf(running);
    // A call waits behind those that wait, so that records keep their order.
    const state = this.isBehind ? "away" : this.#isBusy(session) ? "busy" : "storing";
    const { key } = running.choice.place;
    const entry = { ...call, key, session, headers: sessionHeaders(call.headers) };
    let name: string;
    try {
      name = await this.#journal.append(entry, state !== "storing");
    } catch (error) {
      if (state === "storing") return this.#storeUnkept(store, error);
      recorder.release(running);
      return { isKept: this.#lose("spool", error), stored: Promise.resolve() };
    }
    this.#add(name, session, state);
    if (state !== "storing") {
      recorder.release(running);
      this.#drain();
      return { isKept: true, stored: Promise.resolve() };
    }
    const storing = afterWrites().then(this.#keepsFailed ? store : () => this.whileBusy(store));
    const stored = this.#try(name, storing, running).finally(() => this.#attempts.delete(name));
    this.#attempts.set(name, stored);
    return { isKept: true, stored };
  }

  /** Repeats the storing of a call that waits in no file while another owner has a turn in its session. */
  async whileBusy(store: () => Promise<boolean>, mostMs: number = mostBusyMs): Promise<boolean> {
    const { clock } = this.#parts;
    const { signal } = this.#closing;
    const beganMs = clock.nowMs();
    for (;;)
      try {
        return await store();
      } catch (error) {
        const isOver = signal.aborted || clock.nowMs() - beganMs >= mostMs;
        if (isOver || !hasErrorCode(error, "SESSION_BUSY")) throw error;
        await clock.sleep(busyPollMs, signal).catch(() => undefined);
      }
  }

  /** @returns how many calls in the journal may still hold text of the session */
  async erase(ref: SessionRef, isPurged: boolean): Promise<number> {
    const left = await this.#journal?.erase(ref, isPurged);
    for (const name of this.#entries.keys()) if (this.#journal?.has(name) !== true) this.#entries.delete(name);
    return left ?? 0;
  }

  /** Removes the files of calls that could not be stored and that began before a time. */
  async prune(beforeMs: number): Promise<void> {
    await this.#journal?.prune(beforeMs);
  }

  /**
   * Waits for the attempts that run. Calls that are not stored yet stay in the folder for the next process.
   *
   * @param ended resolves when no more calls are kept
   */
  async close(ended: Promise<void>): Promise<void> {
    const { clock, recorder } = this.#parts;
    this.#closing.abort();
    await ended;
    // Without a spool a call that fails is dropped and has to be counted, so its attempt is awaited.
    await (this.#keepsFailed ? within(clock, this.#attempted(), mostCloseMs) : this.#attempted());
    await this.#draining;
    await (this.isWaiting ? within(clock, recorder.settled(), mostCloseMs) : recorder.settled());
  }

  async #attempted(): Promise<void> {
    while (this.#attempts.size > 0) await Promise.all(this.#attempts.values());
  }

  #add(name: string, session: CallSession | null, state: Entry["state"]): void {
    this.#entries.set(name, { sinceMs: this.#parts.clock.nowMs(), session, state, tries: 0, retryAtMs: 0 });
  }

  /**
   * Follows an attempt to store a call. Its file is removed, or waits.
   *
   * @param running the call, in its first attempt
   */
  async #try(name: string, storing: Promise<boolean>, running: RunningCall | null): Promise<void> {
    const { metrics } = this.#parts;
    try {
      if (!(await storing)) metrics.unrecorded("removed");
    } catch (error) {
      const entry = this.#entries.get(name);
      // An erasure removed the file meanwhile.
      if (entry === undefined) return;
      entry.state = waitOf(error) ?? "failed";
      entry.retryAtMs = entry.state === "keyless" ? this.#parts.clock.nowMs() + keyRetryMs : 0;
      this.#logOnce(error);
      if (entry.state === "failed" && ++entry.tries >= mostTries) return this.#setAside(name, error);
      if (running === null) return;
      if (!this.#keepsFailed) {
        await this.#remove(name);
        return void this.#lose("store", error);
      }
      const session = entry.session === null ? sessionOf(running) : null;
      entry.session ??= session;
      await this.#journal
        ?.retain(name, session)
        .catch((failure: unknown) =>
          this.#parts.log.failed(`A call waits in a file that could not be flushed: ${JSON.stringify(name)}.`, failure),
        );
      return this.#drain();
    }
    await this.#remove(name);
  }

  #drain(): void {
    this.#draining ??= this.#storeAll().finally(() => (this.#draining = null));
  }

  async #storeAll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#entries.values().some(({ state }) => state !== "storing")) {
      const isStored = await this.#storeEach();
      if (!isStored) await this.#parts.clock.sleep(retryMs, signal).catch(() => undefined);
    }
    if (!this.isWaiting) this.#logged.clear();
  }

  /** Keeps the order of the calls, and stops when the store is away. False when a file remains. */
  async #storeEach(): Promise<boolean> {
    const { signal } = this.#closing;
    let isStored = true;
    for (const name of [...this.#entries.keys()].toSorted()) {
      // A first attempt may take long, so a close ends the wait.
      await Promise.race([this.#attempts.get(name) ?? null, this.#closed]);
      if (signal.aborted) return false;
      const entry = this.#entries.get(name);
      if (entry === undefined) continue;
      // Calls of one session must be stored in order, so a busy session blocks its later calls.
      if (this.#isBusy(entry.session, name)) entry.state = "busy";
      else if (entry.retryAtMs <= this.#parts.clock.nowMs())
        await this.#try(name, this.#storeWaited(name, entry), null);
      if (!this.#entries.has(name)) continue;
      isStored = false;
      if (entry.state === "away") return false;
    }
    return isStored;
  }

  async #storeWaited(name: string, entry: Entry): Promise<boolean> {
    if (this.#journal === null) return false;
    const waited = await this.#journal.read(name);
    const { scope, key = newKey(scope), session, headers, mayWrite, call, body, reply, rebuilt } = waited;
    entry.session = session;
    const split = (await readRequest(call.api, body)) ?? unreadRequest(call.api, body);
    const read = reply === null ? null : replyOf(split, reply);
    const { requestSha256, recordId } = call;
    const request = { scope, headers, split, requestSha256, mayWrite };
    return this.#parts.recorder.storeWaited(request, { recordId, key, session }, { call, read, rebuilt });
  }

  async #remove(name: string): Promise<void> {
    try {
      await this.#journal?.remove(name);
    } catch (error) {
      // The next process detects that the call is already stored, so a leftover file does no harm.
      this.#parts.log.failed(`A call is stored, and its file in the journal stays: ${JSON.stringify(name)}.`, error);
    }
    this.#entries.delete(name);
  }

  async #setAside(name: string, error: unknown): Promise<void> {
    const { metrics, log } = this.#parts;
    const aside = await this.#journal?.setAside(name);
    this.#entries.delete(name);
    metrics.unrecorded("spool-failed");
    log.failed(`A call in the journal could not be stored; its file is ${JSON.stringify(aside)}.`, error);
  }

  #isLate({ state, sinceMs }: Entry): boolean {
    return state === "storing" && this.#parts.clock.nowMs() - sinceMs > lateMs;
  }

  /** Returns whether an earlier call of the session waits for a turn or a key. @param before the name of a file */
  #isBusy(session: CallSession | null, before: string | null = null): boolean {
    if (session === null) return false;
    return this.#entries
      .entries()
      .some(
        ([name, entry]) =>
          (entry.state === "busy" || entry.state === "keyless") &&
          entry.session?.key === session.key &&
          (before === null || name < before),
      );
  }

  /** Logs why calls wait for a key, once until no call waits any more. */
  #logOnce(error: unknown): void {
    const reason = keyReason(error);
    if (reason === null || this.#logged.has(reason)) return;
    this.#logged.add(reason);
    this.#parts.log.failed("Calls wait in files of the gateway, because a key cannot be used.", error);
  }

  /** Counts a call that neither has. The answer still ends where calls pass without a record. */
  #lose(reason: string, error: unknown): boolean {
    const { clock, metrics, log } = this.#parts;
    this.#lostAtMs = clock.nowMs();
    metrics.unrecorded(reason);
    log.failed("A call of the gateway could not be stored.", error);
    return this.#journal !== null && !this.#keepsFailed;
  }

  /** Stores a call that no journal has. @param refusal why the journal did not take it */
  async #storeUnkept(store: () => Promise<boolean>, refusal: unknown): Promise<KeptCall> {
    const stored = Promise.resolve();
    try {
      const isKept = await this.whileBusy(store);
      if (!isKept) this.#parts.metrics.unrecorded("removed");
      return { isKept, stored };
    } catch (error) {
      return { isKept: this.#lose(refusal === null ? "store" : "spool", refusal ?? error), stored };
    }
  }
}

/** Waits until the end of the answer is written and other streams have had a turn, because storing takes a while. */
async function afterWrites(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

function sessionOf({ choice: { place } }: RunningCall): CallSession | null {
  const { key, sessionId, basis } = place;
  return basis === "known" && sessionId !== null ? { key, sessionId } : null;
}

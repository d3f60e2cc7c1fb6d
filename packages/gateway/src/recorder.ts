import { setImmediate as nextTurn } from "node:timers/promises";
import { hasErrorCode, type RecordDraft, type SessionRef, type SessionStore } from "@throughline/core";
import type { Clock, AssistantMessage } from "@throughline/core";
import { KeyedQueues, refused } from "@throughline/core/internal";
import { planCall, planReply } from "./wire/index.ts";
import type { CallPlan, ChainMatch, ReadReply, ReplyPlan } from "./wire/index.ts";
import { type CallOrder, CallsInStoring, orderOf } from "./calls-in-storing.ts";
import { callRecords, type EndedCall, exchangeIdOf, type RebuiltAttempt, rebuiltParts } from "./call-record.ts";
import {
  begunSession,
  choiceName,
  type ChosenSession,
  continuedSession,
  type IsAsked,
  type SessionReads,
  type SessionRequest,
} from "./choose-session.ts";
import { firstBatch, storable } from "./draft-sizes.ts";
import { letOthersRun } from "./large-requests.ts";
import { saveNew } from "./save-once.ts";
import { isOvertaken, type KnownSession, SessionLogs } from "./session-logs.ts";
import { within } from "./within.ts";
import { createSessionLookup, type GatewayScope, type SessionLookup } from "./session-lookup.ts";

export interface OpenCall {
  /** Resolves with the session key when the request is stored. Rejects when it cannot be stored. */
  readonly session: Promise<string>;
  /** Resolves earlier than `session`, because an answer's headers need the key before the request is stored. */
  readonly name: Promise<string>;
  /** Is null until the session is chosen. */
  readonly place: CallSession | null;
  readonly order: CallOrder;
  /** Stores the result of the call. @param rebuilt the second attempt, if the gateway made one */
  end(call: EndedCall, reply: ReadReply | null, rebuilt?: RebuiltAttempt | null): Promise<void>;
  /** Releases the call without a result, because the provider is not asked. */
  readonly abandon: () => void;
}

/** Holds the id beside the key, because a later session may reuse the key. */
export interface CallSession {
  readonly key: string;
  readonly sessionId: string;
}

export interface RecorderOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Limits how long another owner's turn may delay storing a call, in milliseconds. */
  readonly busyWaitMs: number;
}

/** Limits how often an append is repeated after another writer changed the session. */
const mostTries = 8;
/**
 * Limits how long the choice of a session waits for calls that are being stored, so that a slow store does not block
 * it.
 */
const mostSettleMs = 1000;

/** Stores calls in their sessions. Calls of one session are stored one after the other. */
export class Recorder {
  /** Also waits for replies that are still being stored, because a client may continue them at once. */
  readonly lookup: SessionLookup;
  readonly logs: SessionLogs;
  readonly #store: SessionStore;
  readonly #clock: Clock;
  #busyWaitMs: number;
  readonly #notes: SessionLookup;
  readonly #storing: CallsInStoring;
  readonly #queues = new KeyedQueues();
  /** Maps a session and body hash to its running calls, so that a repeated body counts as the next attempt. */
  readonly #running = new Map<string, { readonly callId: string; attempt: number; count: number }>();
  #opened = 0;

  constructor({ store, clock, busyWaitMs }: RecorderOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#busyWaitMs = busyWaitMs;
    this.logs = new SessionLogs(store);
    this.#storing = new CallsInStoring(clock, store.capabilities.writers === "many-hosts");
    this.#notes = createSessionLookup(store);
    this.lookup = this.#storing.waitedFor(this.#notes);
  }

  /** Registers a call whose answer the client has received, because the client's next request may continue it. */
  addStoring(scope: GatewayScope, open: OpenCall | null, stored: Promise<unknown>): void {
    const { order = null, name: placed = stored } = open ?? {};
    this.#storing.add(scope, { stored, placed, order, key: () => open?.place?.key ?? null });
  }

  forget(ref: SessionRef): void {
    this.logs.forget(ref);
  }

  /** Shortens the wait for other owners' turns from now on, because the server is closing. */
  limitBusyWait(ms: number): void {
    this.#busyWaitMs = Math.min(this.#busyWaitMs, ms);
  }

  settled(): Promise<void> {
    return this.#queues.settled();
  }

  /**
   * Starts to store a call: chooses its session and appends the new messages.
   *
   * @param mayRecall whether a remembered session may be used without a store read, and other nodes may be waited for.
   *   It is false for a call that waited, because its session may have been removed meanwhile.
   */
  open(request: SessionRequest, recordId: string, mayRecall = true): OpenCall {
    let place: CallSession | null = null;
    const name = Promise.withResolvers<string>();
    const found = (session: CallSession): void => {
      place = session;
      name.resolve(session.key);
    };
    const order = orderOf(this.#opened++, request.split);
    const begun = this.#begin(request, { recordId, order, found }, mayRecall);
    const session = begun.then(({ chosen }) => chosen.ref.key);
    // The handlers prevent an unhandled rejection when no caller awaits these promises.
    session.catch(name.reject);
    name.promise.catch(() => {});
    return {
      session,
      name: name.promise,
      get place() {
        return place;
      },
      order,
      end: (call, reply, rebuilt = null) => this.#end(request, begun, { call, reply, rebuilt, order }),
      // A failed start has already released the running call, so its error is ignored.
      abandon: () => void begun.then(({ runningKey }) => this.#leave(runningKey)).catch(() => {}),
    };
  }

  async #begin(request: SessionRequest, opened: OpenedCall, mayRecall: boolean): Promise<BegunCall> {
    const { session, ...begun } = await this.#choose(request, opened, mayRecall);
    const { ref, lane, isRemembered } = begun.chosen;
    let isWritten: boolean;
    try {
      isWritten = await this.#queues.run(queueOf(ref), async () => {
        if (!(await this.#write(request, begun, session, () => [], isRemembered))) return false;
        // Set the tools before the first answer, because a title request may arrive while the first call runs.
        if (lane === "main") session.log.tools ??= request.split.partHash("tools");
        return true;
      });
    } catch (error) {
      this.#leave(begun.runningKey);
      throw error;
    }
    if (isWritten) return begun;
    this.#leave(begun.runningKey);
    return this.#begin(request, opened, false);
  }

  /** Serializes choices that depend on each other, so that equal requests do not create two sessions. */
  async #choose(request: SessionRequest, opened: OpenedCall, mayRecall: boolean): Promise<PlacedCall> {
    const { scope, split } = request;
    await letOthersRun(split);
    const reads = this.#readsFor(request, opened.order, mayRecall);
    const lookup = this.#storing.waitedFor(this.#notes, opened.order, mayRecall);
    const isAsked: IsAsked = (key, sha256) => this.#isAsked(key, sha256);
    const name = choiceName(request);
    const continued =
      name === null
        ? null
        : await this.#queues.run(JSON.stringify([scope, "continued", name]), async () => {
            const chosen = await continuedSession(request, reads, lookup, isAsked);
            return chosen === null ? null : this.#place(request, opened, chosen);
          });
    if (continued !== null) return continued;
    return this.#queues.run(JSON.stringify([scope, "begun", opened.order.first]), async () =>
      this.#place(request, opened, await begunSession(request, reads, lookup, isAsked)),
    );
  }

  #readsFor({ scope }: SessionRequest, order: CallOrder, mayRecall: boolean): SessionReads {
    const settled = async (ref: SessionRef): Promise<void> => {
      // An answer that the client has received may still be on its way into the log. This request continues that
      // answer, so the answer must be stored first.
      await this.#storing.settled(scope, ref.key, order);
      await within(this.#clock, this.#queues.run(queueOf(ref), nothing), mostSettleMs);
    };
    return {
      settled,
      remembered: (ref) => (mayRecall ? this.logs.remembered(ref) : null),
      read: async (ref) => {
        await settled(ref);
        return this.logs.read(ref);
      },
    };
  }

  async #place(
    request: SessionRequest,
    { recordId, found, order }: OpenedCall,
    chosen: ChosenSession,
  ): Promise<PlacedCall> {
    await letOthersRun(request.split);
    const { ref, entry, isAnonymous } = chosen;
    const isNoted = chosen.session === null && isAnonymous && order.first !== null;
    const noting = isNoted ? this.#notes.note(request.scope, "first-message", order.first, ref.key) : null;
    // The promise is awaited below. This handler prevents an unhandled rejection until then.
    noting?.catch(() => {});
    const session = chosen.session ?? (await this.#create(ref, entry));
    found({ key: ref.key, sessionId: session.sessionId });
    await noting;
    const again = session.log.callOf(request.requestSha256);
    const runningKey = `${ref.key} ${request.requestSha256}`;
    const running = this.#running.get(runningKey);
    const before = running ?? (again === null || again.outcome === "answered" ? null : again);
    const named = { callId: before?.callId ?? recordId, attempt: before === null ? 0 : before.attempt + 1 };
    this.#running.set(runningKey, { ...named, count: (running?.count ?? 0) + 1 });
    // Yield first, so that an answer that waits for the session name is sent without delay.
    await nextTurn();
    return { chosen, ...named, runningKey, match: chosen.match, session };
  }

  #leave(runningKey: string): void {
    const running = this.#running.get(runningKey);
    if (running !== undefined && --running.count <= 0) this.#running.delete(runningKey);
  }

  #isAsked(key: string, sha256: string): ReturnType<IsAsked> {
    const here = [...this.#running.keys()].filter((name) => name.startsWith(`${key} `));
    if (here.length === 0) return null;
    return here.every((name) => name.endsWith(` ${sha256}`)) ? "same" : "other";
  }

  async #create(ref: SessionRef, entry: Readonly<Record<string, unknown>>): Promise<KnownSession> {
    const state = await saveNew(this.#store, ref, { ...entry, channel: "gateway" });
    if (state !== null) return this.logs.begun(ref, state);
    // Another process created the session first, so its session is read.
    const session = await this.logs.read(ref);
    if (session === null) throw new RangeError("A session that was made is not there.");
    return session;
  }

  /** @throws {ThroughlineError} SESSION_NOT_FOUND, so that a late call does not recreate a deleted session */
  async #existing(ref: SessionRef): Promise<KnownSession> {
    const session = await this.logs.read(ref);
    if (session !== null) return session;
    throw refused("SESSION_NOT_FOUND", "The session was removed while the call was answered.", { key: ref.key });
  }

  async #end(
    request: SessionRequest,
    begun: Promise<BegunCall>,
    { call, reply, rebuilt, order }: CallEnd,
  ): Promise<void> {
    let known: BegunCall;
    try {
      known = await begun;
    } catch (error) {
      if (hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      // The store may be reachable again, so the start is repeated.
      known = await this.#begin(request, { recordId: call.recordId, order, found: () => {} }, false);
    }
    const { chosen, callId, attempt, runningKey } = known;
    const { ref, lane, compactionOf } = chosen;
    try {
      await this.#queues.run(queueOf(ref), async () => {
        const session = await this.#existing(ref);
        let planned: ReplyPlan | null = null;
        await this.#write(request, known, session, (plan, { log }) => {
          // An earlier attempt may have stored the call although its confirmation was lost.
          if (log.hasExchange(exchangeIdOf(call.recordId))) return [];
          const draft = storable(reply?.draft ?? null, this.#store);
          planned = draft === null ? null : planReply(log, call.api, plan.tip, draft);
          const message = (draft?.message ?? null) as (AssistantMessage & { readonly responseId?: string }) | null;
          const unanswered = { callId, attempt, lane, compactionOf, replyId: null, responseId: null, reply: null };
          const answered = {
            ...unanswered,
            replyId: planned?.node.id ?? null,
            // The record of the reply holds the id when this call stored that record.
            responseId: planned?.draft == null ? (message?.responseId ?? null) : null,
            reply: message,
          };
          const said = planned?.draft ?? null;
          const parts = { plan, split: request.split, log };
          const known = plan.nodes.map((node, index) => ({ node, text: request.split.units[index]?.text ?? null }));
          const sentAgain = rebuilt === null ? null : rebuiltParts(call.requestSha256, rebuilt, known);
          return [
            ...(said === null ? [] : [said]),
            ...callRecords(call, sentAgain === null ? answered : unanswered, parts),
            ...(sentAgain === null || rebuilt === null
              ? []
              : callRecords(rebuilt.call, { ...answered, attempt: attempt + 1 }, { ...parts, rebuilt: sentAgain })),
          ];
        });
        await this.#noteReply(request, known, planned, reply);
      });
    } finally {
      this.#leave(runningKey);
    }
  }

  async #noteReply(
    { scope, split }: SessionRequest,
    { chosen }: BegunCall,
    planned: ReplyPlan | null,
    reply: ReadReply | null,
  ): Promise<void> {
    if (planned === null || reply?.draft == null) return;
    const { node } = planned;
    let before = node.parent;
    while (before !== null && !before.isReply) before = before.parent;
    if (chosen.isAnonymous && before === null) await this.#notes.note(scope, "first-reply", node.id, chosen.ref.key);
    const { responseId } = reply.draft.message;
    const isFollowed = split.api === "openai-responses" || split.member("thread") !== undefined;
    if (isFollowed && responseId !== undefined) await this.#notes.note(scope, "response", responseId, chosen.ref.key);
  }

  /**
   * Appends the messages that the log lacks, followed by the records of `more`.
   *
   * @param isExpected whether the append requires the known session head
   * @returns false when another process changed or removed the session before it was chosen
   */
  async #write(
    { split }: SessionRequest,
    begun: BegunCall,
    known: KnownSession,
    more: (plan: CallPlan, session: KnownSession) => readonly RecordDraft[],
    isExpected = false,
  ): Promise<boolean> {
    let session = known;
    const { chosen } = begun;
    const { ref } = chosen;
    const beganMs = this.#clock.nowMs();
    for (let attempt = 1; ; attempt++) {
      const { log } = session;
      const from = chosen.from === null ? null : log.node(chosen.from.id);
      begun.match = log.match(split, from, begun.match);
      await letOthersRun(split);
      const plan = planCall(log, split, begun.match);
      await letOthersRun(split);
      const part = firstBatch(plan.drafts, split.text.length);
      const isPart = part.length < plan.drafts.length;
      const drafts = isPart ? part : [...plan.drafts, ...more(plan, session)];
      if (drafts.length === 0) return true;
      try {
        const expect = isExpected ? { expect: { head: session.headId } } : {};
        const { stored = [], head } = await this.#store.append(ref, drafts, { return: "stored", ...expect });
        if (stored[0]?.seq === log.lastSeq + 1) for (const record of stored) log.apply(record);
        this.logs.grown(session);
        session.headId = head.headId;
        if (!isPart) return true;
        session = (await this.logs.read(ref)) ?? session;
        attempt = 0;
      } catch (error) {
        const isOutdated = isOvertaken(error) || hasErrorCode(error, "APPEND_CONFLICT");
        // If the session is still the remembered one, it changed before it was chosen. If not, it changed or was
        // removed later and must not be recreated.
        if (isExpected && isOutdated && this.logs.remembered(ref) === known) return false;
        if (hasErrorCode(error, "SESSION_BUSY") && this.#clock.nowMs() - beganMs < this.#busyWaitMs)
          await this.#clock.sleep(250);
        else if (!isOutdated || attempt >= mostTries) throw error;
        this.logs.forget(ref);
        session = await this.#existing(ref);
      }
    }
  }
}

async function nothing(): Promise<void> {}

function queueOf({ namespace, key }: SessionRef): string {
  return JSON.stringify([namespace, key]);
}

interface OpenedCall {
  readonly recordId: string;
  readonly order: CallOrder;
  readonly found: (session: CallSession) => void;
}

interface CallEnd {
  readonly order: CallOrder;
  readonly call: EndedCall;
  readonly reply: ReadReply | null;
  readonly rebuilt: RebuiltAttempt | null;
}

interface PlacedCall extends BegunCall {
  readonly session: KnownSession;
}

interface BegunCall {
  readonly chosen: ChosenSession;
  readonly callId: string;
  readonly attempt: number;
  readonly runningKey: string;
  /** Keeps the last match, so that the next match does not start over. */
  match: ChainMatch | null;
}

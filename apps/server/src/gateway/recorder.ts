import { setImmediate as nextTurn } from "node:timers/promises";
import { hasErrorCode, type RecordDraft, type SessionRef, type SessionStore } from "@throughline/core";
import type { Clock, AssistantMessage } from "@throughline/core";
import { KeyedQueues, refused } from "@throughline/core/internal";
import { planCall, planReply } from "@throughline/wire/internal";
import type { CallPlan, ChainMatch, ReadReply, ReplyPlan } from "@throughline/wire/internal";
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
import { within } from "../within.ts";
import { createSessionLookup, type GatewayScope, type SessionLookup } from "./session-lookup.ts";

/** A call that has begun. */
export interface OpenCall {
  /** Resolves with the key of its session once the request is stored; rejects where it cannot be. */
  readonly session: Promise<string>;
  /** The same as soon as it is known where the request is going to be stored. */
  readonly name: Promise<string>;
  /** Where it is going to be stored; null until the store has said so. */
  readonly place: CallSession | null;
  /** Where it stands among the calls that have begun. */
  readonly order: CallOrder;
  /** Stores what came of it. Resolves when it is stored. @param rebuilt the attempt that was made in its place */
  end(call: EndedCall, reply: ReadReply | null, rebuilt?: RebuiltAttempt | null): Promise<void>;
  /** The provider is not asked: the call does not run any more. */
  readonly abandon: () => void;
}

/** A session by its key and its id: another may have the key later. */
export interface CallSession {
  readonly key: string;
  readonly sessionId: string;
}

export interface RecorderOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  /** How long a turn of somebody else's may keep a call from being stored. */
  readonly busyWaitMs: number;
}

/** How often another writer may be faster before a call counts as lost. */
const mostTries = 8;
/** How long the choice of a session waits for what is being stored there. */
const mostSettleMs = 1000;

/** Stores calls in their sessions, those of one session one after the other. */
export class Recorder {
  /** Finds the sessions of replies, also of those that are being stored. */
  readonly lookup: SessionLookup;
  readonly logs: SessionLogs;
  readonly #store: SessionStore;
  readonly #clock: Clock;
  #busyWaitMs: number;
  readonly #notes: SessionLookup;
  readonly #storing: CallsInStoring;
  /** What waits for its turn, by session or choice. */
  readonly #queues = new KeyedQueues();
  /** Bodies whose calls run, with how often each was sent. */
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

  /** A client has heard the end of a call that is going to be stored: what it asks next may follow it. */
  addStoring(scope: GatewayScope, open: OpenCall | null, stored: Promise<unknown>): void {
    const { order = null, name: placed = stored } = open ?? {};
    this.#storing.add(scope, { stored, placed, order, key: () => open?.place?.key ?? null });
  }

  forget(ref: SessionRef): void {
    this.logs.forget(ref);
  }

  /** No call waits longer than this for a turn of somebody else's from now on. */
  limitBusyWait(ms: number): void {
    this.#busyWaitMs = Math.min(this.#busyWaitMs, ms);
  }

  /** Resolves once nothing waits any more. */
  settled(): Promise<void> {
    return this.#queues.settled();
  }

  /**
   * Begins to store a call: its session, and the messages that are new.
   *
   * @param mayRecall whether a session that is remembered counts as there, and other nodes are waited for; not for a call that
   * has waited, whose session may have been removed meanwhile
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
    // Whoever waits for it hears of a failure; nobody has to.
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
      // Otherwise it has left by itself.
      abandon: () => void begun.then(({ runningKey }) => this.#leave(runningKey)).catch(() => {}),
    };
  }

  /** Chooses the session of a call, and stores there what is new of it. */
  async #begin(request: SessionRequest, opened: OpenedCall, mayRecall: boolean): Promise<BegunCall> {
    const { session, ...begun } = await this.#choose(request, opened, mayRecall);
    const { ref, lane, isRemembered } = begun.chosen;
    let isWritten: boolean;
    try {
      isWritten = await this.#queues.run(queueOf(ref), async () => {
        if (!(await this.#write(request, begun, session, () => [], isRemembered))) return false;
        // A title may be asked for while the first call of the main agent runs.
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

  /** Chooses the session of a call. Choices that depend on each other are made one after the other. */
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
      // What the client heard to its end may still be on its way into the log, and this request follows it.
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
    // It is awaited below.
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
    // An answer that waits for the name goes on first.
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
    // Another process was faster.
    const session = await this.logs.read(ref);
    if (session === null) throw new RangeError("A session that was made is not there.");
    return session;
  }

  /** @throws {ThroughlineError} SESSION_NOT_FOUND: what was deleted while a call was answered must not come back with it */
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
      // The store may have come back meanwhile.
      known = await this.#begin(request, { recordId: call.recordId, order, found: () => {} }, false);
    }
    const { chosen, callId, attempt, runningKey } = known;
    const { ref, lane, compactionOf } = chosen;
    try {
      await this.#queues.run(queueOf(ref), async () => {
        const session = await this.#existing(ref);
        let planned: ReplyPlan | null = null;
        await this.#write(request, known, session, (plan, { log }) => {
          // An earlier attempt to store it may have succeeded, although nobody heard of it.
          if (log.hasExchange(exchangeIdOf(call.recordId))) return [];
          const draft = storable(reply?.draft ?? null, this.#store);
          planned = draft === null ? null : planReply(log, call.api, plan.tip, draft);
          const message = (draft?.message ?? null) as (AssistantMessage & { readonly responseId?: string }) | null;
          const unanswered = { callId, attempt, lane, compactionOf, replyId: null, responseId: null, reply: null };
          const answered = {
            ...unanswered,
            replyId: planned?.node.id ?? null,
            // The record of the reply has it, if this call has brought it.
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
   * Appends what the log does not have of the request, and more behind it.
   *
   * @param isExpected nothing is appended to a session that is not as it is known
   * @returns false where another process had changed or removed the session before it was chosen
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
        // One that was read or forgotten since it was chosen was changed or removed after that: it must not come back.
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

/** A call that is opened. */
interface OpenedCall {
  readonly recordId: string;
  readonly order: CallOrder;
  /** Called once it is known where it is going to be stored. */
  readonly found: (session: CallSession) => void;
}

/** What came of a call. */
interface CallEnd {
  readonly order: CallOrder;
  readonly call: EndedCall;
  readonly reply: ReadReply | null;
  readonly rebuilt: RebuiltAttempt | null;
}

/** A call whose session is chosen. */
interface PlacedCall extends BegunCall {
  readonly session: KnownSession;
}

interface BegunCall {
  readonly chosen: ChosenSession;
  readonly callId: string;
  readonly attempt: number;
  readonly runningKey: string;
  /** What is known of the request in the log, from one look to the next. */
  match: ChainMatch | null;
}

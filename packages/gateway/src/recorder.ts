import type { AssistantMessage, Clock, RecordDraft, SessionRef, SessionStore } from "@throughline/core";
import { KeyedQueues, systemRandom } from "@throughline/core/internal";
import { attemptRecords, type EndedCall, exchangeIdFor, type RebuiltAttempt } from "./call-record.ts";
import { chooseFromMemory, findInStore, newKey } from "./choose-session.ts";
import { firstBatch, storable } from "./draft-sizes.ts";
import { letOthersRun } from "./large-requests.ts";
import {
  type CallIdentity,
  type Conversation,
  type RunningCall,
  RunningCalls,
  type SessionPlace,
  type SessionRequest,
} from "./running-calls.ts";
import { PendingWork } from "./pending-work.ts";
import { lastReplyBefore } from "./question-place.ts";
import { clientOf, followedReply, namedReply } from "./session-ids.ts";
import { isOvertaken, type KnownSession, SessionLogs } from "./session-logs.ts";
import { createSessionLookup, saveUnlessChanged, type SessionLookup } from "./session-lookup.ts";
import {
  type CallPlan,
  type ChainMatch,
  planCall,
  planReply,
  type ReadReply,
  type ReplyPlan,
  unitIds,
  type WireLog,
} from "./wire/index.ts";

/** Holds what came of a call. */
export interface CallEnd {
  readonly call: EndedCall;
  readonly read: ReadReply | null;
  /** Is the second attempt, if the gateway made one. */
  readonly rebuilt: RebuiltAttempt | null;
}

/** Holds the id beside the key, because a later session may reuse the key. */
export interface CallSession {
  readonly key: string;
  readonly sessionId: string;
}

/** Names a call that waited in the journal. */
export interface WaitedCall {
  readonly recordId: string;
  /** Is the key of the session that the call begins, if it begins one. */
  readonly key: string;
  /** Is set when the session was known. The call must then not go to a newer session of the key. */
  readonly session: CallSession | null;
}

export interface RecorderOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
}

/** Limits how often an append is repeated after another writer changed the session. */
const mostTries = 8;

/**
 * Stores calls in their sessions, each with one append when its answer has ended. The session of a call is decided in
 * memory when its request arrives. Calls of one session are stored one after the other.
 */
export class Recorder {
  readonly lookup: SessionLookup;
  readonly logs: SessionLogs;
  readonly #store: SessionStore;
  readonly #running: RunningCalls;
  readonly #queues = new KeyedQueues();
  readonly #asking = new WeakMap<SessionPlace, Promise<void>>();
  readonly #storing = new PendingWork();

  constructor({ store, clock }: RecorderOptions) {
    this.#store = store;
    this.logs = new SessionLogs(store);
    this.lookup = createSessionLookup(store, clock);
    this.#running = new RunningCalls(this.logs);
  }

  forget(ref: SessionRef): void {
    this.logs.forget(ref);
  }

  /** Keeps the calls that run in a purged session from bringing it back. */
  purged(ref: SessionRef): void {
    this.#running.purge(ref);
  }

  /** Resolves when no call is being stored. */
  settled(): Promise<void> {
    return this.#storing.settled();
  }

  /** Decides the session of a call in memory. The call runs until `store` or `release`. */
  begin(request: SessionRequest, recordId: string): RunningCall {
    const choice = chooseFromMemory(request, this.#running, this.lookup);
    const { session, calls } = this.#running.conversation(request.scope, choice.place.key);
    const repeats = calls.findLast(
      (call) => call.request.requestSha256 === request.requestSha256 && call.ended?.outcome !== "answered",
    );
    const call = runningCall(request, recordId, { choice, repeats: repeats ?? null });
    call.match = session === null ? null : matchIn(session, request, null);
    this.#running.add(call);
    return call;
  }

  /** Remembers what a client is about to hear, because its next request may continue it before it is stored. */
  hear(call: RunningCall, { call: { outcome }, read }: CallEnd): void {
    const { request, choice } = call;
    call.ended = { outcome, reply: read };
    const id = namedReply(request.split, read);
    if (id !== null) this.lookup.remember(request.scope, "response", id, choice.place.key);
  }

  /** Ends a call that is not stored now: it waits in the journal, or it is not passed on. */
  release(call: RunningCall): void {
    this.#running.delete(call);
  }

  /**
   * Asks the store for the session of a call that continues a conversation which this process does not know.
   *
   * @param mayWait whether to wait for another node that may be storing the conversation
   * @returns the key; null when only another node may know it
   */
  async locate(call: RunningCall, mayWait: boolean): Promise<string | null> {
    const { place } = call.choice;
    if (place.basis === "unknown") await this.#ask(call, mayWait, false);
    return place.basis === "unknown" && this.lookup.hasNodes ? null : place.key;
  }

  /** Stores the question of a call before it is answered, for a call that is passed on only if the store takes it. */
  async storeQuestion(call: RunningCall): Promise<boolean> {
    const isStored = await this.#record(call, null);
    call.mayMove = false;
    return isStored;
  }

  /**
   * Stores a call and ends it.
   *
   * @returns false when its session was removed while the call ran, so that nothing was stored
   */
  store(call: RunningCall, end: CallEnd): Promise<boolean> {
    return this.#storing.track(this.#record(call, end).finally(() => this.release(call)));
  }

  /**
   * Stores a call that waited in the journal.
   *
   * @returns false when its session was removed or reset meanwhile, so that nothing was stored
   */
  async storeWaited(request: SessionRequest, { recordId, key, session }: WaitedCall, end: CallEnd): Promise<boolean> {
    const { namespace, agentId } = request.scope;
    const now = session === null ? null : await this.logs.read({ namespace, agentId, key: session.key });
    if (session !== null && now?.sessionId !== session.sessionId) return false;
    const place: SessionPlace = { key, sessionId: null, basis: "unknown", entry: {}, isAnonymous: true };
    const choice = { place, lane: "main", isCompaction: false } as const;
    const call = runningCall(request, recordId, { choice, repeats: null });
    call.mayMove = false;
    await this.#ask(call, false, true);
    return this.#record(call, end);
  }

  /** Chooses the session of a call from the store. Calls that share a place ask once. */
  #ask(call: RunningCall, mayWait: boolean, mayBegin: boolean): Promise<void> {
    const { place } = call.choice;
    const asking =
      this.#asking.get(place) ?? this.#choose(call, mayWait, mayBegin).finally(() => this.#asking.delete(place));
    this.#asking.set(place, asking);
    return asking;
  }

  async #choose(call: RunningCall, mayWait: boolean, mayBegin: boolean): Promise<void> {
    const { request, choice } = call;
    const { scope, split } = request;
    await letOthersRun(split);
    const remembered = (key: string): Conversation => this.#running.conversation(scope, key, call);
    const read = async (key: string): Promise<Conversation> => {
      await this.logs.read({ namespace: scope.namespace, agentId: scope.agentId, key });
      return remembered(key);
    };
    const exchangeId = exchangeIdFor(call.recordId);
    const isStored = ({ session }: Conversation): boolean => session?.log.hasExchange(exchangeId) === true;
    const found = await findInStore(request, { read, remembered, isStored, lookup: this.lookup, mayWait });
    if (found === null && !mayBegin) return;
    Object.assign(choice.place, found?.place, { basis: "known" });
    if (found !== null) call.choice = { ...found, place: choice.place };
  }

  /** @param end null for the question alone */
  async #record(call: RunningCall, end: CallEnd | null): Promise<boolean> {
    const { place } = call.choice;
    for (;;) {
      while (place.basis !== "known") await this.#ask(call, true, true);
      const ref = refOf(call);
      if (await this.#queues.run(queueOf(ref), () => this.#write(call, ref, end))) return true;
      if (!call.mayMove || call.isPurged) return false;
      // Another process removed or reset the session before the request. Only the store knows where the call belongs.
      const key = place.isAnonymous ? newKey(call.request.scope) : place.key;
      Object.assign(place, { key, sessionId: null, basis: "unknown" });
      call.match = null;
    }
  }

  /** Returns the session of a call, which is created if need be. Null when the session was removed or reset. */
  async #open(call: RunningCall, ref: SessionRef): Promise<KnownSession | null> {
    const { place } = call.choice;
    if (call.isPurged) return null;
    if (place.sessionId === null) {
      const session = await this.#create(call, ref);
      place.sessionId = session?.sessionId ?? null;
      return session;
    }
    const session = await this.logs.read(ref);
    return session?.sessionId === place.sessionId ? session : null;
  }

  async #create({ request, choice: { place } }: RunningCall, ref: SessionRef): Promise<KnownSession | null> {
    const { scope, split } = request;
    const first = place.isAnonymous ? unitIds(split).first : null;
    const noting = first === null ? null : this.lookup.note(scope, "first-message", first, ref.key);
    // The promise is awaited below. This handler prevents an unhandled rejection until then.
    noting?.catch(() => {});
    const client = clientOf(request.headers);
    const program = client === null ? {} : { client };
    const entry = { ...place.entry, ...program, channel: "gateway", sessionId: systemRandom.uuid() };
    const state = await saveUnlessChanged(this.#store, ref, entry, null);
    // Another call or process may have created the session first.
    const session = state === null ? await this.logs.read(ref) : this.logs.begun(ref, state);
    await noting;
    return session;
  }

  /**
   * Appends the messages that the log lacks, followed by the records of the call.
   *
   * @returns false when the session was removed or reset
   */
  async #write(call: RunningCall, ref: SessionRef, end: CallEnd | null): Promise<boolean> {
    const { request } = call;
    const { split } = request;
    for (let attempt = 1; ; attempt++) {
      const session = await this.#open(call, ref);
      if (session === null) return false;
      call.match = matchIn(session, request, call.match);
      await letOthersRun(split);
      const plan = planCall(session.log, split, call.match);
      await letOthersRun(split);
      const part = firstBatch(plan.drafts, split.text.length);
      const isPart = part.length < plan.drafts.length;
      const ending = isPart || end === null ? null : this.#planEnd(call, session, plan, end);
      const drafts = [...(end === null ? part : askedAt(part, end.call)), ...(ending?.drafts ?? [])];
      try {
        if (drafts.length > 0) await this.#append(session, drafts);
      } catch (error) {
        if (!isOvertaken(error) || attempt >= mostTries) throw error;
        this.logs.forget(ref);
        continue;
      }
      if (!isPart) {
        await this.#noteReply(call, ending?.reply ?? null, end);
        return true;
      }
      // A part of the call is stored, so a purge from now on is a purge of the call.
      call.mayMove = false;
      attempt = 0;
    }
  }

  async #append(session: KnownSession, drafts: readonly RecordDraft[]): Promise<void> {
    const { log, ref } = session;
    const { stored = [], head } = await this.#store.append(ref, drafts, { return: "stored" });
    if (stored[0]?.seq === log.lastSeq + 1) for (const record of stored) log.apply(record);
    this.logs.grown(session);
    session.headId = head.headId;
  }

  /** Plans the records of the reply and of the call. */
  #planEnd(
    running: RunningCall,
    { log, headId }: KnownSession,
    plan: CallPlan,
    { call, read, rebuilt }: CallEnd,
  ): { readonly drafts: readonly RecordDraft[]; readonly reply: ReplyPlan | null } {
    const { split } = running.request;
    const { lane, isCompaction } = running.choice;
    // An earlier attempt may have stored the call although its confirmation was lost.
    if (log.hasExchange(exchangeIdFor(call.recordId))) return { drafts: [], reply: null };
    const draft = storable(read?.draft ?? null, this.#store);
    const reply = draft === null ? null : planReply(log, call.api, plan.tip, draft);
    const message = (draft?.message ?? null) as (AssistantMessage & { readonly responseId?: string }) | null;
    const { callId, attempt } = identityOf(running, log);
    const place = {
      callId,
      attempt,
      lane,
      compactionOf: isCompaction ? headId : null,
      replyId: reply?.node.id ?? null,
      // The record of the reply holds the id when this call stored that record.
      responseId: reply?.draft == null ? (message?.responseId ?? null) : null,
      reply: message,
    };
    const known = plan.nodes.map((node, index) => ({ node, text: split.units[index]?.text ?? null }));
    const parts = { plan, split, log, known, of: call.requestSha256 };
    const records = attemptRecords({ call, rebuilt }, place, parts);
    return { drafts: reply?.draft == null ? records : [reply.draft, ...records], reply };
  }

  async #noteReply({ request, choice }: RunningCall, planned: ReplyPlan | null, end: CallEnd | null): Promise<void> {
    const { scope } = request;
    const { key, isAnonymous } = choice.place;
    if (planned === null || end?.read?.draft == null) return;
    const { node } = planned;
    if (isAnonymous && lastReplyBefore(node.parent) === null)
      await this.lookup.note(scope, "first-reply", node.id, key);
    const id = namedReply(request.split, end.read);
    if (id !== null) await this.lookup.note(scope, "response", id, key);
  }
}

/** The question was asked when the call began, and not when its answer had ended. */
function askedAt(drafts: readonly RecordDraft[], { startedMs }: EndedCall): readonly RecordDraft[] {
  const timestamp = new Date(startedMs).toISOString();
  return drafts.map((draft) => ({ ...draft, timestamp }));
}

function runningCall(
  request: SessionRequest,
  recordId: string,
  { choice, repeats }: Pick<RunningCall, "choice" | "repeats">,
): RunningCall {
  const fresh = { match: null, identity: null, ended: null, isPurged: false, mayMove: true };
  return { request, recordId, choice, repeats, ...fresh };
}

/** A repeated body counts as the next attempt of the call that it repeats, in the order of the requests. */
function identityOf(call: RunningCall, log: WireLog): CallIdentity {
  const { repeats, request, recordId } = call;
  const again = log.callOf(request.requestSha256);
  const before = repeats !== null ? identityOf(repeats, log) : again?.outcome === "answered" ? null : again;
  return (call.identity ??= { callId: before?.callId ?? recordId, attempt: before === null ? 0 : before.attempt + 1 });
}

function matchIn({ log }: KnownSession, { split }: SessionRequest, earlier: ChainMatch | null): ChainMatch {
  const replied = followedReply(split);
  return log.match(split, replied === null ? null : log.reply(replied), earlier);
}

function refOf({ request: { scope }, choice }: RunningCall): SessionRef {
  return { namespace: scope.namespace, agentId: scope.agentId, key: choice.place.key };
}

function queueOf({ namespace, key }: SessionRef): string {
  return JSON.stringify([namespace, key]);
}

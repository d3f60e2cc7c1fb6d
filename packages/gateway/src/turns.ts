import { createHash } from "node:crypto";
import {
  type Clock,
  hasErrorCode,
  openSession,
  readWindow,
  type RecordDraft,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import {
  isFields,
  KeyedQueues,
  loadExisting,
  parsedFields,
  refused,
  renewTurn,
  systemRandom,
} from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { closeLeasedTurn, leaseTurn, processOwners } from "@throughline/session/internal";
import {
  bodyText,
  type CallPlan,
  planCall,
  planReply,
  requestMessages,
  splitRequest,
  type SplitRequest,
  type WireNode,
  withoutMembers,
} from "./wire/index.ts";
import { apiTargets, historyTargetOf } from "./api-targets.ts";
import { attemptRecords } from "./call-record.ts";
import { keyOf, sessionOfHeader } from "./choose-session.ts";
import type { ReadCalls } from "./ended-call.ts";
import { blockTypes, withOwnForms } from "./own-forms.ts";
import { stateMembers } from "./gateway-rights.ts";
import { keyPart, namedReply } from "./session-ids.ts";
import { isOvertaken, type KnownSession, type SessionLogs } from "./session-logs.ts";
import type { SessionLookup } from "./session-lookup.ts";
import type { TurnRules } from "@throughline/session/internal";
import { lastReplyBefore, questionPlace, type QuestionPlace, type TurnRequest } from "./question-place.ts";

/** The question is durable in the store before the provider is asked. */
export interface GatewayTurn {
  readonly key: string;
  readonly body: Buffer;
  readonly split: SplitRequest;
  readonly requestSha256: string;
  /** Resolves to true when the reply, if any, is stored. Otherwise the client must not see the answer as complete. */
  end(ended: ReadCalls): Promise<boolean>;
  abandon(): Promise<void>;
}

export interface TurnsOptions {
  readonly store: SessionStore;
  readonly turnRules: TurnRules;
  readonly clock: Clock;
  readonly logs: SessionLogs;
  readonly lookup: SessionLookup;
}

/**
 * Sets when other machines may take over the turn of a killed process. On the same machine the turn is free at once.
 */
const leaseMs = 15_000;
const mostTries = 8;
const busyMs = 1000;
/** Limits how often ending a turn is retried while the store is away. */
const mostEndTries = 10;
const endRetryMs = 500;

/**
 * Clients in stateful mode send only new messages, so the session holds the history. Each call is one turn of its
 * session.
 */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #queues = new KeyedQueues();

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /**
   * Opens a turn and stores its question.
   * @throws {ThroughlineError} SESSION_BUSY, FORBIDDEN, ROUTE_NOT_FOUND for an id that was not issued to the token,
   *   INPUT_INVALID, and what the store throws
   */
  async begin(request: TurnRequest, callId: string): Promise<GatewayTurn> {
    const { scope } = request;
    const { key, replyId } = await this.#place(request);
    const ref: SessionRef = { namespace: scope.namespace, agentId: scope.agentId, key };
    return this.#queues.run(JSON.stringify([scope.namespace, key]), async () => {
      for (let tries = 1; ; tries++)
        try {
          return await this.#open(request, { ref, replyId, callId });
        } catch (error) {
          if (hasErrorCode(error, "SESSION_BUSY"))
            throw refused(
              "SESSION_BUSY",
              "Another call is being answered in this session.",
              { retryAfterMs: busyMs },
              error,
            );
          if (!isOvertaken(error) || tries >= mostTries) throw error;
          this.#options.logs.forget(ref);
        }
    });
  }

  /**
   * Finds the session of a request and the reply that it follows. A null `replyId` means that it follows the newest
   * message.
   */
  async #place({
    scope,
    headers,
    split,
    mayWrite,
  }: TurnRequest): Promise<{ readonly key: string; readonly replyId: string | null }> {
    const { lookup } = this.#options;
    const named = sessionOfHeader(headers["throughline-session"], scope, mayWrite);
    const replyId = followedId(split);
    const conversation = conversationId(split);
    const inBody = conversation === null ? null : sessionOfHeader(conversation, scope, mayWrite);
    if (replyId === null) return { key: named ?? inBody ?? keyOf(scope, keyPart(systemRandom.uuid())), replyId };
    const keys = await lookup.find(scope, "response", replyId);
    const key = keys.find((one) => (named ?? inBody ?? one) === one);
    if (key === undefined) throw refused("ROUTE_NOT_FOUND", "There is no such response.");
    return { key, replyId };
  }

  async #open(
    request: TurnRequest,
    { ref, replyId, callId }: { readonly ref: SessionRef; readonly replyId: string | null; readonly callId: string },
  ): Promise<GatewayTurn> {
    const { store, clock, logs, turnRules } = this.#options;
    const { split } = request;
    await openSession(store, ref, { random: systemRandom, entry: { channel: "gateway" } });
    // A request that names a reply continues that conversation, so no reset rule may start a new one.
    if (replyId === null) await turnRules.prepare(store, ref);
    else turnRules.assertMaySend(await loadExisting(store, ref));
    const session = await logs.read(ref);
    if (session === null) throw new RangeError("A session that was made is not there.");
    const { log } = session;
    if (replyId !== null && log.reply(replyId) === null) throw refused("ROUTE_NOT_FOUND", "There is no such response.");
    const place = questionPlace(request, session, replyId);
    const plan = planCall(log, split, { node: place.from, known: place.known, nodes: [] });
    if ((plan.tip?.branch ?? []).some(({ isLarge }) => isLarge))
      throw refused("RECORD_TOO_LARGE", "A message is larger than a session that holds the history may have.");
    const lease = await leaseTurn(store, ref, {
      owner: processOwners().self,
      leaseMs,
      drafts: placed(plan.drafts, place),
      clock,
      random: systemRandom,
      turnId: callId,
      expect: { head: session.headId },
    });
    const { fence } = lease;
    if (fence === null) throw new RangeError("A turn that was opened has no fence.");
    const renewal = renewTurn(store, ref, { fence, leaseMs, clock });
    const turn = { ref, fence, callId, request, plan, renewal };
    try {
      return await this.#asked(turn);
    } catch (error) {
      await this.#close(turn, [], "failed").catch(() => {});
      throw error;
    }
  }

  async #asked(turn: OpenedTurn): Promise<GatewayTurn> {
    const { store, logs } = this.#options;
    const { ref, plan, request } = turn;
    const { api } = request.split;
    const session = await logs.read(ref);
    if (session === null) throw refused("SESSION_NOT_FOUND", "The session was removed while the call began.");
    const tip = plan.tip === null ? null : session.log.node(plan.tip.id);
    const { records } = await readWindow(store, ref);
    const model = request.split.member("model");
    const context = buildContext(records, { headId: tip?.lastId ?? session.headId });
    const types = records.flatMap(({ record }) => blockTypes(record["message"]));
    const { messages } = historyTargetOf(api).render(context, {
      target: { provider: apiTargets[api][0], modelId: typeof model === "string" ? model : "" },
      carryBlocks: new Set(types),
    });
    const nodes = tip?.branch ?? [];
    const { values, replaced } = requestMessages(request.split);
    const own = ownValues(nodes);
    const known = [...own.keys(), ...values.slice(values.length - plan.nodes.length)];
    const text = replaced(withOwnForms(messages, known), own);
    if (text === null)
      throw refused("INPUT_INVALID", "A prompt that is one text has no history. Use a list of messages.");
    const asked = withoutMembers(text, (name) => stateMembers.has(name.toLowerCase()));
    const body = Buffer.from(asked);
    const split = splitRequest(api, bodyText(body) ?? "");
    if (split === null) throw new RangeError("The request of a session has no messages.");
    return {
      key: ref.key,
      body,
      split,
      requestSha256: createHash("sha256").update(body).digest("hex"),
      end: (ended) => this.#end(turn, split, ended),
      abandon: () => this.#close(turn, [], "aborted"),
    };
  }

  async #end(turn: OpenedTurn, split: SplitRequest, ended: ReadCalls): Promise<boolean> {
    const { lookup } = this.#options;
    const { ref, request } = turn;
    const { call, read, rebuilt } = ended;
    const last = rebuilt?.call ?? call;
    const isAnswered = last.outcome === "answered";
    try {
      const drafts = await this.#endDrafts(turn, split, ended);
      await this.#close(turn, drafts, isAnswered ? "done" : last.outcome === "aborted" ? "aborted" : "failed");
    } catch (error) {
      // When the store rejects the reply, the turn is still closed, so that the session does not stay busy.
      if (!hasErrorCode(error, "TURN_FENCED")) await this.#close(turn, [], "failed", "without").catch(() => {});
      throw error;
    }
    const responseId = namedReply(request.split, read);
    if (responseId !== null) await lookup.note(request.scope, "response", responseId, ref.key);
    // A successful answer that could not be parsed is not stored, so the client must not see it as complete.
    return read?.draft != null || !isAnswered;
  }

  async #endDrafts(turn: OpenedTurn, split: SplitRequest, ended: ReadCalls): Promise<readonly RecordDraft[]> {
    const { ref, callId, request } = turn;
    const { call, read, rebuilt } = ended;
    const session = await this.#known(ref);
    const { log } = session;
    const tip = turn.plan.tip === null ? null : log.node(turn.plan.tip.id);
    const nodes = tip?.branch ?? [];
    const known = nodes.map((node) => ({ node, text: node.text }));
    const draft = read?.draft ?? null;
    const planned = draft === null ? null : planReply(log, call.api, tip, draft);
    const message = draft?.message ?? null;
    const place = {
      callId,
      attempt: 0,
      lane: "main",
      compactionOf: null,
      replyId: planned?.node.id ?? null,
      responseId: message?.responseId ?? null,
      reply: message,
    };
    const of = request.requestSha256;
    const first = { split, known, of, action: null, changes: [], compacted: null };
    const parts = { plan: { tip, nodes }, split: request.split, log, known, of, rebuilt: first };
    const records = attemptRecords({ call, rebuilt }, place, parts);
    return planned?.draft == null ? records : [planned.draft, ...records];
  }

  async #known(ref: SessionRef): Promise<KnownSession> {
    for (let tries = 1; ; tries++)
      try {
        const session = await this.#options.logs.read(ref);
        if (session !== null) return session;
        throw refused("SESSION_NOT_FOUND", "The session was removed while the call was answered.");
      } catch (error) {
        if (tries >= mostEndTries || !isTransient(error)) throw error;
        await this.#options.clock.sleep(endRetryMs);
      }
  }

  /**
   * Ends a turn and appends its last records in one commit. The idempotency key makes the repeat safe when the result
   * of an attempt is unknown.
   */
  async #close(
    { ref, fence, callId, renewal }: OpenedTurn,
    drafts: readonly RecordDraft[],
    outcome: "done" | "aborted" | "failed",
    what = "end",
  ): Promise<void> {
    const { store, clock } = this.#options;
    await renewal.stop();
    for (let tries = 1; ; tries++)
      try {
        await closeLeasedTurn(store, ref, { fence, drafts, outcome, idempotencyKey: `gw:${what}:${callId}` });
        return;
      } catch (error) {
        if (tries >= mostEndTries || !isTransient(error)) throw error;
        await clock.sleep(endRetryMs);
      }
  }
}

interface OpenedTurn {
  readonly ref: SessionRef;
  readonly fence: number;
  readonly callId: string;
  readonly request: TurnRequest;
  readonly plan: CallPlan;
  readonly renewal: ReturnType<typeof renewTurn>;
}

function isTransient(error: unknown): boolean {
  return hasErrorCode(error, "STORE_UNREACHABLE", "STORE_LOCKED", "STORE_OVERLOADED");
}

/**
 * Sets the parent of the first message, and adds tool names to the tool results, because the wire format has only call
 * ids.
 */
function placed(drafts: readonly RecordDraft[], { from, parentId }: QuestionPlace): readonly RecordDraft[] {
  const tools = toolsOf(from);
  let isFirst = true;
  return drafts.map((draft) => {
    if (draft["parentId"] === undefined) return draft;
    const message = isFields(draft["message"]) ? draft["message"] : {};
    const tool = message["role"] === "toolResult" ? tools.get(message["toolCallId"]) : undefined;
    const named = tool === undefined ? draft : { ...draft, message: { ...message, toolName: tool } };
    if (!isFirst) return named;
    isFirst = false;
    return { ...named, parentId };
  });
}

function toolsOf(from: WireNode | null): ReadonlyMap<unknown, unknown> {
  const blocks = (lastReplyBefore(from)?.contents ?? []).flatMap((content) =>
    isFields(content) && Array.isArray(content["content"]) ? (content["content"] as readonly unknown[]) : [],
  );
  return new Map(
    blocks.flatMap((block) =>
      isFields(block) && block["type"] === "toolCall" ? [[block["id"], block["name"]] as const] : [],
    ),
  );
}

/**
 * Maps stored values to their original text. Texts with cache marks are left out, because the marks belong to the
 * request that sent them.
 */
function ownValues(nodes: readonly WireNode[]): ReadonlyMap<unknown, string> {
  const values = new Map<unknown, string>();
  for (const { text } of nodes) {
    if (text === null || text.includes("cache_control")) continue;
    // A reply of the Responses API consists of several items, so its text is no single value. It is rendered instead.
    const value = parsedFields(text);
    if (value !== null) values.set(value, text);
  }
  return values;
}

function conversationId(split: SplitRequest): string | null {
  const value = split.member("conversation");
  const id = isFields(value) ? value["id"] : value;
  if (id === undefined || id === null) return null;
  if (typeof id === "string" && id !== "") return id;
  throw refused("INPUT_INVALID", "conversation must be a text, or an object with the text `id`.");
}

function followedId(split: SplitRequest): string | null {
  const previous = split.member("previous_response_id");
  const thread = split.member("thread");
  const ids = [previous, isFields(thread) ? thread["previous_message_id"] : null].filter(
    (id) => id !== undefined && id !== null,
  );
  const [id = null] = ids;
  if (ids.length > 1) throw refused("INPUT_INVALID", "The request names what it continues in more than one way.");
  if (id === null) return null;
  if (typeof id === "string") return id;
  throw refused("ROUTE_NOT_FOUND", "There is no such response.");
}

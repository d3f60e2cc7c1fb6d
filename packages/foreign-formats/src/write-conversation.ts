import type { StoredRecord } from "@throughline/core";
import { findRecordProblem, inFewerSteps, isFields, type Steps } from "@throughline/core/internal";
import type { Context, Repair } from "@throughline/history";
import type { NeutralBlock, NeutralMessage } from "@throughline/history/internal";
import {
  contextSteps,
  renderSteps,
  walkSteps,
  type AssistantTurn,
  type ProviderMapping,
  type ProviderRules,
  type ReplayResult,
  type ReplayTurn,
} from "@throughline/history/internal";
import { asText } from "./as-text.ts";
import type { WrittenSession } from "./format-writer.ts";
import { openCalls } from "./open-calls.ts";
import type { LossLog } from "./write-losses.ts";

export type ConversationPart =
  | { readonly kind: "turn"; readonly turn: ReplayTurn }
  /** A compacted context begins with its summary. The messages that it keeps were written before. */
  | { readonly kind: "compaction"; readonly stored: StoredRecord; readonly keptIds: readonly string[] }
  /** An empty context begins here. */
  | { readonly kind: "reset"; readonly stored: StoredRecord };

type UserTurn = Extract<ReplayTurn, { readonly role: "user" }>;

type NeutralThinking = Extract<NeutralBlock, { readonly type: "thinking" }>;

export interface TurnOrigin {
  readonly stored: StoredRecord;
  /** The message is null when the context shows the record in no message of its own. */
  readonly message: NeutralMessage | null;
}

interface ConversationOptions {
  /** Writes a reply whose calls wait, without answers. Otherwise the reply is left out. @default true */
  readonly keepsWaiting?: boolean;
  /** Writes a reply again when another one joined it: the program takes a known id as a new form. @default false */
  readonly replacesReplies?: boolean;
}

/**
 * Converts the branch of a session to turns that the target's provider accepts. Every call is answered, except those
 * that wait for a decision. Content that the provider would refuse is left out or changed, and reported. A session of
 * which only the end was read begins there.
 */
export class WrittenConversation {
  readonly #session: WrittenSession;
  readonly #rules: ProviderRules;
  readonly #losses: LossLog;
  readonly #keepsWaiting: boolean;
  readonly #replacesReplies: boolean;
  readonly #messages = new Map<string, NeutralMessage>();
  readonly #stored: ReadonlyMap<string, StoredRecord>;
  readonly #written = new Set<string>();
  readonly #answered = new Set<string>();
  /** Maps calls to the seq of their newest result, because a result may follow a compaction that keeps its call. */
  readonly #resultSeqs = new Map<string, number>();
  /** Counts the blocks of a written reply by its record, because a later context may join another reply to it. */
  readonly #blockCounts = new Map<string, number>();
  /**
   * The last rendered context is kept with the positions of its messages, because the thinking of a turn is looked up
   * there.
   */
  #inOrder: readonly NeutralMessage[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  #context: { readonly headId: string | null; readonly context: Context } | null = null;
  readonly #shown = new Set<string>();

  constructor(session: WrittenSession, rules: ProviderRules, losses: LossLog, options: ConversationOptions = {}) {
    this.#session = session;
    this.#rules = rules;
    this.#losses = losses;
    this.#keepsWaiting = options.keepsWaiting ?? true;
    this.#replacesReplies = options.replacesReplies ?? false;
    this.#stored = new Map(session.records.map((stored) => [stored.id, stored]));
  }

  /** Null means that the turn was created in rendering and has no record. */
  originOf(recordId: string | null): TurnOrigin | null {
    const stored = recordId === null ? undefined : this.#stored.get(recordId);
    if (stored === undefined) return null;
    return { stored, message: this.#messages.get(stored.id) ?? null };
  }

  /**
   * Yields the whole branch with its compactions and resets. A step without a part yields undefined, so that the caller
   * can pause.
   */
  *wholeBranch(): Generator<ConversationPart | undefined> {
    const { records, headId } = this.#session;
    const { indexes } = yield* inFewerSteps(walkSteps(records, headId));
    const path = indexes.map((index) => records[index] as StoredRecord);
    for (const { seq, record } of path) {
      this.#noteResult(seq, record["message"]);
      yield;
    }
    for (const [at, stored] of path.entries()) {
      if (!isBoundary(stored) || this.#isWritten(stored.seq)) continue;
      const kept = stored.type === "reset" ? [] : (keptIds(path, at) ?? (yield* this.#keptBy(stored.id)));
      yield* this.#turnsUpTo(path[at - 1]?.id ?? null, new Set(kept), stored.seq);
      if (stored.type === "reset") yield { kind: "reset", stored };
      else yield { kind: "compaction", stored, keptIds: kept };
    }
    yield* this.#turnsUpTo(headId);
    const { omitted } = yield* this.#contextAt(headId);
    for (const { reason, fromSeq, toSeq } of omitted)
      if (reason !== "summarized" && reason !== "reset") yield* this.#omit(reason, fromSeq, toSeq);
  }

  /**
   * Yields the messages that a model would get now, including the summary. For a session that a file already holds, it
   * yields only the new turns. A step without a turn yields undefined, so that the caller can pause.
   */
  *context(): Generator<ReplayTurn | undefined> {
    const { headId, writtenSeq } = this.#session;
    if (writtenSeq === undefined) yield* headId === null ? [] : yield* this.#rendered(headId, true);
    else
      for (const part of this.#turnsUpTo(headId))
        if (part === undefined) yield;
        else if (part.kind === "turn") yield part.turn;
    const { omitted } = yield* this.#contextAt(headId);
    for (const { reason, fromSeq, toSeq } of omitted) yield* this.#omit(reason, fromSeq, toSeq);
  }

  /** Thinking is returned even when no provider would accept it, because some formats store it for people. */
  thinkingOf({ recordId, lastRecordId }: AssistantTurn): readonly NeutralThinking[] {
    const messages = this.#inOrder;
    const last = this.#placeOf(lastRecordId);
    let first = this.#placeOf(recordId);
    // A part that holds only thinking gives no turn. Its thinking belongs to the next part of the reply.
    while (first > 0 && isSameReply(messages[first - 1], messages[first])) first -= 1;
    const found: NeutralThinking[] = [];
    for (const message of first < 0 ? [] : messages.slice(first, last + 1)) {
      this.#shown.add(message.recordId);
      for (const block of message.content) if (block.type === "thinking") found.push(block);
    }
    return found;
  }

  /** Thinking of these records was not written, because it belongs to no turn. */
  unshownThinking(): readonly string[] {
    return this.#inOrder.flatMap(({ recordId, content }) =>
      content.some(({ type }) => type === "thinking") && !this.#shown.has(recordId) ? [recordId] : [],
    );
  }

  /** A compacted context begins with its summary, and these turns follow. */
  *keptTurns(compactionId: string): Steps<readonly ReplayTurn[]> {
    const turns = yield* this.#rendered(compactionId);
    const last = turns.at(-1);
    const isOpen = last?.role === "user" && last.blocks.length === 0;
    // The real answers to these calls follow the compaction.
    const answered = isOpen ? withoutCreatedAnswers(turns) : turns;
    const seq = this.#stored.get(compactionId)?.seq ?? 0;
    const isWanted = ({ recordId, callId }: ReplayResult): boolean =>
      recordId !== null || !this.#isAnsweredAfter(callId, seq);
    return answered.flatMap((turn) => (turn.role === "user" ? (withResults(turn, isWanted) ?? []) : turn));
  }

  #noteResult(seq: number, message: unknown): void {
    if (isFields(message) && message["role"] === "toolResult") this.#resultSeqs.set(asText(message["toolCallId"]), seq);
  }

  #isAnsweredAfter(callId: string, seq: number): boolean {
    return (this.#resultSeqs.get(callId) ?? 0) > seq;
  }

  /** A compaction may name a side record or a record of another branch. The context shows what it keeps then. */
  *#keptBy(compactionId: string): Steps<readonly string[]> {
    const { messages } = yield* this.#contextAt(compactionId);
    return messages.filter(({ role }) => role !== "compactionSummary").map(({ recordId }) => recordId);
  }

  #placeOf(recordId: string | null): number {
    return recordId === null ? -1 : (this.#places.get(recordId) ?? -1);
  }

  /** The last context is kept, because the report of omitted records needs the same one. */
  *#contextAt(headId: string | null): Steps<Context> {
    if (this.#context?.headId !== headId)
      this.#context = { headId, context: yield* inFewerSteps(contextSteps(this.#session.records, { headId })) };
    return this.#context.context;
  }

  *#rendered(headId: string, hasSummary = false): Steps<readonly ReplayTurn[]> {
    const context = yield* this.#contextAt(headId);
    for (const message of context.messages) this.#messages.set(message.recordId, message);
    this.#inOrder = context.messages;
    this.#places = new Map(context.messages.map(({ recordId }, place) => [recordId, place]));
    const waitingIds = new Set(
      this.#keepsWaiting ? context.messages.filter(isWaiting).map(({ recordId }) => recordId) : [],
    );
    const messages = context.messages
      .filter(({ role }) => hasSummary || role !== "compactionSummary")
      .map((message) => (waitingIds.has(message.recordId) ? asSent(message) : message));
    const mapping: ProviderMapping<ReplayTurn> = {
      rules: this.#rules,
      turn: (turn) => [turn],
      system: () => ({ field: null, first: [] }),
    };
    const rendering = yield* inFewerSteps(renderSteps({ ...context, messages }, mapping, {}));
    const isCreated = ({ rule, recordId }: Repair): boolean =>
      rule === "result-synthesized" && waitingIds.has(recordId);
    yield* this.#losses.repairs(
      rendering.repairs.filter((repair) => !this.#isInFile(repair.recordId) && !isCreated(repair)),
    );
    return waitingIds.size === 0 ? rendering.messages : withoutCreatedAnswers(rendering.messages);
  }

  /**
   * Yields the turns of a context that were not written before.
   * @param keptIds records that a compaction at the end of the context keeps; open calls among them are answered after
   * it
   */
  *#turnsUpTo(
    headId: string | null,
    keptIds: ReadonlySet<string> = nothing,
    seq: number = Infinity,
  ): Generator<ConversationPart | undefined> {
    if (headId === null) return;
    // These answers were created for calls that the file leaves open. They are needed only when a new turn follows.
    let answers: ReplayTurn[] = [];
    const turns = yield* this.#rendered(headId);
    const openIds = openCalls(turns, keptIds, (callId) => this.#isAnsweredAfter(callId, seq));
    for (const given of turns) {
      yield;
      const { turn: left, isInFile } = this.#withoutFile(given);
      if (isInFile) answers = [];
      const turn = left === null ? null : this.#unwritten(left, openIds);
      if (turn === null) continue;
      if (this.#session.writtenSeq !== undefined && idsOf(turn).length === 0) {
        answers.push(turn);
        continue;
      }
      for (const one of [...answers, turn]) {
        this.#noteWritten(one);
        yield { kind: "turn", turn: one };
      }
      answers = [];
    }
  }

  /**
   * Returns the part of a turn that was not written yet, or null when there is none. Each call gets one answer, a real
   * or a created one.
   */
  #unwritten(turn: ReplayTurn, openIds: ReadonlySet<string>): ReplayTurn | null {
    const ids = idsOf(turn);
    if (
      ids.length > 0 &&
      ids.every((id) => this.#written.has(id)) &&
      (turn.role !== "user" || turn.results.length === 0)
    )
      return null;
    if (turn.role === "assistant") return this.#unwrittenReply(turn);
    if (turn.role !== "user" || turn.results.length === 0) return turn;
    const isSaid = turn.recordId !== null && !this.#written.has(turn.recordId);
    const isNew = ({ recordId, callId }: ReplayResult): boolean =>
      recordId === null ? !openIds.has(callId) && !this.#answered.has(callId) : !this.#written.has(recordId);
    return withResults(isSaid ? turn : { ...turn, blocks: [] }, isNew);
  }

  /**
   * A reply whose call is open was written before a compaction. The calls behind the compaction join it in the context,
   * because their results follow both.
   */
  #unwrittenReply(turn: AssistantTurn): AssistantTurn {
    const isWhole = this.#replacesReplies || turn.recordId === null;
    const count = isWhole ? undefined : this.#blockCounts.get(turn.recordId);
    return count === undefined ? turn : { ...turn, recordId: turn.lastRecordId, blocks: turn.blocks.slice(count) };
  }

  #noteWritten(turn: ReplayTurn): void {
    for (const id of idsOf(turn)) this.#written.add(id);
    if (turn.role === "assistant" && turn.recordId !== null) this.#blockCounts.set(turn.recordId, turn.blocks.length);
    for (const { callId } of turn.role === "user" ? turn.results : []) this.#answered.add(callId);
  }

  /** Null means that the file already holds the whole turn. */
  #withoutFile(turn: ReplayTurn): { readonly turn: ReplayTurn | null; readonly isInFile: boolean } {
    const isInFile = idsOf(turn).some((id) => this.#isInFile(id));
    if (!isInFile) return { turn, isInFile };
    if (turn.role !== "user") return { turn: null, isInFile };
    const results = turn.results.filter(({ recordId }) => recordId === null || !this.#isInFile(recordId));
    return { turn: results.length === 0 ? null : { ...turn, results, blocks: [] }, isInFile };
  }

  #isInFile(recordId: string): boolean {
    return this.#isWritten(this.#stored.get(recordId)?.seq ?? 0);
  }

  #isWritten(seq: number): boolean {
    return seq > 0 && seq <= (this.#session.writtenSeq ?? 0);
  }

  *#omit(reason: Parameters<LossLog["omitted"]>[0], fromSeq: number, toSeq: number): Steps<void> {
    const { records } = this.#session;
    let lost = 0;
    for (let at = this.#placeOfSeq(fromSeq); at < records.length; at++) {
      const { seq, side, type } = records[at] as StoredRecord;
      if (seq > toSeq) break;
      if (!side && type !== "custom" && !this.#isWritten(seq)) lost += 1;
      yield;
    }
    this.#losses.omitted(reason, lost);
  }

  /** The search is binary, because the records are in order of seq. */
  #placeOfSeq(seq: number): number {
    const { records } = this.#session;
    let [low, high] = [0, records.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((records[middle] as StoredRecord).seq < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBoundary({ type, side, record }: StoredRecord): boolean {
  return !side && (type === "compaction" || type === "reset") && findRecordProblem(record) === null;
}

function isSameReply(one: NeutralMessage | undefined, other: NeutralMessage | undefined): boolean {
  if (one?.role !== "assistant" || other?.role !== "assistant") return false;
  return one.responseId !== null && one.responseId === other.responseId;
}

/** Null means that the branch does not have the first kept record. */
function keptIds(path: readonly StoredRecord[], at: number): readonly string[] | null {
  const firstId = path[at]?.record["firstKeptEntryId"];
  const from = path.slice(0, at).findIndex(({ id }) => id === firstId);
  return from < 0 ? null : path.slice(from, at).map(({ id }) => id);
}

const nothing: ReadonlySet<string> = new Set();

function withResults(turn: UserTurn, isWanted: (result: ReplayResult) => boolean): UserTurn | null {
  const results = turn.results.filter(isWanted);
  return results.length === 0 && turn.blocks.length === 0 ? null : { ...turn, results };
}

/** Removes the answers that were created for the calls of the last reply. */
function withoutCreatedAnswers(turns: readonly ReplayTurn[]): readonly ReplayTurn[] {
  const last = turns.at(-1);
  if (last?.role !== "user") return turns;
  const answered = withResults(last, ({ recordId }) => recordId !== null);
  return [...turns.slice(0, -1), ...(answered === null ? [] : [answered])];
}

function isWaiting(message: NeutralMessage): boolean {
  return message.role === "assistant" && message.isWaiting === true;
}

function asSent(message: NeutralMessage): NeutralMessage {
  if (message.role !== "assistant") return message;
  const { isWaiting: _isWaiting, ...sent } = message;
  return sent;
}

function idsOf(turn: ReplayTurn): readonly string[] {
  const ids = [
    turn.recordId,
    ...(turn.role === "assistant" ? [turn.lastRecordId] : []),
    ...(turn.role === "user" ? turn.results.map(({ recordId }) => recordId) : []),
  ];
  return ids.filter((id) => id !== null);
}

/** A result may hold data that a model does not get. Undefined means that it holds none. */
export function detailsOf(origin: TurnOrigin | null): unknown {
  const message = origin?.stored.record["message"];
  return typeof message === "object" && message !== null
    ? (message as { readonly details?: unknown }).details
    : undefined;
}

/** A record without a time takes the time of the line before. */
export function timeOf(stored: StoredRecord | undefined, before: string): string {
  const tsMs = stored?.tsMs ?? null;
  return tsMs !== null && tsMs > 0 ? new Date(tsMs).toISOString() : before;
}

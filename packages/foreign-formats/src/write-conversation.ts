import type { StoredRecord } from "@throughline/core";
import { findRecordProblem, inFewerSteps, type Steps } from "@throughline/core/internal";
import type { Context } from "@throughline/history";
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
import type { WrittenSession } from "./format-writer.ts";
import type { LossLog } from "./write-losses.ts";

/** A piece of a conversation, in the order it is written. */
export type ConversationPart =
  | { readonly kind: "turn"; readonly turn: ReplayTurn }
  /** A compacted context begins, with its summary. The messages that it keeps were written before. */
  | { readonly kind: "compaction"; readonly stored: StoredRecord; readonly keptIds: readonly string[] }
  /** An empty context begins. */
  | { readonly kind: "reset"; readonly stored: StoredRecord };

type UserTurn = Extract<ReplayTurn, { readonly role: "user" }>;

/** A block of thinking as a context has it. */
type NeutralThinking = Extract<NeutralBlock, { readonly type: "thinking" }>;

/** What stands in a record that a turn came from. */
export interface TurnOrigin {
  readonly stored: StoredRecord;
  /** Null where a context shows the record in no message of its own. */
  readonly message: NeutralMessage | null;
}

/**
 * The way of a session to its head, as turns that the target's provider takes. Every call is answered. What the provider
 * would refuse is left out or changed, and reported. Where only the end of a session was read, its way
 * begins there.
 */
export class WrittenConversation {
  readonly #session: WrittenSession;
  readonly #rules: ProviderRules;
  readonly #losses: LossLog;
  readonly #messages = new Map<string, NeutralMessage>();
  readonly #stored: ReadonlyMap<string, StoredRecord>;
  readonly #written = new Set<string>();
  /** Calls that a result was written for. */
  readonly #answered = new Set<string>();
  /** The context that was rendered last, and where its messages stand. */
  #inOrder: readonly NeutralMessage[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  #context: { readonly headId: string | null; readonly context: Context } | null = null;
  /** Records whose thinking was given. */
  readonly #shown = new Set<string>();

  constructor(session: WrittenSession, rules: ProviderRules, losses: LossLog) {
    this.#session = session;
    this.#rules = rules;
    this.#losses = losses;
    this.#stored = new Map(session.records.map((stored) => [stored.id, stored]));
  }

  /** The record of an id and its message; null for what was made up. */
  originOf(recordId: string | null): TurnOrigin | null {
    const stored = recordId === null ? undefined : this.#stored.get(recordId);
    if (stored === undefined) return null;
    return { stored, message: this.#messages.get(stored.id) ?? null };
  }

  /** All of the branch, with the compactions and resets on the way; undefined for each step of work that gives no part. */
  *wholeBranch(): Generator<ConversationPart | undefined> {
    const { records, headId } = this.#session;
    const { indexes } = yield* inFewerSteps(walkSteps(records, headId));
    const path = indexes.map((index) => records[index] as StoredRecord);
    for (const [at, stored] of path.entries()) {
      if (!isBoundary(stored) || this.#isWritten(stored.seq)) continue;
      const kept = stored.type === "reset" ? [] : keptIds(path, at);
      yield* this.#turnsUpTo(path[at - 1]?.id ?? null, new Set(kept));
      if (stored.type === "reset") yield { kind: "reset", stored };
      else yield { kind: "compaction", stored, keptIds: kept };
    }
    yield* this.#turnsUpTo(headId);
    const { omitted } = yield* this.#contextAt(headId);
    for (const { reason, fromSeq, toSeq } of omitted)
      if (reason !== "summarized" && reason !== "reset") yield* this.#omit(reason, fromSeq, toSeq);
  }

  /**
   * What a model would be sent now, its summary included; of a session that is in a file already, what was added. Undefined for
   * each step of work that gives no turn.
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

  /** The thinking of a reply as the log has it, also where no provider would take it back. */
  thinkingOf({ recordId, lastRecordId }: AssistantTurn): readonly NeutralThinking[] {
    const messages = this.#inOrder;
    const last = this.#placeOf(lastRecordId);
    let first = this.#placeOf(recordId);
    // A part that is thinking alone has no turn: it belongs to the next part of its reply.
    while (first > 0 && isSameReply(messages[first - 1], messages[first])) first -= 1;
    const found: NeutralThinking[] = [];
    for (const message of first < 0 ? [] : messages.slice(first, last + 1)) {
      this.#shown.add(message.recordId);
      for (const block of message.content) if (block.type === "thinking") found.push(block);
    }
    return found;
  }

  /** The records of the context whose thinking came with no turn. */
  unshownThinking(): readonly string[] {
    return this.#inOrder.flatMap(({ recordId, content }) =>
      content.some(({ type }) => type === "thinking") && !this.#shown.has(recordId) ? [recordId] : [],
    );
  }

  /** The turns that the context of a compaction begins with, behind its summary. */
  *keptTurns(compactionId: string): Steps<readonly ReplayTurn[]> {
    const turns = yield* this.#rendered(compactionId);
    // The answers to the last calls follow the compaction.
    const last = turns.at(-1);
    const isOpen = last?.role === "user" && last.blocks.length === 0;
    const answered = isOpen ? withResults(last, ({ recordId }) => recordId !== null) : (last ?? null);
    return [...turns.slice(0, -1), ...(answered === null ? [] : [answered])];
  }

  #placeOf(recordId: string | null): number {
    return recordId === null ? -1 : (this.#places.get(recordId) ?? -1);
  }

  /** The context of the record that was asked for last: the omitted records are those of the turns that were written. */
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
    const messages = context.messages.filter(({ role }) => hasSummary || role !== "compactionSummary");
    const mapping: ProviderMapping<ReplayTurn> = {
      rules: this.#rules,
      turn: (turn) => [turn],
      system: () => ({ field: null, first: [] }),
    };
    const rendering = yield* inFewerSteps(renderSteps({ ...context, messages }, mapping, {}));
    yield* this.#losses.repairs(rendering.repairs.filter(({ recordId }) => !this.#isInFile(recordId)));
    return rendering.messages;
  }

  /**
   * The turns of the context at a record that were not written before.
   * @param keptIds of a context that ends in a compaction: what that keeps. Calls among them that are open are answered behind it
   */
  *#turnsUpTo(headId: string | null, keptIds: ReadonlySet<string> = nothing): Generator<ConversationPart | undefined> {
    if (headId === null) return;
    // Made up for calls that the file leaves open: needed once something of ours follows.
    let answers: ReplayTurn[] = [];
    const turns = yield* this.#rendered(headId);
    const openIds = openCalls(turns, keptIds);
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

  /** The part of a turn that was not written yet; null when all of it was. A call gets one answer, a result or a made-up one. */
  #unwritten(turn: ReplayTurn, openIds: ReadonlySet<string>): ReplayTurn | null {
    const ids = idsOf(turn);
    if (turn.role !== "user" || turn.results.length === 0)
      return ids.length > 0 && ids.every((id) => this.#written.has(id)) ? null : turn;
    const isSaid = turn.recordId !== null && !this.#written.has(turn.recordId);
    const isNew = ({ recordId, callId }: ReplayResult): boolean =>
      recordId === null ? !openIds.has(callId) && !this.#answered.has(callId) : !this.#written.has(recordId);
    return withResults(isSaid ? turn : { ...turn, blocks: [] }, isNew);
  }

  #noteWritten(turn: ReplayTurn): void {
    for (const id of idsOf(turn)) this.#written.add(id);
    for (const { callId } of turn.role === "user" ? turn.results : []) this.#answered.add(callId);
  }

  /** What of a turn is not in the file; null when all of it is. */
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

  /** The first record from a seq on. */
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

/** The records before a compaction that its context begins with. */
function keptIds(path: readonly StoredRecord[], at: number): readonly string[] {
  const firstId = path[at]?.record["firstKeptEntryId"];
  const from = path.slice(0, at).findIndex(({ id }) => id === firstId);
  return from < 0 ? [] : path.slice(from, at).map(({ id }) => id);
}

const nothing: ReadonlySet<string> = new Set();

/** A turn with some of its results; null when nothing of it is left. */
function withResults(turn: UserTurn, isWanted: (result: ReplayResult) => boolean): UserTurn | null {
  const results = turn.results.filter(isWanted);
  return results.length === 0 && turn.blocks.length === 0 ? null : { ...turn, results };
}

/** The calls at the end of a context that nothing answers, and that a compaction keeps. */
function openCalls(turns: readonly ReplayTurn[], keptIds: ReadonlySet<string>): ReadonlySet<string> {
  const [reply, results] = turns.slice(-2);
  if (reply?.role !== "assistant" || results?.role !== "user" || results.blocks.length > 0) return nothing;
  if (reply.recordId === null || !keptIds.has(reply.recordId)) return nothing;
  return new Set(results.results.flatMap(({ recordId, callId }) => (recordId === null ? [callId] : [])));
}

function idsOf(turn: ReplayTurn): readonly string[] {
  const ids = [
    turn.recordId,
    ...(turn.role === "assistant" ? [turn.lastRecordId] : []),
    ...(turn.role === "user" ? turn.results.map(({ recordId }) => recordId) : []),
  ];
  return ids.filter((id) => id !== null);
}

/** What a result has beside what a model sees; undefined for nothing. */
export function detailsOf(origin: TurnOrigin | null): unknown {
  const message = origin?.stored.record["message"];
  return typeof message === "object" && message !== null
    ? (message as { readonly details?: unknown }).details
    : undefined;
}

/** The time of a record as lines state it; for a record without one, that of the line before. */
export function timeOf(stored: StoredRecord | undefined, before: string): string {
  const tsMs = stored?.tsMs ?? null;
  return tsMs !== null && tsMs > 0 ? new Date(tsMs).toISOString() : before;
}

import { madeUpTexts } from "./replay-rules.ts";
import type { RepairRule } from "./repair.ts";
import type { ReplayResult, ReplayTurn } from "./replay-turn.ts";

/** States from which record a part of a message comes. */
export interface MessageOrigin {
  /** States the record; null for a part that no record holds. */
  readonly recordId: string | null;
  /** Holds the id of the call that the part answers, as it is sent; null for other parts. */
  readonly callId: string | null;
  /** States why the part was added; null for a part of a record. */
  readonly rule: RepairRule | null;
}

const rulesOfTexts: ReadonlyMap<string, RepairRule> = new Map([
  [madeUpTexts.acknowledgement, "acknowledgement-added"],
  [madeUpTexts.bootstrap, "bootstrap-added"],
  [madeUpTexts.continuation, "continuation-added"],
  [madeUpTexts.replyAfterResults, "reply-added"],
]);

/** Collects the records of turns while they are assembled, and the origins of the messages that they become. */
export class MessageOrigins {
  /** Holds the origins of each message, in the order of its parts. A system prompt has none, and no place here. */
  readonly messages: (readonly MessageOrigin[])[] = [];
  readonly #recordsOf = new Map<ReplayTurn, Set<string>>();

  /** @param recordId null for blocks that no record holds, which add nothing */
  add(turn: ReplayTurn, recordId: string | null): void {
    if (recordId === null) return;
    const records = this.#recordsOf.get(turn);
    if (records === undefined) this.#recordsOf.set(turn, new Set([recordId]));
    else records.add(recordId);
  }

  /** Takes the next turn, and the number of messages that it became. */
  rendered(turn: ReplayTurn, messages: number): void {
    for (const origins of this.#of(turn, messages)) this.messages.push(origins);
  }

  /**
   * Returns the origins of each message of a turn. Providers give each result a message, all results one, or the whole
   * turn one; the blocks follow the results.
   */
  #of(turn: ReplayTurn, messages: number): readonly (readonly MessageOrigin[])[] {
    const own = this.#ownOf(turn);
    const results = turn.role === "user" ? turn.results.map(resultOrigin) : [];
    if (results.length === 0) return Array.from({ length: messages }, () => own);
    if (messages === 1) return [[...results, ...own]];
    const hasBlocks = turn.role === "user" && turn.blocks.length > 0;
    // Two messages without blocks are two results.
    if (messages === 2 && hasBlocks) return [results, own];
    return Array.from({ length: messages }, (_, at) => (at < results.length ? results.slice(at, at + 1) : own));
  }

  #ownOf(turn: ReplayTurn): readonly MessageOrigin[] {
    const records = this.#recordsOf.get(turn);
    if (records !== undefined) return Array.from(records, (recordId) => ({ recordId, callId: null, rule: null }));
    if (turn.role === "system" || (turn.role === "user" && turn.results.length > 0)) return [];
    const [block] = turn.blocks;
    const rule = block?.type === "text" ? (rulesOfTexts.get(block.text) ?? null) : null;
    return [{ recordId: null, callId: null, rule }];
  }
}

function resultOrigin({ recordId, callId }: ReplayResult): MessageOrigin {
  return { recordId, callId, rule: recordId === null ? "result-synthesized" : null };
}

import { IdList, withRoom } from "../packed-ids.ts";
import { Reply, ReplyTable } from "./reply-table.ts";
import { Compactions, type Compaction, type CompactionMetadata, type LineEntry } from "./compactions.ts";
import type { RecordBody, UnitRecords } from "../unit-records.ts";
import type { UnitPlace } from "../foreign-format.ts";

export interface ChainLink {
  readonly uuid: unknown;
  readonly parentUuid: unknown;
  /** The flag is set for every line of a sub-agent's own file, so it only separates the lines within one file. */
  readonly isSidechain: boolean;
  /**
   * A `reply` is a block of the model, and a `result` answers calls. A `prompt` is text of a person, and an `aside` is
   * the program's text beside it. A `note` belongs to a message and is none. A `boundary` begins a compacted context,
   * and a `summary` is the first text of that context.
   */
  readonly kind: "reply" | "result" | "prompt" | "aside" | "note" | "boundary" | "summary";
  readonly messageId: string | null;
  /** A result states the reply that holds one of its calls. */
  readonly answered: Reply | null;
  /** The program never continues from some lines, such as those of sub-agents or progress. */
  readonly mayEnd: boolean;
}

export interface ChainPlace {
  readonly id: string;
  readonly parentId: string | null;
  readonly reply: Reply | null;
  readonly isFurtherPart: boolean;
  readonly isOrphan: boolean;
  /**
   * These records restart the context before the line. An empty list means that the context of the parent continues.
   */
  readonly prelude: readonly RecordBody[];
}

/**
 * The flags mark lines. `leads` means that the path up from the line meets a message. `open` marks a boundary, or a
 * note on a boundary, that no message follows yet.
 */
const [leads, message, part, open, boundary] = [1, 2, 4, 8, 16] as const;

/**
 * The chain is the tree that `parentUuid` forms. It is read the way Claude Code reads it, from the newest line that
 * leads to a message up to a line without a parent. Each line holds one block, so a reply with parallel tool calls
 * branches at every call. Here such a reply and its results form one row, whichever line each of them names.
 */
export class LineChain {
  readonly #records: UnitRecords;
  readonly #ids: IdList;
  readonly #replies = new ReplyTable();
  /** The number counts from 1; 0 means that the line belongs to no reply. */
  #replyNumbers = new Int32Array(1024);
  /** The value is -1 for a line without a parent. */
  #parents = new Int32Array(1024);
  /** Each context is named by the number of its first line; 0 is the first context. */
  #contexts = new Int32Array(1024);
  #flags = new Uint8Array(1024);
  readonly #compactions: Compactions;
  /** These replies have a result that stands after a compaction, so the lines in between may need edits. */
  readonly #split = new Set<number>();
  #head = -1;
  /** Some files have no line that the program could continue from, so the newest message of any kind is the head. */
  #fallback = -1;
  #hasGap = false;

  constructor(records: UnitRecords) {
    this.#records = records;
    this.#ids = new IdList(records.ids);
    this.#compactions = new Compactions({
      parentOf: (index) => this.#parents[index] ?? -1,
      isMessage: (index) => this.#has(index, message),
      isReply: (index) => this.#has(index, part),
      replyOf: (index) => this.#replyNumbers[index] ?? 0,
      tipOf: (index) => this.#replyAt(index)?.tip ?? index,
      idOf: (index) => this.#ids.at(index),
      indexOf: (uuid) => this.#indexOf(uuid),
    });
  }

  get headId(): string | null {
    const index = this.#head >= 0 ? this.#head : this.#fallback;
    return this.#ids.at(index);
  }

  /**
   * Records that a line could not be read. A line that names the unreadable line as its parent then follows the line
   * before.
   */
  noteGap(): void {
    this.#hasGap = true;
  }

  has(uuid: unknown): uuid is string {
    return this.#indexOf(uuid) !== null;
  }

  replyOf(uuid: unknown): Reply | null {
    const index = this.#indexOf(uuid);
    return index === null ? null : this.#replyAt(index);
  }

  /** The line has no position in the tree. Lines that name it as their parent get its parent instead. */
  pass(uuid: unknown, parentUuid: unknown, place: UnitPlace): string {
    return this.#records.claim(uuid, place, this.#indexOf(parentUuid) ?? this.#head);
  }

  /**
   * Returns the compaction whose summary the line may be. Its boundary must be above the line without a message in
   * between.
   */
  compactionOf(parentUuid: unknown): Compaction | null {
    let index = this.#indexOf(parentUuid) ?? -1;
    while (this.#has(index, open) && !this.#has(index, boundary)) index = this.#parents[index] ?? -1;
    return this.#has(index, boundary) ? this.#compactions.at(index) : null;
  }

  idAt(line: number): string | null {
    return this.#ids.at(line);
  }

  /** The newest line must be the boundary of the compaction. */
  begin(metadata: CompactionMetadata): void {
    this.#compactions.begin(this.#ids.length - 1, metadata);
  }

  /** The newest line must be the summary of the compaction. `body` begins the compacted context. */
  complete(compaction: Compaction, body: RecordBody): void {
    const index = this.#ids.length - 1;
    const { kept } = compaction;
    if (kept !== null && !kept.isAtBoundary) this.#parents[index] = kept.tip;
    this.#compactions.complete(compaction, index, body);
  }

  add(link: ChainLink, place: UnitPlace): ChainPlace {
    const index = this.#ids.length;
    const stated = this.#statedParent(link);
    const above = stated === null ? null : this.#replyAt(stated);
    const joined = this.#joined(link, above, stated);
    const isOrphan = stated === null && typeof link.parentUuid === "string";
    // A result may stand after a compaction that kept its call. It then follows the parent that it states.
    const isBehind = joined !== null && stated !== null && this.#contexts[joined.tip] !== this.#contexts[stated];
    const row = joined === above || !isBehind ? joined : null;
    if (row !== joined && joined !== null) this.#split.add(joined.number);
    const nearest = row?.tip ?? above?.tip ?? stated ?? this.#withoutParent(link, isOrphan);
    const entered = this.#entered(nearest, link);
    const { parent } = entered;
    const prelude = [...entered.prelude, ...this.#editsInRow(above, stated)];
    const isNew = joined === null && link.kind === "reply";
    const reply = isNew ? this.#replies.add(link.messageId, link.isSidechain, index) : joined;
    if (joined !== null) joined.tip = index;
    if (joined !== null && link.kind === "result") joined.hasResults = true;
    const id = this.#records.claim(link.uuid, place, index);
    const isMessage = link.kind !== "note" && link.kind !== "boundary";
    const doesLead = isMessage || (stated !== null && this.#has(stated, leads));
    const isOpen = link.kind === "boundary" || (link.kind === "note" && this.#has(parent, open));
    this.#ids.push(id);
    this.#replyNumbers = withRoom(this.#replyNumbers, index + 1);
    this.#replyNumbers[index] = reply === null ? 0 : reply.number + 1;
    this.#parents = withRoom(this.#parents, index + 1);
    this.#parents[index] = parent;
    this.#contexts = withRoom(this.#contexts, index + 1);
    const begins = entered.prelude.length > 0 || link.kind === "summary";
    this.#contexts[index] = begins ? index + 1 : (this.#contexts[parent] ?? 0);
    this.#flags = withRoom(this.#flags, index + 1);
    this.#flags[index] =
      (doesLead ? leads : 0) |
      (isMessage ? message : 0) |
      (link.kind === "reply" ? part : 0) |
      (isOpen ? open : 0) |
      (link.kind === "boundary" ? boundary : 0);
    if (doesLead) {
      if (link.mayEnd) this.#head = index;
      if (isMessage) this.#fallback = index;
    }
    const isFurtherPart = link.kind === "reply" && joined !== null;
    return { id, parentId: this.#ids.at(parent), reply, isFurtherPart, isOrphan, prelude };
  }

  /**
   * Returns the line's effective parent. Messages that a compaction kept stand before its boundary. A line that names
   * one of them afterwards belongs to the compacted context. A line that follows a boundary without its summary begins
   * an empty context.
   */
  #entered(parent: number, { kind }: ChainLink): LineEntry {
    if (kind === "summary") return { parent, prelude: [] };
    if (this.#has(parent, open) && kind !== "note") return { parent, prelude: this.#compactions.emptied(parent) };
    return this.#compactions.entryAt(parent) ?? { parent, prelude: [] };
  }

  /**
   * A line that continues a reply after a compaction did not see the lines between the reply and its results. Edits
   * remove those lines from its context.
   */
  #editsInRow(above: Reply | null, stated: number | null): readonly RecordBody[] {
    if (above === null || stated === null || !this.#split.has(above.number)) return [];
    const between: number[] = [];
    for (let at = above.tip; at > stated; at = this.#parents[at] ?? -1)
      if (this.#has(at, message) && this.#replyNumbers[at] !== above.number + 1) between.push(at);
    return this.#compactions.editsOfLines(between.toReversed());
  }

  #has(index: number, flag: number): boolean {
    return ((this.#flags[index] ?? 0) & flag) !== 0;
  }

  /** The newest line gave several records, so later lines must follow the last one. */
  extend(lastId: string): void {
    this.#ids.replaceLast(lastId);
  }

  #joined(link: ChainLink, above: Reply | null, stated: number | null): Reply | null {
    const { kind, isSidechain, messageId, answered } = link;
    // A result follows its stated parent when the compaction before it did not keep the call, because the two contexts
    // differ.
    const isNear = ({ tip }: Reply): boolean => {
      if (stated === null || this.#contexts[tip] === this.#contexts[stated]) return true;
      return this.#compactions.keeps((this.#contexts[stated] ?? 0) - 1, tip);
    };
    const isSame = (reply: Reply | null): reply is Reply => reply !== null && reply.isSidechain === isSidechain;
    switch (kind) {
      case "reply":
        return isSame(above) && messageId !== null && above.messageId === messageId ? above : null;
      case "result":
        return isSame(above) ? above : isSame(answered) && isNear(answered) ? answered : null;
      case "note":
        return isSame(above) ? above : null;
      case "aside":
        // An aside after results belongs to them. After an answer without results, a person may continue from another
        // line, so the aside stays separate.
        return isSame(above) && above.hasResults ? above : null;
      default:
        return null;
    }
  }

  /** The output of a running program has ids and no parents, so each line follows the line before. */
  #statedParent({ uuid, parentUuid }: ChainLink): number | null {
    if (parentUuid === undefined && typeof uuid === "string" && this.#head >= 0) return this.#head;
    return this.#indexOf(parentUuid);
  }

  /**
   * A line whose `parentUuid` is null is a root, and so is a line whose parent is in another file. After an unreadable
   * line the missing parent may be that line, so the line follows the head.
   */
  #withoutParent({ uuid, kind }: ChainLink, isOrphan: boolean): number {
    const isLoose = typeof uuid !== "string" || kind === "boundary" || (isOrphan && this.#hasGap);
    return isLoose ? this.#head : -1;
  }

  #replyAt(index: number): Reply | null {
    const number = this.#replyNumbers[index] ?? 0;
    return number === 0 ? null : new Reply(this.#replies, number - 1);
  }

  #indexOf(uuid: unknown): number | null {
    if (typeof uuid !== "string") return null;
    const index = this.#records.numberOf(uuid);
    return index === undefined || index < 0 ? null : index;
  }
}

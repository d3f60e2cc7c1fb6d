import { IdList, withRoom } from "../packed-ids.ts";
import { Reply, ReplyTable } from "./reply-table.ts";
import { Compactions, type Compaction, type CompactionMetadata, type LineEntry } from "./compactions.ts";
import type { RecordBody, UnitRecords } from "../unit-records.ts";
import type { UnitPlace } from "../foreign-format.ts";

/** What a line says of its place. */
export interface ChainLink {
  readonly uuid: unknown;
  readonly parentUuid: unknown;
  /** Main lines of a sub-agent's own file count as others do. */
  readonly isSidechain: boolean;
  /**
   * `reply`: a block of the model's. `result`: answers calls. `prompt`: what a person said.
   * `aside`: what the program said beside it. `note`: hangs on a message and is none. `boundary`: begins a compacted context.
   * `summary`: what the compacted context begins with.
   */
  readonly kind: "reply" | "result" | "prompt" | "aside" | "note" | "boundary" | "summary";
  /** Of a reply. */
  readonly messageId: string | null;
  /** Of a result: the reply that made one of its calls. */
  readonly answered: Reply | null;
  /** Whether the program may continue from it. */
  readonly mayEnd: boolean;
}

/** Where a line hangs. */
export interface ChainPlace {
  readonly id: string;
  readonly parentId: string | null;
  /** Of a reply's line, and of what hangs on it. */
  readonly reply: Reply | null;
  /** Whether the line continues a reply that an earlier line began. */
  readonly isFurtherPart: boolean;
  /** Whether the parent it names is not in the file. */
  readonly isOrphan: boolean;
  /** The records before the line, for a context that begins again here. Empty: the context of its parent continues. */
  readonly prelude: readonly RecordBody[];
}

/** Marks of a line. `leads`: the way up from it meets a message. `open`: a boundary, or a note on one that no message follows. */
const [leads, message, part, open, boundary] = [1, 2, 4, 8, 16] as const;

/**
 * The tree of lines that `parentUuid` makes, as Claude Code follows it: from the newest line that leads to a message, up
 * to a line without a parent. Lines are one block each, so a reply whose tools ran side by side branches at every call.
 * Here such a reply and its results are one row, whichever line each of them names.
 */
export class LineChain {
  readonly #records: UnitRecords;
  readonly #ids: IdList;
  readonly #replies = new ReplyTable();
  /** The number of the reply that each line belongs to, from 1; 0 for none. */
  #replyNumbers = new Int32Array(1024);
  /** The line that each line hangs on; -1 for none. */
  #parents = new Int32Array(1024);
  /** The compacted context that each line belongs to, by the number of its first line; 0 for the first context. */
  #contexts = new Int32Array(1024);
  #flags = new Uint8Array(1024);
  readonly #compactions: Compactions;
  /** Replies with a result that stands behind a compaction. */
  readonly #split = new Set<number>();
  #head = -1;
  /** The newest message of any kind, for files in which no other line counts. */
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

  /** Says that a line could not be read: what names it as its parent hangs on the line before it instead. */
  noteGap(): void {
    this.#hasGap = true;
  }

  /** Whether a line of that id was there. */
  has(uuid: unknown): uuid is string {
    return this.#indexOf(uuid) !== null;
  }

  /** The reply that a line belongs to. */
  replyOf(uuid: unknown): Reply | null {
    const index = this.#indexOf(uuid);
    return index === null ? null : this.#replyAt(index);
  }

  /** A line that has no place in the tree: what names it as its parent hangs where it hangs. */
  pass(uuid: unknown, parentUuid: unknown, place: UnitPlace): string {
    return this.#records.claim(uuid, place, this.#indexOf(parentUuid) ?? this.#head);
  }

  /** The compaction whose summary a line may be: its boundary is above it, and no message between. */
  compactionOf(parentUuid: unknown): Compaction | null {
    let index = this.#indexOf(parentUuid) ?? -1;
    while (this.#has(index, open) && !this.#has(index, boundary)) index = this.#parents[index] ?? -1;
    return this.#has(index, boundary) ? this.#compactions.at(index) : null;
  }

  /** The last record of a line, by its number. */
  idAt(line: number): string | null {
    return this.#ids.at(line);
  }

  /** Takes what the newest line, a boundary, says of its compaction. */
  begin(metadata: CompactionMetadata): void {
    this.#compactions.begin(this.#ids.length - 1, metadata);
  }

  /** Says that the newest line is the summary of a compaction, and which record begins its context. */
  complete(compaction: Compaction, body: RecordBody): void {
    const index = this.#ids.length - 1;
    const { kept } = compaction;
    if (kept !== null && !kept.isAtBoundary) this.#parents[index] = kept.tip;
    this.#compactions.complete(compaction, index, body);
  }

  /** A line of the tree. */
  add(link: ChainLink, place: UnitPlace): ChainPlace {
    const index = this.#ids.length;
    const stated = this.#statedParent(link);
    const above = stated === null ? null : this.#replyAt(stated);
    const joined = this.#joined(link, above, stated);
    const isOrphan = stated === null && typeof link.parentUuid === "string";
    // Behind the compaction that kept its call, a result hangs where it says.
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
   * The parent that a line really hangs on. The messages that a compaction kept stand before its boundary, and a line that hangs
   * there afterwards belongs to the compacted context. A line that hangs on a boundary without its summary begins an empty one.
   */
  #entered(parent: number, { kind }: ChainLink): LineEntry {
    if (kind === "summary") return { parent, prelude: [] };
    if (this.#has(parent, open) && kind !== "note") return { parent, prelude: this.#compactions.emptied(parent) };
    return this.#compactions.entryAt(parent) ?? { parent, prelude: [] };
  }

  /** Edits for lines between a reply and its results behind a compaction: a line that continues the reply did not see them. */
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

  /** Says that the newest line stands for several records, of which this is the last. */
  extend(lastId: string): void {
    this.#ids.replaceLast(lastId);
  }

  /** The reply whose row the line continues. */
  #joined(link: ChainLink, above: Reply | null, stated: number | null): Reply | null {
    const { kind, isSidechain, messageId, answered } = link;
    // Behind a compaction that did not keep the call, its result hangs where it says.
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
        // Behind results it belongs to them; behind an answer a person may take another way than the one it is on.
        return isSame(above) && above.hasResults ? above : null;
      default:
        return null;
    }
  }

  /** The output of a running program has ids and names no parents: each line hangs on the one before. */
  #statedParent({ uuid, parentUuid }: ChainLink): number | null {
    if (parentUuid === undefined && typeof uuid === "string" && this.#head >= 0) return this.#head;
    return this.#indexOf(parentUuid);
  }

  /** A line whose `parentUuid` is null is a root, and so is one whose parent is in another file. One behind a gap is not. */
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

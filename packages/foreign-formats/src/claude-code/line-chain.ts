import { IdList, withRoom } from "../packed-ids.ts";
import { Reply, ReplyTable } from "./reply-table.ts";
import type { UnitRecords } from "../unit-records.ts";
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
   */
  readonly kind: "reply" | "result" | "prompt" | "aside" | "note" | "boundary";
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
}

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
  /** Whether the way up from the line meets a message. */
  #leads = new Uint8Array(1024);
  #head = -1;
  /** The newest message of any kind, for files in which no other line counts. */
  #fallback = -1;
  #hasGap = false;

  constructor(records: UnitRecords) {
    this.#records = records;
    this.#ids = new IdList(records.ids);
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

  /** A line of the tree. */
  add(link: ChainLink, place: UnitPlace): ChainPlace {
    const index = this.#ids.length;
    const stated = this.#indexOf(link.parentUuid);
    const above = stated === null ? null : this.#replyAt(stated);
    const joined = this.#joined(link, above);
    const isOrphan = stated === null && typeof link.parentUuid === "string";
    const parent = joined?.tip ?? above?.tip ?? stated ?? this.#withoutParent(link, isOrphan);
    const isNew = joined === null && link.kind === "reply";
    const reply = isNew ? this.#replies.add(link.messageId, link.isSidechain, index) : joined;
    if (joined !== null) joined.tip = index;
    if (joined !== null && link.kind === "result") joined.hasResults = true;
    const id = this.#records.claim(link.uuid, place, index);
    const isMessage = link.kind !== "note" && link.kind !== "boundary";
    this.#ids.push(id);
    this.#replyNumbers = withRoom(this.#replyNumbers, index + 1);
    this.#replyNumbers[index] = reply === null ? 0 : reply.number + 1;
    this.#leads = withRoom(this.#leads, index + 1);
    this.#leads[index] = isMessage || (stated !== null && this.#leads[stated] === 1) ? 1 : 0;
    if (this.#leads[index] === 1) {
      if (link.mayEnd) this.#head = index;
      if (isMessage) this.#fallback = index;
    }
    const isFurtherPart = link.kind === "reply" && joined !== null;
    return { id, parentId: this.#ids.at(parent), reply, isFurtherPart, isOrphan };
  }

  /** Says that the newest line stands for several records, of which this is the last. */
  extend(lastId: string): void {
    this.#ids.replaceLast(lastId);
  }

  /** The reply whose row the line continues. */
  #joined(link: ChainLink, above: Reply | null): Reply | null {
    const { kind, isSidechain, messageId, answered } = link;
    const isSame = (reply: Reply | null): reply is Reply => reply !== null && reply.isSidechain === isSidechain;
    switch (kind) {
      case "reply":
        return isSame(above) && messageId !== null && above.messageId === messageId ? above : null;
      case "result":
        return isSame(above) ? above : isSame(answered) ? answered : null;
      case "note":
        return isSame(above) ? above : null;
      case "aside":
        // Behind results it belongs to them; behind an answer a person may take another way than the one it is on.
        return isSame(above) && above.hasResults ? above : null;
      default:
        return null;
    }
  }

  /** A line without `parentUuid` is a root, and so is one whose parent is in another file. One behind a gap is not. */
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

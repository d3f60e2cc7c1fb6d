import { withRoom } from "../packed-ids.ts";

/**
 * The program writes the lines of a reply one after another. No line continues a reply that is this many replies old,
 * so its id is dropped.
 */
const mostMessageIds = 4096;
const [sidechain, results] = [1, 2];

/** A reply holds all lines of one message id, and the lines that belong to them until the conversation continues. */
export class Reply {
  readonly number: number;
  readonly #table: ReplyTable;

  constructor(table: ReplyTable, number: number) {
    this.#table = table;
    this.number = number;
  }

  get messageId(): string | null {
    return this.#table.messageIds.get(this.number) ?? null;
  }

  get isSidechain(): boolean {
    return this.#hasFlag(sidechain);
  }

  get hasResults(): boolean {
    return this.#hasFlag(results);
  }

  set hasResults(has: boolean) {
    const flags = this.#table.flags[this.number] ?? 0;
    this.#table.flags[this.number] = has ? flags | results : flags & ~results;
  }

  /**
   * The tip is the newest line of the reply. Lines that continue the conversation follow it, whichever line of the
   * reply they name.
   */
  get tip(): number {
    return this.#table.tips[this.number] ?? -1;
  }

  set tip(line: number) {
    this.#table.tips[this.number] = line;
  }

  get outputTokens(): number {
    return this.#table.tokens[this.number] ?? 0;
  }

  set outputTokens(tokens: number) {
    this.#table.tokens[this.number] = tokens;
  }

  #hasFlag(flag: number): boolean {
    return ((this.#table.flags[this.number] ?? 0) & flag) !== 0;
  }
}

/** A session may have hundreds of thousands of replies, so typed arrays hold them in 13 bytes each. */
export class ReplyTable {
  tips: Int32Array<ArrayBuffer> = new Int32Array(256);
  flags: Uint8Array<ArrayBuffer> = new Uint8Array(256);
  tokens: Float64Array<ArrayBuffer> = new Float64Array(256);
  readonly messageIds: Map<number, string> = new Map();
  #count = 0;

  add(messageId: string | null, isSidechain: boolean, tip: number): Reply {
    const number = this.#count;
    this.#count += 1;
    this.tips = withRoom(this.tips, this.#count);
    this.flags = withRoom(this.flags, this.#count);
    this.tokens = withRoom(this.tokens, this.#count);
    this.tips[number] = tip;
    this.flags[number] = isSidechain ? sidechain : 0;
    if (messageId !== null) this.messageIds.set(number, messageId);
    this.messageIds.delete(number - mostMessageIds);
    return new Reply(this, number);
  }
}

/** The positions are byte offsets in the file, so that a caller can read one member without the rest. */
interface IndexMember {
  readonly key: string;
  readonly fromBytes: number;
  readonly toBytes: number;
}

/** Finds the members of an index chunk by chunk, for an index that is too large for memory. */
interface IndexMemberScanner {
  /** Returns the members that end in this chunk. */
  push(chunk: Uint8Array): readonly IndexMember[];
  /** True when the chunks form one whole object: brackets and quotes close, and no other text is beside the object. */
  readonly isWhole: boolean;
  /**
   * The caller may free all bytes before this offset. It is the start of an unfinished value, else the end of the
   * chunks.
   */
  readonly neededFromBytes: number;
}

const quoteByte = 0x22;
const backslash = 0x5c;
const opening: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const closing: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const spaces: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * The scanner reads brackets, quotes, colons and commas only. A value that is not JSON fails later, when it is parsed
 * alone.
 */
export function createIndexMemberScanner(): IndexMemberScanner {
  return new MemberScanner();
}

type Place = "before" | "key" | "colon" | "value" | "after" | "wrong";

class MemberScanner implements IndexMemberScanner {
  #place: Place = "before";
  #at = 0;
  /** A comma or a brace ends the value only at depth 0. */
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  /** The bytes of the current key are collected, because keys are short. */
  #keyBytes: number[] = [];
  #key = "";
  #valueFrom = 0;
  #hasMember = false;
  #needsMember = false;

  get isWhole(): boolean {
    return this.#place === "after";
  }

  get neededFromBytes(): number {
    return this.#place === "value" ? this.#valueFrom : this.#at;
  }

  push(chunk: Uint8Array): readonly IndexMember[] {
    const members: IndexMember[] = [];
    for (const byte of chunk) {
      const member = this.#take(byte);
      if (member !== null) members.push(member);
      this.#at += 1;
    }
    return members;
  }

  #take(byte: number): IndexMember | null {
    if (this.#isText) {
      this.#takeText(byte);
      return null;
    }
    if (this.#place === "value") return this.#takeValue(byte);
    // A byte order mark may precede the object and is skipped.
    if (spaces.has(byte) || (this.#place === "before" && this.#at < 3 && byte >= 0x80)) return null;
    if (this.#place === "before" && byte === 0x7b) this.#place = "key";
    else if (this.#place === "key" && byte === quoteByte && (!this.#hasMember || this.#needsMember)) this.#beginKey();
    else if (this.#place === "key" && byte === 0x2c && this.#hasMember && !this.#needsMember) this.#needsMember = true;
    else if (this.#place === "key" && byte === 0x7d && !this.#needsMember) this.#place = "after";
    else if (this.#place === "colon" && byte === 0x3a) {
      this.#place = "value";
      this.#valueFrom = this.#at + 1;
    } else this.#place = "wrong";
    return null;
  }

  #beginKey(): void {
    this.#isText = true;
    this.#keyBytes = [quoteByte];
  }

  #takeText(byte: number): void {
    if (this.#place === "key") this.#keyBytes.push(byte);
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === backslash) this.#isEscaped = true;
    else if (byte === quoteByte) {
      this.#isText = false;
      if (this.#place === "key") this.#endKey();
    }
  }

  #endKey(): void {
    try {
      this.#key = String(JSON.parse(Buffer.from(this.#keyBytes).toString("utf8")));
      this.#place = "colon";
      this.#needsMember = false;
    } catch {
      // The key is not JSON text. The reader of the whole file reports the problem.
      this.#place = "wrong";
    }
  }

  #takeValue(byte: number): IndexMember | null {
    if (byte === quoteByte) this.#isText = true;
    else if (opening.has(byte)) this.#depth += 1;
    else if (closing.has(byte) && this.#depth > 0) this.#depth -= 1;
    else if (this.#depth === 0 && (byte === 0x2c || byte === 0x7d)) {
      const member = { key: this.#key, fromBytes: this.#valueFrom, toBytes: this.#at };
      this.#hasMember = true;
      this.#needsMember = byte === 0x2c;
      this.#place = byte === 0x2c ? "key" : "after";
      return member;
    }
    return null;
  }
}

/** Where one member of an index stands, in bytes of the file. */
interface IndexMember {
  readonly key: string;
  readonly fromBytes: number;
  readonly toBytes: number;
}

/** Finds the members of an index that is too large to be held, chunk by chunk. */
interface IndexMemberScanner {
  /** The members that end in this chunk. */
  push(chunk: Uint8Array): readonly IndexMember[];
  /** Whether what was pushed is one whole object: brackets and quotes that close, and nothing else beside it. */
  readonly isWhole: boolean;
  /** Where the value begins that has not ended yet, else what was pushed ends: nothing before is needed any more. */
  readonly neededFromBytes: number;
}

const quoteByte = 0x22;
const backslash = 0x5c;
const opening: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const closing: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const spaces: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Looks at brackets, quotes, colons and commas only. Whether a value is JSON is found out when it is parsed by itself.
 */
export function createIndexMemberScanner(): IndexMemberScanner {
  return new MemberScanner();
}

type Place = "before" | "key" | "colon" | "value" | "after" | "wrong";

class MemberScanner implements IndexMemberScanner {
  #place: Place = "before";
  #at = 0;
  /** Brackets that are open within a value. */
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  /** The bytes of the key that is being read; keys are short. */
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
    // A byte order mark is no part of the object.
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
      // A key that is no JSON text: whoever reads the whole file says what is wrong with it.
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

const chunkCharacters = 64 * 1024;

/**
 * Collects a text that arrives in pieces and joins them in chunks. Repeated concatenation would keep every piece alive,
 * and millions of small pieces take many times the memory of the text.
 */
export class GrowingText {
  readonly #chunks: string[] = [];
  #pieces: string[] = [];
  #piecesLength = 0;
  length = 0;

  add(piece: string): void {
    if (piece === "") return;
    this.length += piece.length;
    this.#pieces.push(piece);
    this.#piecesLength += piece.length;
    if (this.#piecesLength < chunkCharacters && this.#pieces.length < chunkCharacters / 4) return;
    this.#chunks.push(this.#pieces.join(""));
    this.#pieces = [];
    this.#piecesLength = 0;
  }

  toString(): string {
    return [...this.#chunks, ...this.#pieces].join("");
  }
}

/**
 * Collects the JSON of a call's arguments and detects when it is whole. It examines each character once, so the cost
 * stays linear.
 */
export class GrowingJson extends GrowingText {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isClosed = false;
  #isOver = false;

  override add(piece: string): void {
    super.add(piece);
    for (let at = 0; at < piece.length && !this.#isOver; at++) this.#take(piece.charCodeAt(at));
  }

  /** Is true after an object or a list was opened and closed, if only space follows. */
  get isWhole(): boolean {
    return this.#isClosed && !this.#isOver;
  }

  #take(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === backslash) this.#isEscaped = true;
      else if (code === quote) this.#isInString = false;
      return;
    }
    if (this.#isClosed) this.#isOver = code > space;
    else if (code === quote) this.#isInString = true;
    else if (code === openBrace || code === openBracket) this.#depth += 1;
    else if ((code === closeBrace || code === closeBracket) && this.#depth > 0) {
      this.#depth -= 1;
      this.#isClosed = this.#depth === 0;
    }
  }
}

const space = 0x20;
const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

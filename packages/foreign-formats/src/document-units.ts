/** Where a document has its list of units. */
export interface DocumentList {
  /** Names of the list in the document; a document that is a list by itself is that list. */
  readonly names: readonly string[];
  /** Objects of the document that the list may be in. */
  readonly through: readonly string[];
}

/** A piece of a document: an element of its list with what stands before it, or what is around the list. */
export interface DocumentUnit {
  readonly part: "head" | "element" | "tail";
  readonly fromByte: number;
  readonly toByte: number;
  /** Of an element: where its value begins. */
  readonly valueByte: number;
}

/** A document that was cut. All units one after the other are the document. */
export interface CutDocument {
  readonly units: readonly DocumentUnit[];
  /** Whether the list and the document end where they must. */
  readonly isWhole: boolean;
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Cuts the bytes of a JSON document into the elements of its list. Nothing is decoded: what JSON is made of is ASCII, and no
 * byte of another character looks like it. A document that breaks off, or has no list, gives what is whole of it.
 */
export function cutDocument(bytes: Uint8Array, list: DocumentList): CutDocument {
  const scan = new DocumentScan(bytes);
  const start = scan.findList(list);
  if (start === null) {
    return { units: [{ part: "head", fromByte: 0, toByte: bytes.length, valueByte: 0 }], isWhole: false };
  }
  const units: DocumentUnit[] = [{ part: "head", fromByte: 0, toByte: start, valueByte: 0 }];
  let at = start;
  let isWhole = false;
  for (;;) {
    const valueByte = scan.skipSpace(at, comma);
    const next = bytes[valueByte];
    isWhole = next === closeBracket;
    const toByte = next === undefined || isWhole ? null : scan.endOfValue(valueByte);
    if (toByte === null) break;
    units.push({ part: "element", fromByte: at, toByte, valueByte });
    at = toByte;
  }
  units.push({ part: "tail", fromByte: at, toByte: bytes.length, valueByte: at });
  return { units, isWhole };
}

class DocumentScan {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The first byte behind the bracket that begins the list; null for a document without one. */
  findList({ names, through }: DocumentList): number | null {
    const at = this.skipSpace(this.#skipMark());
    if (this.#bytes[at] === openBracket) return at + 1;
    return this.#bytes[at] === openBrace ? this.#findIn(at + 1, names, through) : null;
  }

  #findIn(from: number, names: readonly string[], through: readonly string[]): number | null {
    let at = this.skipSpace(from);
    while (this.#bytes[at] === quote) {
      const end = this.#endOfText(at);
      if (end === null) return null;
      const name = this.#textAt(at, end);
      at = this.skipSpace(end);
      if (this.#bytes[at] !== colon) return null;
      at = this.skipSpace(at + 1);
      if (this.#bytes[at] === openBracket && names.includes(name)) return at + 1;
      const inner =
        this.#bytes[at] === openBrace && through.includes(name) ? this.#findIn(at + 1, names, through) : null;
      if (inner !== null) return inner;
      const valueEnd = this.endOfValue(at);
      if (valueEnd === null) return null;
      at = this.skipSpace(valueEnd, comma);
    }
    return null;
  }

  /** Behind white space, and behind one separator. */
  skipSpace(from: number, separator: number | null = null): number {
    let at = from;
    let isSeparated = separator === null;
    for (;;) {
      const byte = this.#bytes[at];
      const isSpace = byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
      if (!isSpace && (isSeparated || byte !== separator)) return at;
      isSeparated ||= byte === separator;
      at += 1;
    }
  }

  /** Behind the value that begins there; null where the document breaks off. Depth is counted, never walked. */
  endOfValue(from: number): number | null {
    const first = this.#bytes[from];
    if (first === quote) return this.#endOfText(from);
    if (first !== openBrace && first !== openBracket) return this.#endOfWord(from);
    let depth = 0;
    for (let at = from; at < this.#bytes.length; at++) {
      const byte = this.#bytes[at];
      if (byte === quote) {
        const end = this.#endOfText(at);
        if (end === null) return null;
        at = end - 1;
      } else if (byte === openBrace || byte === openBracket) depth += 1;
      else if (byte === closeBrace || byte === closeBracket) {
        depth -= 1;
        if (depth === 0) return at + 1;
      }
    }
    return null;
  }

  /** A number or a word. One at the very end may go on, so it is not whole. */
  #endOfWord(from: number): number | null {
    let at = from;
    while (at < this.#bytes.length && isWordByte(this.#bytes[at] as number)) at += 1;
    return at === from || at === this.#bytes.length ? null : at;
  }

  #endOfText(from: number): number | null {
    for (let at = from + 1; at < this.#bytes.length; at++) {
      const byte = this.#bytes[at];
      if (byte === backslash) at += 1;
      else if (byte === quote) return at + 1;
    }
    return null;
  }

  /** A short name as text; a long one is none that is looked for. */
  #textAt(from: number, to: number): string {
    if (to - from > 100) return "";
    const text = new TextDecoder().decode(this.#bytes.subarray(from, to));
    try {
      return String(JSON.parse(text));
    } catch (error) {
      if (error instanceof SyntaxError) return "";
      throw error;
    }
  }

  #skipMark(): number {
    return this.#bytes[0] === 0xef && this.#bytes[1] === 0xbb && this.#bytes[2] === 0xbf ? 3 : 0;
  }
}

function isWordByte(byte: number): boolean {
  const isDigit = byte >= 0x30 && byte <= 0x39;
  const isLetter = (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x41 && byte <= 0x5a);
  return isDigit || isLetter || byte === 0x2b || byte === 0x2d || byte === 0x2e;
}

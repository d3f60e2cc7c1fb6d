/**
 * Names the part of a document that an item holds: the text before the list's elements, one element, or the text after
 * them.
 */
export type DocumentPart = "head" | "element" | "tail";

/** Holds one item of a document. The items in order give the document byte for byte. */
export interface DocumentUnit {
  /**
   * Holds the bytes of the item. An item that is too long has only its first bytes here. An element includes the
   * separator before it.
   */
  readonly bytes: Uint8Array;
  /** States the byte offset of the item in the document, from 0. */
  readonly byteOffset: number;
  /** States the length of the whole item in bytes, also when `bytes` holds only its beginning. */
  readonly sizeBytes: number;
  /** States whether the item is complete. False when the document ends inside the item. */
  readonly isTerminated: boolean;
  /** Names the part of the document that the item holds. A splitter of texts states `element` for every item. */
  readonly part: DocumentPart;
}

/** Cuts the bytes of a document into items. */
export interface DocumentSplitter {
  /** Returns the items that end in this chunk. */
  push(chunk: Uint8Array): readonly DocumentUnit[];
  /** Returns the rest of the document after the last chunk. */
  end(): readonly DocumentUnit[];
}

/**
 * Locates the list whose elements become items: names of fields, from the outside in. Empty when the document itself is
 * the list.
 */
export type ListPlace = readonly string[];

/** Holds the options of `createDocumentSplitter`. */
interface DocumentSplitterOptions {
  /** Lists the locations that the list may have. The first of them that the document reaches is cut. */
  readonly lists: readonly ListPlace[];
  /** Limits how many bytes of an item are kept. */
  readonly maxUnitBytes: number;
}

const [quoteMark, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** No field on the path to a list has a longer name, so longer names are cut. */
const longestName = 64;
/** No list lies deeper, so deeper names are not kept. */
const deepestList = 4;

/**
 * Creates a splitter that cuts a JSON document at the elements of one list: the first list at one of the locations. The
 * splitter reads brackets and strings only. A broken or incomplete document is therefore cut too, and no byte of it is
 * lost.
 */
export function createDocumentSplitter({ lists, maxUnitBytes }: DocumentSplitterOptions): DocumentSplitter {
  return new Splitter(lists, maxUnitBytes);
}

class Splitter implements DocumentSplitter {
  readonly #lists: readonly ListPlace[];
  readonly #pending: PendingBytes;
  #part: DocumentPart = "head";
  /** The depth counts the open brackets. */
  #depth = 0;
  /** The depth inside the list is set when the list begins. */
  #listDepth = 0;
  #isString = false;
  #isEscaped = false;
  /** The element has begun. `#isBare` is true when it is neither a string nor in brackets. */
  #hasBegun = false;
  #isBare = false;
  readonly #names: FieldNames = new FieldNames();

  constructor(lists: readonly ListPlace[], maxUnitBytes: number) {
    this.#lists = lists;
    this.#pending = new PendingBytes(maxUnitBytes);
  }

  push(chunk: Uint8Array): readonly DocumentUnit[] {
    const units: DocumentUnit[] = [];
    let start = 0;
    const cut = (end: number, part: DocumentPart): void => {
      units.push(this.#pending.take(chunk.subarray(start, end), part, true));
      start = end;
    };
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (this.#part === "head") {
        if (this.#isListBehind(byte)) {
          cut(at + 1, "head");
          this.#part = "element";
        }
      } else if (this.#part === "element") {
        const isEnd = this.#endsElement(byte);
        if (isEnd === "behind") cut(at + 1, "element");
        // A bare value ends before the byte after it. That byte belongs to the next item.
        else if (isEnd === "before") {
          cut(at, "element");
          this.#endsElement(byte);
        }
      } else this.#passOver(byte);
    }
    this.#pending.keep(chunk.subarray(start));
    return units;
  }

  end(): readonly DocumentUnit[] {
    if (this.#pending.sizeBytes === 0) return [];
    // Before an element begins there is only a comma or white space, so the rest belongs to the tail.
    const part = this.#part === "element" && !this.#hasBegun ? "tail" : this.#part;
    const isTerminated = part === "tail" && this.#part === "tail" && this.#depth === 0 && !this.#isString;
    return [this.#pending.take(new Uint8Array(0), part, isTerminated)];
  }

  #isListBehind(byte: number): boolean {
    const wasString = this.#isString;
    if (this.#isInString(byte)) {
      if (wasString) this.#names.takeByte(byte);
      else this.#names.begin();
      return false;
    }
    switch (byte) {
      case colon:
        this.#names.isValue();
        return false;
      case comma:
        this.#names.isNext();
        return false;
      case openObject:
        this.#depth += 1;
        this.#names.enter(true);
        return false;
      case openList:
        this.#depth += 1;
        if (this.#lists.some((place) => this.#names.isAt(place))) {
          this.#listDepth = this.#depth;
          return true;
        }
        this.#names.enter(false);
        return false;
      case closeObject:
      case closeList:
        this.#depth -= 1;
        this.#names.leave();
        return false;
      default:
        return false;
    }
  }

  /** The byte may end the element, and the list may end with it. */
  #endsElement(byte: number): "before" | "behind" | null {
    const wasString = this.#isString;
    if (this.#isInString(byte)) {
      if (!wasString) this.#hasBegun = true;
      return null;
    }
    const isInside = this.#depth > this.#listDepth;
    // The byte may end a string that is itself the element.
    if (wasString) return isInside ? null : this.#endHere();
    if (byte === openObject || byte === openList) {
      this.#depth += 1;
      this.#hasBegun = true;
      return null;
    }
    if (byte === closeObject || byte === closeList) {
      if (isInside) {
        this.#depth -= 1;
        return this.#depth === this.#listDepth ? this.#endHere() : null;
      }
      if (this.#isBare) return this.#endBare();
      this.#depth -= 1;
      this.#part = "tail";
      return null;
    }
    if (isInside) return null;
    if (byte === comma || isSpace(byte)) return this.#isBare ? this.#endBare() : null;
    this.#hasBegun = true;
    this.#isBare = true;
    return null;
  }

  #endHere(): "behind" {
    this.#hasBegun = false;
    this.#isBare = false;
    return "behind";
  }

  #endBare(): "before" {
    this.#endHere();
    return "before";
  }

  #passOver(byte: number): void {
    if (this.#isInString(byte)) return;
    if (byte === openObject || byte === openList) this.#depth += 1;
    else if (byte === closeObject || byte === closeList) this.#depth -= 1;
  }

  /** The opening quote counts as part of the string; the closing quote does not. */
  #isInString(byte: number): boolean {
    if (!this.#isString) {
      if (byte !== quoteMark) return false;
      this.#isString = true;
      return true;
    }
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === backslash) this.#isEscaped = true;
    else if (byte === quoteMark) this.#isString = false;
    return this.#isString;
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Tracks the names of the fields around the current byte. */
class FieldNames {
  /** Each of the outer open brackets has a level. Its name is the current field, or null in a list. */
  readonly #levels: { name: string | null; isName: boolean }[] = [];
  #deeper = 0;
  #text: number[] = [];
  #isNamed = false;

  enter(isObject: boolean): void {
    if (this.#levels.length >= deepestList) this.#deeper += 1;
    else this.#levels.push({ name: null, isName: isObject });
  }

  leave(): void {
    if (this.#deeper > 0) this.#deeper -= 1;
    else this.#levels.pop();
  }

  begin(): void {
    this.#text = [];
    this.#isNamed = this.#deeper === 0 && this.#levels.at(-1)?.isName === true;
  }

  takeByte(byte: number): void {
    if (this.#isNamed && this.#text.length <= longestName) this.#text.push(byte);
  }

  /** A colon follows the name, so the value begins. */
  isValue(): void {
    const level = this.#levels.at(-1);
    if (this.#deeper > 0 || level?.isName !== true) return;
    level.name = String.fromCharCode(...this.#text);
    level.isName = false;
    this.#isNamed = false;
  }

  /** A comma ends the value, so a field or an element follows. */
  isNext(): void {
    const level = this.#levels.at(-1);
    if (this.#deeper > 0 || level === undefined || level.name === null) return;
    level.isName = true;
    level.name = null;
  }

  isAt(place: ListPlace): boolean {
    if (this.#deeper > 0 || this.#levels.length !== place.length) return false;
    return place.every((name, at) => this.#levels[at]?.name === name);
  }
}

export class PendingBytes {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #keptBytes = 0;
  #byteOffset = 0;
  sizeBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes are copied, because the caller may refill the same buffer. */
  keep(bytes: Uint8Array): void {
    const kept = new Uint8Array(bytes.subarray(0, Math.max(0, this.#maxBytes - this.#keptBytes)));
    if (kept.length > 0) this.#parts.push(kept);
    this.#keptBytes += kept.length;
    this.sizeBytes += bytes.length;
  }

  take(last: Uint8Array, part: DocumentPart, isTerminated: boolean): DocumentUnit {
    const sizeBytes = this.sizeBytes + last.length;
    const wanted = last.subarray(0, Math.max(0, this.#maxBytes - this.#keptBytes));
    const bytes = this.#parts.length === 0 ? wanted : joined([...this.#parts, wanted]);
    const unit = { bytes, byteOffset: this.#byteOffset, sizeBytes, isTerminated, part };
    this.#byteOffset += sizeBytes;
    this.#parts = [];
    this.#keptBytes = 0;
    this.sizeBytes = 0;
    return unit;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** What a part of a document holds: what stands before the list's elements, one of them, or what stands behind them. */
export type DocumentPart = "head" | "element" | "tail";

/** A piece of a document. All pieces in order are the document, byte for byte. */
export interface DocumentUnit {
  /** The first bytes only of a unit that is too long. An element has what stands between it and the one before. */
  readonly bytes: Uint8Array;
  /** Where the unit begins in the document, in bytes from 0. */
  readonly byteOffset: number;
  /** The length of the whole unit, also where `bytes` holds only its beginning. */
  readonly sizeBytes: number;
  /** False where the document ends before the unit does. */
  readonly isTerminated: boolean;
  /** Which part of the document the unit holds. A splitter of texts gives `element` for all. */
  readonly part: DocumentPart;
}

/** Cuts the bytes of a document into units. */
export interface DocumentSplitter {
  /** The units that end in this chunk. */
  push(chunk: Uint8Array): readonly DocumentUnit[];
  /** What is left when there are no more chunks. */
  end(): readonly DocumentUnit[];
}

/** Where the list is that a document is cut into: names of fields, from the outside in. None: the document is the list. */
export type ListPlace = readonly string[];

/** Options of `createDocumentSplitter`. */
interface DocumentSplitterOptions {
  /** Places where the list may be. The first one that the document reaches is cut. */
  readonly lists: readonly ListPlace[];
  /** How many bytes of a longer unit are kept. */
  readonly maxUnitBytes: number;
}

const [quoteMark, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** No field on the way to a list has a longer name. */
const longestName = 64;
/** Lists lie no deeper, and the way to what lies deeper is not kept. */
const deepestList = 4;

/**
 * Creates what cuts a JSON document at the elements of a list in it: the first that stands at one of the places. It looks at
 * brackets and strings only, so a document that is broken or cut off is cut too, and nothing of it is missing.
 */
export function createDocumentSplitter({ lists, maxUnitBytes }: DocumentSplitterOptions): DocumentSplitter {
  return new Splitter(lists, maxUnitBytes);
}

class Splitter implements DocumentSplitter {
  readonly #lists: readonly ListPlace[];
  readonly #pending: PendingBytes;
  #part: DocumentPart = "head";
  /** Of brackets that are open. */
  #depth = 0;
  /** The depth inside the list, once that has begun. */
  #listDepth = 0;
  #isString = false;
  #isEscaped = false;
  /** Whether the element that is being read has begun, and whether it is neither a string nor in brackets. */
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
        // A bare value ends before what follows it, which belongs to the next unit.
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
    // Of an element that has not begun there is a comma or white space.
    const part = this.#part === "element" && !this.#hasBegun ? "tail" : this.#part;
    const isTerminated = part === "tail" && this.#part === "tail" && this.#depth === 0 && !this.#isString;
    return [this.#pending.take(new Uint8Array(0), part, isTerminated)];
  }

  /** True when the byte opens the list. */
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

  /** Where the element ends, when the byte says so; the list may end with it. */
  #endsElement(byte: number): "before" | "behind" | null {
    const wasString = this.#isString;
    if (this.#isInString(byte)) {
      if (!wasString) this.#hasBegun = true;
      return null;
    }
    const isInside = this.#depth > this.#listDepth;
    // The string that the byte ends may be the element.
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

  /** Whether the byte is one of a string, its first mark included and its last one not. */
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

/** The names of the fields that the place being read lies in. */
class FieldNames {
  /** A level for each open bracket, the outer ones only: the field being read, null in a list. */
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

  /** A string begins. */
  begin(): void {
    this.#text = [];
    this.#isNamed = this.#deeper === 0 && this.#levels.at(-1)?.isName === true;
  }

  takeByte(byte: number): void {
    if (this.#isNamed && this.#text.length <= longestName) this.#text.push(byte);
  }

  /** What follows is the value of the name that was read. */
  isValue(): void {
    const level = this.#levels.at(-1);
    if (this.#deeper > 0 || level?.isName !== true) return;
    level.name = String.fromCharCode(...this.#text);
    level.isName = false;
    this.#isNamed = false;
  }

  /** What follows is the next field, or the next element. */
  isNext(): void {
    const level = this.#levels.at(-1);
    if (this.#deeper > 0 || level === undefined || level.name === null) return;
    level.isName = true;
    level.name = null;
  }

  /** Whether a value that begins now is the one at the place. */
  isAt(place: ListPlace): boolean {
    if (this.#deeper > 0 || this.#levels.length !== place.length) return false;
    return place.every((name, at) => this.#levels[at]?.name === name);
  }
}

/** Bytes that belong to the unit that is being read. */
export class PendingBytes {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #keptBytes = 0;
  #byteOffset = 0;
  sizeBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Copied, as the caller may fill the same buffer again. */
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

/** Reads single pages of a database. Newer pages of the log replace those of the file. */
export interface PageFile {
  readonly pageBytes: number;
  /** Counts pages from 1. Pages of the log may lie behind the end of the file. */
  readonly pages: number;
  /** Returns the bytes of a page, or null where neither the file nor the log has all of them. */
  page(number: number): DataView | null;
}

/** Holds the value of a column. Integers beyond the safe range are bigints. */
export type CellValue = null | number | bigint | string | Uint8Array;

/** Holds a row of a table, as a leaf of its b-tree stores it. */
export interface TableRow {
  readonly rowid: number;
  readonly values: readonly CellValue[];
}

const leafOfTable = 0x0d;
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Returns how many rows a page holds if it is a leaf of a table, and 0 for other pages. */
export function rowCount(page: DataView, number: number, pageBytes: number): number {
  const start = headerStart(number);
  if (page.getUint8(start) !== leafOfTable) return 0;
  return Math.min(page.getUint16(start + 3), Math.floor((pageBytes - start - 8) / 2));
}

/** Reads one row of a leaf. Returns null where the bytes are not what SQLite writes, or an overflow page is gone. */
export function rowAt(file: PageFile, number: number, index: number): TableRow | null {
  const page = file.page(number);
  if (page === null || index >= rowCount(page, number, file.pageBytes)) return null;
  const start = headerStart(number);
  const cell = page.getUint16(start + 8 + 2 * index);
  if (cell < start + 8 || cell >= file.pageBytes) return null;
  try {
    const size = varint(page, cell);
    const rowid = varint(page, cell + size.length);
    const payload = payloadOf(file, page, cell + size.length + rowid.length, size.value);
    return payload === null ? null : { rowid: rowid.value, values: valuesOf(payload) };
  } catch (error) {
    // Numbers that lead out of the page, and bytes that are no text, mean that the page is damaged.
    if (error instanceof RangeError || error instanceof TypeError) return null;
    throw error;
  }
}

/** The first page begins with the header of the database. */
function headerStart(number: number): number {
  return number === 1 ? 100 : 0;
}

/** Returns the record of a row: the part in the page, and the rest in a chain of overflow pages. */
function payloadOf(file: PageFile, page: DataView, at: number, size: number): DataView | null {
  const usable = file.pageBytes;
  if (size < 0 || size > file.pages * usable) return null;
  const local = localBytes(size, usable);
  const bytes = new Uint8Array(size);
  bytes.set(new Uint8Array(page.buffer, at, local));
  let next = local < size ? page.getUint32(at + local) : 0;
  for (let filled = local; filled < size;) {
    const overflow = file.page(next);
    if (overflow === null) return null;
    const part = Math.min(size - filled, usable - 4);
    bytes.set(new Uint8Array(overflow.buffer, 4, part), filled);
    filled += part;
    next = overflow.getUint32(0);
  }
  return new DataView(bytes.buffer);
}

function localBytes(size: number, usable: number): number {
  if (size <= usable - 35) return size;
  const least = Math.floor(((usable - 12) * 32) / 255) - 23;
  const most = least + ((size - least) % (usable - 4));
  return most <= usable - 35 ? most : least;
}

/** @throws {RangeError | TypeError} when the bytes are no record */
function valuesOf(record: DataView): CellValue[] {
  const header = varint(record, 0);
  const values: CellValue[] = [];
  let at = header.value;
  if (at < 1 || at > record.byteLength) throw new RangeError("the header of the record is longer than the record");
  for (let place = header.length; place < header.value;) {
    const type = varint(record, place);
    place += type.length;
    const size = sizeOfType(type.value);
    values.push(valueOf(record, at, type.value, size));
    at += size;
  }
  if (at !== record.byteLength) throw new RangeError("the record is not as long as its header says");
  return values;
}

const sizes = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0] as const;

function sizeOfType(type: number): number {
  if (type >= 12) return Math.floor((type - 12) / 2);
  const size = sizes[type];
  if (size === undefined) throw new RangeError("no such type");
  return size;
}

function valueOf(record: DataView, at: number, type: number, size: number): CellValue {
  if (type === 0) return null;
  if (type === 8 || type === 9) return type - 8;
  if (type === 7) return record.getFloat64(at);
  if (type >= 12) {
    const bytes = new Uint8Array(record.buffer, at, size);
    return type % 2 === 0 ? bytes.slice() : decoder.decode(bytes);
  }
  let value = BigInt(record.getInt8(at));
  for (let byte = 1; byte < size; byte++) value = value * 256n + BigInt(record.getUint8(at + byte));
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Reads a number of one to nine bytes. @throws {RangeError} where it leads out of the bytes, or is too large */
function varint(view: DataView, at: number): { readonly value: number; readonly length: number } {
  let value = 0n;
  for (let length = 1; length <= 9; length++) {
    const byte = view.getUint8(at + length - 1);
    value = length === 9 ? value * 256n + BigInt(byte) : value * 128n + BigInt(byte & 0x7f);
    if (length < 9 && byte >= 0x80) continue;
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new RangeError("a number no store has");
    return { value: number, length };
  }
  throw new RangeError("no end of a number");
}

/** A UUID takes four words, which are 16 bytes instead of the 60 to 100 bytes of its text in a map. */
const words = 4;

/** The positions of the hexadecimal digits skip the dashes. Each word holds eight digits. */
const digitPlaces = Array.from({ length: 36 }, (_, at) => at).filter((at) => ![8, 13, 18, 23].includes(at));

/** Only lowercase UUIDs are packed, because unpacking cannot restore uppercase letters. Any other text gives false. */
function pack(text: string, to: Uint32Array, offset: number): boolean {
  if (text.length !== 36) return false;
  for (const dash of [8, 13, 18, 23] as const) if (text.charCodeAt(dash) !== 0x2d) return false;
  let word = 0;
  for (let digit = 0; digit < 32; digit++) {
    const code = text.charCodeAt(digitPlaces[digit] as number);
    const value = code >= 0x30 && code <= 0x39 ? code - 0x30 : code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
    if (value < 0) return false;
    word = (word << 4) | value;
    if ((digit & 7) !== 7) continue;
    to[offset + (digit >> 3)] = word;
    word = 0;
  }
  return true;
}

function unpack(from: Uint32Array, offset: number): string {
  let hex = "";
  for (let at = 0; at < words; at++) hex += (from[offset + at] as number).toString(16).padStart(8, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

type Numbers = Uint8Array | Uint32Array | Int32Array | Float64Array;

/** A copy is half as long again, so that repeated growth stays cheap. */
export function withRoom<Array extends Numbers>(from: Array, length: number): Array {
  if (length <= from.length) return from;
  const longer = new (from.constructor as new (length: number) => Array)(
    Math.max(length, Math.ceil(from.length * 1.5)),
  );
  longer.set(from);
  return longer;
}

/**
 * A search stops after this many slots. Ids that were crafted to collide go into the map of texts, so they cannot slow
 * down each access.
 */
const mostProbes = 64;

/** Maps ids to numbers. The class needs a third of a map's memory when the ids are UUIDs. */
export class IdNumbers {
  #keys = new Uint32Array(1024 * words);
  #numbers = new Int32Array(1024);
  /** A slot holds the position of a key, from 1; 0 means that the slot is free. */
  #slots = new Int32Array(2048);
  #count = 0;
  readonly #others = new Map<string, number>();
  readonly #wanted = new Uint32Array(words);

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  get(id: string): number | undefined {
    const at = pack(id, this.#wanted, 0) ? this.#find() : -1;
    return at >= 0 ? this.#numbers[at] : this.#others.size === 0 ? undefined : this.#others.get(id);
  }

  set(id: string, number: number): void {
    const isPacked = pack(id, this.#wanted, 0);
    const at = isPacked ? this.#find() : -1;
    if (at >= 0) this.#numbers[at] = number;
    else if (!isPacked || this.#others.has(id) || !this.#add(number)) this.#others.set(id, number);
  }

  /** Returns the position of an id for `idAt`. The value is -1 for an id that is stored as text or is absent. */
  placeOf(id: string): number {
    return pack(id, this.#wanted, 0) ? this.#find() : -1;
  }

  idAt(place: number): string {
    return unpack(this.#keys, place * words);
  }

  #find(): number {
    const mask = this.#slots.length - 1;
    let slot = hash(this.#wanted, 0) & mask;
    for (let probe = 0; probe < mostProbes; probe++, slot = (slot + 1) & mask) {
      const at = (this.#slots[slot] as number) - 1;
      if (at < 0) return -1;
      if (this.#isWanted(at * words)) return at;
    }
    return -1;
  }

  #isWanted(offset: number): boolean {
    for (let word = 0; word < words; word++) if (this.#keys[offset + word] !== this.#wanted[word]) return false;
    return true;
  }

  /** False means that the search for the key would take too many slots. */
  #add(number: number): boolean {
    if (this.#count * 4 >= this.#slots.length * 3) this.#grow();
    const slot = this.#freeSlot(hash(this.#wanted, 0));
    if (slot < 0) return false;
    this.#numbers = withRoom(this.#numbers, this.#count + 1);
    this.#keys = withRoom(this.#keys, (this.#count + 1) * words);
    this.#keys.set(this.#wanted, this.#count * words);
    this.#numbers[this.#count] = number;
    this.#count += 1;
    this.#slots[slot] = this.#count;
    return true;
  }

  #freeSlot(start: number): number {
    const mask = this.#slots.length - 1;
    let slot = start & mask;
    for (let probe = 0; probe < mostProbes; probe++, slot = (slot + 1) & mask) if (this.#slots[slot] === 0) return slot;
    return -1;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2);
    for (let at = 0; at < this.#count; at++) {
      const slot = this.#freeSlot(hash(this.#keys, at * words));
      if (slot >= 0) this.#slots[slot] = at + 1;
      else this.#others.set(this.idAt(at), this.#numbers[at] as number);
    }
  }
}

/** All words are mixed, because many ids differ in their last digits only. */
function hash(from: Uint32Array, offset: number): number {
  let mixed = 0;
  for (let word = 0; word < words; word++) {
    mixed = Math.imul(mixed ^ (from[offset + word] as number), 0x85ebca6b);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0xc2b2ae35);
    mixed ^= mixed >>> 13;
  }
  return mixed;
}

/** Keeps ids in order. An id in `IdNumbers` is stored by its position, and any other id as text. */
export class IdList {
  readonly #ids: IdNumbers;
  /** The value is -1 for an id that is stored as text. */
  #places = new Int32Array(1024);
  readonly #others = new Map<number, string>();
  length = 0;

  constructor(ids: IdNumbers) {
    this.#ids = ids;
  }

  push(id: string): void {
    this.length += 1;
    this.#places = withRoom(this.#places, this.length);
    this.replaceLast(id);
  }

  replaceLast(id: string): void {
    const place = this.#ids.placeOf(id);
    this.#places[this.length - 1] = place;
    if (place < 0) this.#others.set(this.length - 1, id);
    else this.#others.delete(this.length - 1);
  }

  at(number: number): string | null {
    if (number < 0 || number >= this.length) return null;
    return this.#others.get(number) ?? this.#ids.idAt(this.#places[number] as number);
  }
}

import type { TextVector } from "@throughline/core/internal";
import type { KeptVector } from "./vector-backend.ts";

/** Returns a vector as it is kept: with norm 1, a byte for each number. The error of a cosine is below 0.01. */
export function keptVector({ firstSeq, lastSeq, part, vector }: TextVector): KeptVector {
  let squares = 0;
  let most = 0;
  for (const value of vector) {
    squares += value * value;
    most = Math.max(most, Math.abs(value));
  }
  const step = most / 127;
  return {
    firstSeq,
    lastSeq,
    part,
    scale: step / Math.sqrt(squares),
    values: Int8Array.from(vector, (value) => Math.round(value / step)),
    code: signsOf(vector),
  };
}

/** Returns one bit for each number of a vector, in whole words of 32 bits. */
export function signsOf(vector: Float32Array): Uint8Array {
  const code = new Uint8Array(Math.ceil(vector.length / 32) * 4);
  for (let index = 0; index < vector.length; index++) {
    if ((vector[index] ?? 0) > 0) code[index >> 3] = (code[index >> 3] ?? 0) | (1 << (index & 7));
  }
  return code;
}

/** Returns the cosine of the angle between a vector with norm 1 and a kept one. */
export function cosine(vector: Float32Array, { values, scale }: Pick<KeptVector, "values" | "scale">): number {
  let sum = 0;
  for (let index = 0; index < vector.length; index++) sum += (vector[index] ?? 0) * (values[index] ?? 0);
  return Math.max(-1, Math.min(1, sum * scale));
}

/** Between two pauses this many words of 32 bits are compared, which takes about 3 ms. */
const wordsAtOnce = 1_000_000;
const farthest = 0xffff;

/** Holds the codes of one model in one scope, in the order of their numbers. 200,000 codes of 512 bits take 15 MB. */
export class CodeTable {
  readonly wordCount: number;
  #numbers = new Float64Array(1024);
  #owners = new Uint32Array(1024);
  #words: Uint32Array;
  #size = 0;

  constructor(codeBytes: number) {
    this.wordCount = codeBytes / 4;
    this.#words = new Uint32Array(1024 * this.wordCount);
  }

  get size(): number {
    return this.#size;
  }

  get lastNumber(): number {
    return this.#numbers[this.#size - 1] ?? 0;
  }

  add(number: number, owner: number, code: Uint8Array): void {
    if (this.#size === this.#numbers.length) this.#grow();
    this.#set(number, owner, wordsOf(code));
  }

  /** Removes vectors that no longer exist. A search that has begun keeps the old arrays. */
  remove(gone: ReadonlySet<number>): void {
    const [numbers, owners, words, size] = [this.#numbers, this.#owners, this.#words, this.#size];
    this.#numbers = new Float64Array(numbers.length);
    this.#owners = new Uint32Array(owners.length);
    this.#words = new Uint32Array(words.length);
    this.#size = 0;
    for (let row = 0; row < size; row++) {
      const number = numbers[row] ?? 0;
      if (gone.has(number)) continue;
      this.#set(number, owners[row] ?? 0, words.subarray(row * this.wordCount, (row + 1) * this.wordCount));
    }
  }

  /** Returns the numbers of the vectors of some owners by the number of differing signs, fewest first. */
  async byDistance(
    code: Uint8Array,
    isWanted: (owner: number) => boolean,
    pause: () => Promise<void>,
  ): Promise<Nearness> {
    // Rows that are added or removed during a pause belong to the next search.
    const size = this.#size;
    const [numbers, owners, words] = [this.#numbers.slice(0, size), this.#owners, this.#words];
    const asked = wordsOf(code);
    const distances = new Uint16Array(size).fill(farthest);
    const rowsAtOnce = Math.max(1, Math.floor(wordsAtOnce / this.wordCount));
    for (let from = 0; from < size; from += rowsAtOnce) {
      if (from > 0) await pause();
      const to = Math.min(size, from + rowsAtOnce);
      for (let row = from; row < to; row++)
        if (isWanted(owners[row] ?? 0)) distances[row] = distanceOf(asked, words, row * this.wordCount);
    }
    return new Nearness(numbers, distances, this.wordCount * 32);
  }

  #set(number: number, owner: number, words: Uint32Array): void {
    this.#numbers[this.#size] = number;
    this.#owners[this.#size] = owner;
    this.#words.set(words, this.#size * this.wordCount);
    this.#size++;
  }

  #grow(): void {
    const capacity = this.#numbers.length * 2;
    const [numbers, owners, words] = [this.#numbers, this.#owners, this.#words];
    this.#numbers = new Float64Array(capacity);
    this.#numbers.set(numbers);
    this.#owners = new Uint32Array(capacity);
    this.#owners.set(owners);
    this.#words = new Uint32Array(capacity * this.wordCount);
    this.#words.set(words);
  }
}

function wordsOf(code: Uint8Array): Uint32Array {
  // The bytes of a database may begin anywhere in their memory, and `slice` of a Buffer copies nothing.
  return new Uint32Array(new Uint8Array(code).buffer);
}

function distanceOf(one: Uint32Array, others: Uint32Array, from: number): number {
  let count = 0;
  for (let index = 0; index < one.length; index++) {
    let bits = (one[index] ?? 0) ^ (others[from + index] ?? 0);
    bits -= (bits >>> 1) & 0x55555555;
    bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
    bits = (bits + (bits >>> 4)) & 0x0f0f0f0f;
    count += Math.imul(bits, 0x01010101) >>> 24;
  }
  return count;
}

/** Holds the distances of all vectors, of which the nearest are taken one portion at a time. */
export class Nearness {
  readonly #numbers: Float64Array;
  readonly #distances: Uint16Array;
  readonly #most: number;
  /** Everything below this distance was taken. */
  #from = 0;

  constructor(numbers: Float64Array, distances: Uint16Array, most: number) {
    this.#numbers = numbers;
    this.#distances = distances;
    this.#most = most;
  }

  /** Returns at least `count` of the nearest vectors that were not taken, and all with the same distance; none at the end. */
  take(count: number): readonly number[] {
    const counts = new Uint32Array(this.#most + 1);
    for (const distance of this.#distances)
      if (distance >= this.#from && distance <= this.#most) counts[distance] = (counts[distance] ?? 0) + 1;
    let to = this.#from;
    for (let found = 0; to <= this.#most && found < count; to++) found += counts[to] ?? 0;
    const taken: number[] = [];
    for (let row = 0; row < this.#distances.length; row++) {
      const distance = this.#distances[row] ?? farthest;
      if (distance >= this.#from && distance < to) taken.push(this.#numbers[row] ?? 0);
    }
    this.#from = to;
    return taken;
  }
}

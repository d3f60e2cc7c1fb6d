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

/** A block has this many codes. One of 512 bits is compared in about 1 ms, and 8 ms while the code is not compiled yet. */
const blockRows = 16_384;
const farthest = 0xffff;

interface CodeBlock {
  readonly numbers: Float64Array;
  readonly owners: Uint32Array;
  readonly words: Uint32Array;
  size: number;
}

/**
 * Holds the codes of one model in one scope, in the order of their numbers. 200,000 codes of 512 bits take 15 MB. They
 * lie in blocks, so that neither growth nor a removal copies all of them in one turn of the event loop.
 */
export class CodeTable {
  readonly wordCount: number;
  #blocks: readonly CodeBlock[] = [];

  constructor(codeBytes: number) {
    this.wordCount = codeBytes / 4;
  }

  get size(): number {
    return this.#blocks.reduce((sum, { size }) => sum + size, 0);
  }

  add(number: number, owner: number, code: Uint8Array): void {
    let block = this.#blocks.at(-1);
    if (block === undefined || block.size === block.numbers.length) {
      // Most scopes are small, so the first blocks are.
      block = this.#newBlock(Math.min(blockRows, Math.max(1024, this.size)));
      this.#blocks = [...this.#blocks, block];
    }
    block.numbers[block.size] = number;
    block.owners[block.size] = owner;
    block.words.set(wordsOf(code), block.size * this.wordCount);
    block.size++;
  }

  /** Removes vectors that no longer exist. A search that has begun keeps the old blocks. */
  async remove(gone: ReadonlySet<number>, pause: () => Promise<void>): Promise<void> {
    const numbers = [...gone];
    for (const block of this.#blocks) {
      const [first, last] = [block.numbers[0] ?? 0, block.numbers[block.size - 1] ?? 0];
      if (!numbers.some((number) => number >= first && number <= last)) continue;
      const kept = this.#without(block, gone);
      const others = this.#blocks.map((each) => (each === block ? kept : each));
      this.#blocks = others.filter(({ size }) => size > 0);
      await pause();
    }
  }

  /** Returns the numbers of the vectors of some owners by the number of differing signs, fewest first. */
  async byDistance(
    code: Uint8Array,
    isWanted: (owner: number) => boolean,
    pause: () => Promise<void>,
  ): Promise<Nearness> {
    const asked = wordsOf(code);
    const measured: MeasuredBlock[] = [];
    // Rows that are added or removed during a pause belong to the next search.
    const blocks = this.#blocks.map((block) => ({ block, size: block.size }));
    for (const { block, size } of blocks) {
      const { numbers, owners, words } = block;
      const distances = new Uint16Array(size).fill(farthest);
      for (let row = 0; row < size; row++)
        if (isWanted(owners[row] ?? 0)) distances[row] = distanceOf(asked, words, row * this.wordCount);
      measured.push({ numbers, distances });
      await pause();
    }
    return new Nearness(measured, this.wordCount * 32, pause);
  }

  #newBlock(rows: number): CodeBlock {
    return {
      numbers: new Float64Array(rows),
      owners: new Uint32Array(rows),
      words: new Uint32Array(rows * this.wordCount),
      size: 0,
    };
  }

  #without({ numbers, owners, words, size }: CodeBlock, gone: ReadonlySet<number>): CodeBlock {
    const kept = this.#newBlock(numbers.length);
    for (let row = 0; row < size; row++) {
      const number = numbers[row] ?? 0;
      if (gone.has(number)) continue;
      kept.numbers[kept.size] = number;
      kept.owners[kept.size] = owners[row] ?? 0;
      kept.words.set(words.subarray(row * this.wordCount, (row + 1) * this.wordCount), kept.size * this.wordCount);
      kept.size++;
    }
    return kept;
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

interface MeasuredBlock {
  readonly numbers: Float64Array;
  readonly distances: Uint16Array;
}

/** Holds the distances of all vectors, of which the nearest are taken one portion at a time. */
export class Nearness {
  readonly #blocks: readonly MeasuredBlock[];
  readonly #most: number;
  readonly #pause: () => Promise<void>;
  /** Everything below this distance was taken. */
  #from = 0;

  constructor(blocks: readonly MeasuredBlock[], most: number, pause: () => Promise<void>) {
    this.#blocks = blocks;
    this.#most = most;
    this.#pause = pause;
  }

  /** Returns at least `count` of the nearest vectors that were not taken, and all with the same distance; none at the end. */
  async take(count: number): Promise<readonly number[]> {
    const counts = new Uint32Array(this.#most + 1);
    for (const { distances } of this.#blocks) {
      for (const distance of distances)
        if (distance >= this.#from && distance <= this.#most) counts[distance] = (counts[distance] ?? 0) + 1;
      await this.#pause();
    }
    let to = this.#from;
    for (let found = 0; to <= this.#most && found < count; to++) found += counts[to] ?? 0;
    const taken: number[] = [];
    for (const { numbers, distances } of this.#blocks) {
      for (let row = 0; row < distances.length; row++) {
        const distance = distances[row] ?? farthest;
        if (distance >= this.#from && distance < to) taken.push(numbers[row] ?? 0);
      }
      await this.#pause();
    }
    this.#from = to;
    return taken;
  }
}

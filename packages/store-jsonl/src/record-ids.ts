import { crc32 } from "node:zlib";
import { systemRandom } from "@throughline/core/internal";

/** The seed is random, so that no caller can choose ids that collide. */
const seed = systemRandom.uint32();

/**
 * Maps record ids to seqs. Each id is kept as 64 bits outside the heap. A million ids take at most 24 MB, where a map
 * of strings takes 150 MB of heap. The chance that two of a million ids collide is one in 30 million.
 */
export class RecordIds {
  #from = 1;
  #count = 0;
  #sums = new Uint32Array(64);
  #hashes = new Uint32Array(64);
  /**
   * Holds positions in the arrays, from 1; 0 marks a free slot. The table is never more than half full, which keeps
   * lookups short.
   */
  #slots = new Uint32Array(128);

  /** Adds the next record. An id that was added before now leads to the newer record. */
  set(id: string, seq: number): void {
    if (this.#count === 0) this.#from = seq;
    if (this.#count === this.#sums.length) this.#grow();
    const [sum, hash] = [crc32(id), hashOf(id)];
    this.#sums[this.#count] = sum;
    this.#hashes[this.#count] = hash;
    const slot = this.#slotOf(sum, hash);
    this.#slots[slot] = ++this.#count;
  }

  get(id: string): number | undefined {
    const place = this.#slots[this.#slotOf(crc32(id), hashOf(id))] ?? 0;
    return place === 0 ? undefined : this.#from + place - 1;
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  sumOf(seq: number): number | undefined {
    const place = seq - this.#from;
    return place < 0 || place >= this.#count ? undefined : this.#sums[place];
  }

  #slotOf(sum: number, hash: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = (hash ^ sum) & mask; ; slot = (slot + 1) & mask) {
      const place = this.#slots[slot] ?? 0;
      if (place === 0 || (this.#sums[place - 1] === sum && this.#hashes[place - 1] === hash)) return slot;
    }
  }

  #put(at: number): void {
    this.#slots[this.#slotOf(this.#sums[at] ?? 0, this.#hashes[at] ?? 0)] = at + 1;
  }

  #grow(): void {
    const size = this.#sums.length * 2;
    this.#sums = resized(this.#sums, size);
    this.#hashes = resized(this.#hashes, size);
    this.#slots = new Uint32Array(size * 2);
    for (let at = 0; at < this.#count; at++) this.#put(at);
  }
}

function resized(numbers: Uint32Array, size: number): Uint32Array<ArrayBuffer> {
  const next = new Uint32Array(size);
  next.set(numbers);
  return next;
}

function hashOf(id: string): number {
  let hash = seed;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x9e3779b1) ^ (hash >>> 15);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

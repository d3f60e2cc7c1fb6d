import { crc32 } from "node:zlib";
import { systemRandom } from "@throughline/core/internal";

/** Nobody can choose ids that meet: whoever gives them does not know it. */
const seed = systemRandom.uint32();

/**
 * Which record of a transcript has an id. Ids are kept as 64 bits each, outside of the heap: a million take 24 MB at most, where
 * a map of the texts takes 150 MB of heap. That two of a million meet has a chance of one to 30 million.
 */
export class RecordIds {
  /** The seq of the first. */
  #from = 1;
  #count = 0;
  #sums = new Uint32Array(64);
  #hashes = new Uint32Array(64);
  /** Places among those, from 1, by hash; 0: free. Never more than half full. */
  #slots = new Uint32Array(128);

  /** The records come one after another. One with an earlier id is found in its place. */
  set(id: string, seq: number): void {
    if (this.#count === 0) this.#from = seq;
    if (this.#count === this.#sums.length) this.#grow();
    this.#sums[this.#count] = crc32(id);
    this.#hashes[this.#count] = hashOf(id);
    this.#put(this.#count++);
  }

  get(id: string): number | undefined {
    const place = this.#slots[this.#slotOf(crc32(id), hashOf(id))] ?? 0;
    return place === 0 ? undefined : this.#from + place - 1;
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /** The CRC-32 of the id of a record; undefined for one that is not known. */
  sumOf(seq: number): number | undefined {
    const place = seq - this.#from;
    return place < 0 || place >= this.#count ? undefined : this.#sums[place];
  }

  /** The slot of an id, or the free one where it belongs. */
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

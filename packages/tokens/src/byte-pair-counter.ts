import type { CountTokens } from "./text-counter.ts";

/** Limits the cached merges. A piece is at most one slice long, so the cache stays within a few megabytes. */
const mergeCacheEntries = 8192;

const isWide = /\P{ASCII}/u;
const encoder = new TextEncoder();

/**
 * Creates a counter of byte pair tokens.
 *
 * @param packed the bytes of every token in order of rank, each behind its length: one byte, or 255 and two bytes
 * @param splitPattern cuts a text into pieces before merging; needs the flags `g` and `u`
 */
export function createBytePairCounter(packed: Uint8Array, splitPattern: RegExp): CountTokens {
  const ranks = readRanks(packed);
  const known = new Map<string, number>();
  const countPiece = (piece: string): number => {
    const bytes = isWide.test(piece) ? byteText(encoder.encode(piece)) : piece;
    if (ranks.has(bytes)) return 1;
    const kept = known.get(bytes);
    if (kept !== undefined) return kept;
    const tokens = countMerged(bytes, ranks);
    if (known.size >= mergeCacheEntries) known.delete(known.keys().next().value as string);
    known.set(bytes, tokens);
    return tokens;
  };
  return (text) => {
    let tokens = 0;
    for (const [piece] of text.matchAll(splitPattern)) tokens += countPiece(piece);
    return tokens;
  };
}

/** Maps each byte to one character, because a string works as a map key and `slice` on it is cheap. */
function byteText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

function readRanks(packed: Uint8Array): ReadonlyMap<string, number> {
  const ranks = new Map<string, number>();
  const byteAt = (place: number): number => packed[place] ?? 0;
  for (let place = 0; place < packed.length;) {
    let length = byteAt(place);
    place += 1;
    if (length === 255) {
      length = byteAt(place) * 256 + byteAt(place + 1);
      place += 2;
    }
    ranks.set(byteText(packed.subarray(place, place + length)), ranks.size);
    place += length;
  }
  return ranks;
}

/**
 * Merges the pair of lowest rank until no pair is a token. The cost grows with the square of the bytes, so the caller
 * must cut long runs.
 */
function countMerged(bytes: string, ranks: ReadonlyMap<string, number>): number {
  const starts = Array.from({ length: bytes.length + 1 }, (_, place) => place);
  /** Returns the rank of the token that the parts at `index` and `index + 1` form, or Infinity. */
  const pairRank = (index: number): number =>
    index + 2 < starts.length ? (ranks.get(bytes.slice(starts[index], starts[index + 2])) ?? Infinity) : Infinity;
  const pairRanks = starts.map((_, index) => pairRank(index));
  for (;;) {
    let lowest = Infinity;
    let lowestAt = -1;
    for (const [index, rank] of pairRanks.entries()) {
      if (rank >= lowest) continue;
      lowest = rank;
      lowestAt = index;
    }
    if (lowestAt === -1) return starts.length - 1;
    starts.splice(lowestAt + 1, 1);
    pairRanks.splice(lowestAt + 1, 1);
    pairRanks[lowestAt] = pairRank(lowestAt);
    if (lowestAt > 0) pairRanks[lowestAt - 1] = pairRank(lowestAt - 1);
  }
}

/** This is the polynomial of CRC-32 with its bits reversed. */
const polynomial = 0xedb88320;

/** Holds x^(2^n) modulo the polynomial, for n from 0 to 31. */
const powers: readonly number[] = (() => {
  const found = [1 << 30];
  for (let index = 1; index < 32; index++) found.push(multiply(found[index - 1] ?? 0, found[index - 1] ?? 0));
  return found;
})();

/**
 * Combines the CRC-32 of two adjacent texts. The first checksum is shifted by the length of the second text. A record's
 * line begins with a part that only the statement knew, and its checksum must cover the whole line. The method is that
 * of zlib's `crc32_combine`.
 */
export function joinChecksums(first: number, second: number, secondBytes: number): number {
  let shift = 1 << 31;
  for (let [bytes, power] = [secondBytes, 3]; bytes > 0; bytes = Math.floor(bytes / 2), power++)
    if (bytes % 2 === 1) shift = multiply(powers[power & 31] ?? 0, shift);
  return (multiply(shift, first) ^ second) >>> 0;
}

/** Multiplies two polynomials modulo the polynomial of CRC-32. */
function multiply(one: number, other: number): number {
  let [product, factor] = [0, other];
  for (let bit = 1 << 31; ; bit >>>= 1) {
    if ((one & bit) !== 0) {
      product ^= factor;
      if ((one & (bit - 1)) === 0) return product;
    }
    if (bit === 0) return product;
    factor = (factor & 1) === 0 ? factor >>> 1 : (factor >>> 1) ^ polynomial;
  }
}

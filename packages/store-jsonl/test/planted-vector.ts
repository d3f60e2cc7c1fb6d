/** A vector whose bytes can be found in a file: no other one has its pattern. */
export function planted(seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: 64 }, () => {
    state = (Math.imul(state ^ (state >>> 13), 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}

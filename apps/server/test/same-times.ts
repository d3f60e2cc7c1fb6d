/**
 * How likely two lists of times would differ as much if nothing told them apart: the two-sided test of Mann and Whitney,
 * which asks for no form of their distribution. Ties get the mean of their ranks.
 */
export function sameTimesProbability(one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((ms) => ({ ms, isOne: true })), ...other.map((ms) => ({ ms, isOne: false }))];
  all.sort((left, right) => left.ms - right.ms);
  let [rankSum, tieSum] = [0, 0];
  for (let from = 0; from < all.length;) {
    let to = from;
    while (to < all.length && all[to]?.ms === all[from]?.ms) to += 1;
    const rank = (from + 1 + to) / 2;
    for (const { isOne } of all.slice(from, to)) if (isOne) rankSum += rank;
    tieSum += (to - from) ** 3 - (to - from);
    from = to;
  }
  const [n, m, total] = [one.length, other.length, all.length];
  const variance = ((n * m) / 12) * (total + 1 - tieSum / (total * (total - 1)));
  const z = Math.abs(rankSum - (n * (total + 1)) / 2) / Math.sqrt(variance);
  return 2 * (1 - normal(z));
}

/** The normal distribution up to z, after Abramowitz and Stegun 26.2.17, exact to 7 decimals. */
function normal(z: number): number {
  const t = 1 / (1 + 0.231_641_9 * z);
  const terms = [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
  const sum = terms.reduce((total, factor, index) => total + factor * t ** (index + 1), 0);
  return 1 - (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum;
}

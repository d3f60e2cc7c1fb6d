/** Counts terms in rows. One array holds all of them, because thousands of small ones keep the garbage collector busy. */
export class CountTable {
  readonly counts: Float64Array;
  /** Holds the number of all words of each row. */
  readonly lengths: Float64Array;
  readonly #terms: number;

  constructor(rows: number, terms: number) {
    this.counts = new Float64Array(rows * terms);
    this.lengths = new Float64Array(rows);
    this.#terms = terms;
  }

  at(row: number, term: number): number {
    return this.counts[row * this.#terms + term] ?? 0;
  }

  set(row: number, term: number, count: number): void {
    this.counts[row * this.#terms + term] = count;
  }

  add(row: number, term: number | undefined, count: number): void {
    if (term === undefined) return;
    const at = row * this.#terms + term;
    this.counts[at] = (this.counts[at] ?? 0) + count;
  }

  /** Adds a share of a row of another table. */
  addRow(row: number, other: CountTable, otherRow: number, share: number): void {
    for (let term = 0; term < this.#terms; term++) this.add(row, term, other.at(otherRow, term) * share);
    this.lengthen(row, (other.lengths[otherRow] ?? 0) * share);
  }

  lengthen(row: number, words: number): void {
    this.lengths[row] = (this.lengths[row] ?? 0) + words;
  }
}

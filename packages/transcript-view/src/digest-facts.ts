/** States where the messages before a record were summarized. */
export interface DigestCompaction {
  readonly seq: number;
  readonly tokensBefore: number | null;
  readonly tokensAfter: number | null;
  readonly source: string | null;
}

/** Holds what a record adds to a digest. */
export interface DigestFact {
  readonly seq: number;
  readonly tsMs: number | null;
  readonly prompt: string | null;
  readonly isReply: boolean;
  readonly isError: boolean;
  readonly tools: number;
  readonly output: number;
  readonly fill: number | null;
  readonly paths: readonly string[];
  readonly compaction: DigestCompaction | null;
}

const replyBit = 1;
const errorBit = 2;

/**
 * Keeps facts as columns of numbers. A session has many, and most have numbers only: as an object each would take three
 * times the memory, which the collector would have to move.
 */
export class DigestFacts {
  readonly #seqs: number[] = [];
  /** Has NaN for a record without a time. */
  readonly #times: number[] = [];
  readonly #marks: number[] = [];
  readonly #tools: number[] = [];
  readonly #outputs: number[] = [];
  /** Has -1 for a record that states no fill. */
  readonly #fills: number[] = [];
  readonly #prompts = new Map<number, string>();
  readonly #paths = new Map<number, readonly string[]>();
  readonly #compactions = new Map<number, DigestCompaction>();

  get count(): number {
    return this.#seqs.length;
  }

  add({ seq, tsMs, prompt, isReply, isError, tools, output, fill, paths, compaction }: DigestFact): void {
    const index = this.#seqs.length;
    this.#seqs.push(seq);
    this.#times.push(tsMs ?? Number.NaN);
    this.#marks.push((isReply ? replyBit : 0) | (isError ? errorBit : 0));
    this.#tools.push(tools);
    this.#outputs.push(output);
    this.#fills.push(fill ?? -1);
    if (prompt !== null) this.#prompts.set(index, prompt);
    if (paths.length > 0) this.#paths.set(index, paths);
    if (compaction !== null) this.#compactions.set(index, compaction);
  }

  /** @param index from 0, in the order in which the facts were added */
  at(index: number): DigestFact {
    const tsMs = this.#times[index] ?? Number.NaN;
    const marks = this.#marks[index] ?? 0;
    const fill = this.#fills[index] ?? -1;
    return {
      seq: this.#seqs[index] ?? 0,
      tsMs: Number.isNaN(tsMs) ? null : tsMs,
      prompt: this.#prompts.get(index) ?? null,
      isReply: (marks & replyBit) !== 0,
      isError: (marks & errorBit) !== 0,
      tools: this.#tools[index] ?? 0,
      output: this.#outputs[index] ?? 0,
      fill: fill === -1 ? null : fill,
      paths: this.#paths.get(index) ?? noPaths,
      compaction: this.#compactions.get(index) ?? null,
    };
  }
}

const noPaths: readonly string[] = [];

import type { TranscriptRow } from "@throughline/transcript-view/internal";

type FoldedKind = "thinking" | "tool";

/** Remembers which rows are open. A row keeps its state when it leaves the screen and comes back. */
export class Folds {
  readonly #own = new Map<string, boolean>();
  readonly #kinds = new Map<string, boolean>();
  /** Changes with every change, so that a row that did not change is not made again. */
  version = 0;
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = () => {
      this.version += 1;
      onChange();
    };
  }

  isOpen({ seq, index, kind, fold }: TranscriptRow): boolean {
    return this.#own.get(`${seq}.${index}`) ?? this.#kinds.get(kind) ?? fold === "open";
  }

  toggle(row: TranscriptRow): void {
    this.#own.set(`${row.seq}.${row.index}`, !this.isOpen(row));
    this.#onChange();
  }

  /** Opens or closes all thinking, or all tool calls. Single rows that were toggled follow. */
  toggleAll(kind: FoldedKind): void {
    this.#own.clear();
    this.#kinds.set(kind, this.#kinds.get(kind) !== true);
    this.#onChange();
  }

  /** States whether the whole of a long text is shown. */
  isWhole(name: string): boolean {
    return this.#own.get(name) ?? false;
  }

  showWhole(name: string, isWhole: boolean): void {
    this.#own.set(name, isWhole);
    this.#onChange();
  }
}

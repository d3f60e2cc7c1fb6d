import type { InputHistory } from "./input-history.ts";

interface FoundInput {
  readonly prompt: string;
  /** Holds the found line; after a miss, the last one found. */
  readonly text: string;
}

/** `taken` moves the found line into the editor; `left` restores the line from before the search. */
type SearchStep =
  | { readonly kind: "search"; readonly search: OpenSearch }
  | { readonly kind: "taken"; readonly text: string }
  | { readonly kind: "left" };

interface SearchKey {
  readonly name: string | null;
  readonly character: string | null;
}

export class OpenSearch implements FoundInput {
  readonly text: string;
  readonly #history: InputHistory;
  readonly #query: string;
  readonly #number: number | null;
  readonly #isMissed: boolean;

  constructor(history: InputHistory, query = "", text = "", number: number | null = null, isMissed = false) {
    this.#history = history;
    this.#query = query;
    this.text = text;
    this.#number = number;
    this.#isMissed = isMissed;
  }

  get prompt(): string {
    return `(${this.#isMissed ? "nothing older for" : "search"} "${this.#query}") `;
  }

  press({ name, character }: SearchKey): SearchStep {
    if (name === "ctrl+r") return this.#next(this.#query, this.#number ?? undefined);
    if (name === "escape" || name === "ctrl+g" || name === "ctrl+c") return { kind: "left" };
    if (name === "backspace" || name === "ctrl+h") return this.#next(this.#query.slice(0, -1), undefined);
    return character === null ? { kind: "taken", text: this.text } : this.#next(this.#query + character, undefined);
  }

  #next(query: string, before: number | undefined): SearchStep {
    const found = this.#history.find(query, before);
    const search =
      found === null
        ? new OpenSearch(this.#history, query, this.text, this.#number, query !== "")
        : new OpenSearch(this.#history, query, found.text, found.number);
    return { kind: "search", search };
  }
}

/** Holds the search in earlier inputs while it is open. */
export class HistorySearch {
  open: OpenSearch | null = null;
  readonly #history: InputHistory;

  constructor(history: InputHistory) {
    this.#history = history;
  }

  /** Returns true if the search consumed the key. Any other key ends the search and keeps its usual effect. */
  press(key: SearchKey, setText: (text: string) => void): boolean {
    if (this.open === null) {
      if (key.name !== "ctrl+r") return false;
      this.open = new OpenSearch(this.#history);
      return true;
    }
    const step = this.open.press(key);
    this.open = step.kind === "search" ? step.search : null;
    if (step.kind === "taken" && step.text !== "") setText(step.text);
    return step.kind !== "taken";
  }
}

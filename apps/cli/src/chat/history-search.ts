import { terminalSafe } from "../terminal-safe.ts";
import type { Key } from "./edit-keys.ts";
import type { InputHistory } from "./input-history.ts";

interface HistorySearch {
  readonly prompt: string;
  /** Holds the found line; after a miss, the last one found. */
  readonly text: string;
}

/** `taken` moves the found line into the editor; `left` restores the line from before the search. */
type SearchStep =
  | { readonly kind: "search"; readonly search: OpenSearch }
  | { readonly kind: "taken"; readonly text: string }
  | { readonly kind: "left" };

export class OpenSearch implements HistorySearch {
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

  press(character: string | undefined, { name = "", ctrl = false, meta = false }: Key): SearchStep {
    if (ctrl && name === "r") return this.#next(this.#query, this.#number ?? undefined);
    if (name === "escape" || (ctrl && (name === "g" || name === "c"))) return { kind: "left" };
    if (name === "backspace" || (ctrl && name === "h")) return this.#next(this.#query.slice(0, -1), undefined);
    const typed = ctrl || meta || character === undefined ? "" : terminalSafe(character).replace(/\n/g, "");
    const isText = typed !== "" && name !== "return" && name !== "enter" && name !== "tab";
    return isText ? this.#next(this.#query + typed, undefined) : { kind: "taken", text: this.text };
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

import { shorten } from "../../cells.ts";
import { terminalSafeLine } from "../../terminal-safe.ts";
import type { Signs } from "../screen/signs.ts";
import type { Styles } from "../screen/styles.ts";
import type { TypedText } from "../screen/typed-text.ts";
import { commonStart, type Completion, type FindCompletion, findOrNone } from "./find-completion.ts";

interface CompleterOptions {
  readonly find: FindCompletion;
  readonly typed: () => TypedText | null;
  readonly styles: Styles;
  readonly signs: Signs;
  /** Is called when the text or the list has changed. */
  readonly onChange: () => void;
}

interface OpenList {
  readonly choices: Completion["choices"];
  /** Is -1 until a choice stands in the text. */
  readonly at: number;
  /** Stands before the caret and is replaced by the next choice. */
  readonly current: string;
}

const mostRows = 6;

/** Completes the word before the caret: Tab inserts what all choices share, and Tab again takes one after the other. */
export class Completer {
  readonly #options: CompleterOptions;
  #list: OpenList | null = null;
  #requests = 0;

  constructor(options: CompleterOptions) {
    this.#options = options;
  }

  press(): void {
    const typed = this.#options.typed();
    if (typed === null) return;
    if (this.#list === null) void this.#open(typed);
    else this.#next(typed, this.#list);
  }

  close(): void {
    this.#requests += 1;
    this.#list = null;
  }

  rows(columns: number): readonly string[] {
    if (this.#list === null) return [];
    const { choices, at } = this.#list;
    const { signs, styles } = this.#options;
    const first = Math.max(0, Math.min(at, choices.length - mostRows));
    const shown = choices.slice(first, first + mostRows);
    const rows = shown.map(({ text, help }, index) => {
      const mark = first + index === at ? signs.choice : " ";
      return shorten(terminalSafeLine(`${mark} ${help === "" ? text : `${text.padEnd(14)} ${help}`}`), columns - 1);
    });
    const left = choices.length - first - shown.length;
    return [...rows, ...(left > 0 ? [`  ${signs.ellipsis} ${left} more`] : [])].map(styles.dim);
  }

  async #open(typed: TypedText): Promise<void> {
    const request = ++this.#requests;
    const found = await findOrNone(this.#options.find, typed.beforeCaret);
    if (request !== this.#requests || found === null || !typed.beforeCaret.endsWith(found.replaced)) return;
    const { replaced, choices } = found;
    const [only] = choices;
    if (only !== undefined && choices.length === 1) typed.complete(replaced, `${only.text} `);
    else if (only !== undefined) {
      const shared = commonStart(choices.map(({ text }) => text));
      const current = shared.includes(replaced.slice(1)) ? shared : replaced;
      typed.complete(replaced, current);
      this.#list = { choices, at: -1, current };
    }
    this.#options.onChange();
  }

  #next(typed: TypedText, { choices, at, current }: OpenList): void {
    const next = (at + 1) % choices.length;
    const { text = current } = choices[next] ?? {};
    typed.complete(current, text);
    this.#list = { choices, at: next, current: text };
    this.#options.onChange();
  }
}

import type { ChangeAnswer, ChangeQuestion } from "@throughline/agent/internal";
import type { Region, Screen } from "../screen/screen.ts";
import type { Signs } from "../screen/signs.ts";
import type { Styles } from "../screen/styles.ts";
import type { TypedKey, TypedText } from "../screen/typed-text.ts";
import { LiveQuestion } from "./live-question.ts";

export interface QuestionBoxOptions {
  readonly screen: Screen;
  readonly styles: Styles;
  readonly signs: Signs;
  /** Is null until the editor is loaded. */
  readonly typed: () => TypedText | null;
  /** Runs after the answer that cancels the turn is given. */
  readonly onCancel: () => void;
}

interface OpenQuestion {
  readonly question: LiveQuestion;
  answer(answer: ChangeAnswer): void;
}

/** These rows stay for the greeting and the typed text beside a change that was decided on. */
const rowsBeside = 8;

/** Asks about one change at a time, above the typed text. */
export class QuestionBox {
  readonly #options: QuestionBoxOptions;
  #open: OpenQuestion | null = null;
  /** Holds the typed text from before, while a person says why not. */
  #typedBefore: string | null = null;

  constructor(options: QuestionBoxOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#open !== null;
  }

  get isAskingWhy(): boolean {
    return this.#typedBefore !== null;
  }

  ask(question: ChangeQuestion, signal: AbortSignal): Promise<ChangeAnswer> {
    const { screen } = this.#options;
    return new Promise((resolve) => {
      const shown = new LiveQuestion(question, () => performance.now());
      const cancel = (): void => answer({ decision: "cancel" });
      const answer = (given: ChangeAnswer): void => {
        signal.removeEventListener("abort", cancel);
        this.#endWords();
        this.#open = null;
        screen.commit(["", ...shown.finished(this.#look(), given, Math.max(1, screen.mostRows + 2 - rowsBeside))]);
        resolve(given);
      };
      if (signal.aborted) return resolve({ decision: "cancel" });
      signal.addEventListener("abort", cancel, { once: true });
      this.#open = { question: shown, answer };
      screen.invalidate();
    });
  }

  region(mostRows: number): Region | null {
    return this.#open?.question.region(this.#look(), mostRows) ?? null;
  }

  /** Returns true for a key that the question consumed. */
  press(key: TypedKey): boolean {
    const open = this.#open;
    if (open === null) return false;
    this.#options.screen.invalidate();
    if (this.isAskingWhy && key.name !== "ctrl+c") return this.#pressInWords(open, key);
    const pressed = open.question.press(key);
    if (pressed === "typed") return false;
    if (pressed === "words") this.#beginWords();
    else if (pressed === "whole") this.#options.screen.commit(open.question.whole(this.#look()));
    else if (pressed !== "taken") open.answer(pressed);
    // The answer is stored before the turn ends.
    if (typeof pressed === "object" && pressed.decision === "cancel") setImmediate(this.#options.onCancel);
    return true;
  }

  #pressInWords(open: OpenQuestion, { name }: TypedKey): boolean {
    if (name === "escape") this.#endWords();
    else if (name === "enter") {
      const words = this.#options.typed()?.text.trim() ?? "";
      open.answer({ decision: "no", words: words === "" ? null : words });
    } else return false;
    return true;
  }

  #beginWords(): void {
    const typed = this.#options.typed();
    this.#typedBefore = typed?.text ?? "";
    typed?.setText("");
  }

  #endWords(): void {
    if (this.#typedBefore !== null) this.#options.typed()?.setText(this.#typedBefore);
    this.#typedBefore = null;
  }

  #look(): { readonly styles: Styles; readonly signs: Signs; readonly columns: number } {
    const { styles, signs, screen } = this.#options;
    return { styles, signs, columns: screen.columns };
  }
}

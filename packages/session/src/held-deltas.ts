import type { ChatDelta } from "@throughline/core";

/**
 * Decides whether the text of a reply is withheld. The text may be partial or whole. The function must be pure, because
 * it is called repeatedly.
 */
export type HoldBack = (text: string, isWhole: boolean) => boolean;

const closelyHeldCharacters = 4096;

/** Forwards the text of a reply while it arrives, except for text that may still turn out to be withheld. */
export class HeldDeltas {
  readonly #onDelta: (delta: ChatDelta) => void;
  readonly #holdBack: HoldBack;
  #held: string | null = "";
  /** The next check happens at this length. */
  #nextLength = 0;

  constructor(onDelta: (delta: ChatDelta) => void, holdBack: HoldBack) {
    this.#onDelta = onDelta;
    this.#holdBack = holdBack;
  }

  take(delta: ChatDelta): void {
    if (this.#held === null || delta.type === "thinking") {
      this.#onDelta(delta);
      return;
    }
    if (delta.type === "text") {
      this.#held += delta.text;
      if (this.#held.length < this.#nextLength) return;
      if (!this.#holdBack(this.#held, false)) return this.#release();
      // A long withheld text is checked again only after it doubled. A check for each piece would cost quadratic time.
      if (this.#held.length > closelyHeldCharacters) this.#nextLength = this.#held.length * 2;
      return;
    }
    // The text before a call is complete, so it can be judged as a whole.
    this.end();
    this.#onDelta(delta);
  }

  /** At the end of the reply, a text that only looked withheld so far is forwarded. */
  end(): void {
    if (this.#held !== null && !this.#holdBack(this.#held, true)) this.#release();
  }

  #release(): void {
    const text = this.#held ?? "";
    this.#held = null;
    if (text !== "") this.#onDelta({ type: "text", text });
  }
}

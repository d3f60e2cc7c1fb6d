import type { ChatDelta } from "@throughline/core";

/** Whether the text of a reply is not to be shown, as far as it has come, or as a whole. Pure. */
export type HoldBack = (text: string, isWhole: boolean) => boolean;

const closelyHeldCharacters = 4096;

/** Passes on what arrives of one reply, but not a word that may still turn out to be for nobody. */
export class HeldDeltas {
  readonly #onDelta: (delta: ChatDelta) => void;
  readonly #holdBack: HoldBack;
  #held: string | null = "";
  /** Looked at again from this length on. */
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
      // A long text that is held back is looked at when it has doubled: with every piece it would take the square of it.
      if (this.#held.length > closelyHeldCharacters) this.#nextLength = this.#held.length * 2;
      return;
    }
    // What a call follows was the whole text before it.
    this.end();
    this.#onDelta(delta);
  }

  /** The reply is whole. A text that only looked like it is passed on now. */
  end(): void {
    if (this.#held !== null && !this.#holdBack(this.#held, true)) this.#release();
  }

  #release(): void {
    const text = this.#held ?? "";
    this.#held = null;
    if (text !== "") this.#onDelta({ type: "text", text });
  }
}

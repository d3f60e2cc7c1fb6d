import { changedElsewhere, type ChatStatus } from "../chat-view.ts";
import type { Signs } from "./signs.ts";
import { statusLine } from "./status-line.ts";
import type { Styles } from "./styles.ts";

/** Counts the texts that wait, by where they go. */
export interface WaitingTexts {
  readonly steering: number;
  readonly queued: number;
}

/** The row below the typed text: facts about the conversation, and what is in force now. */
export class LiveStatus {
  readonly #styles: Styles;
  readonly #signs: Signs;
  #status: ChatStatus | null = null;
  /** Whether another program wrote into the session since the last submission. */
  isChanged = false;

  constructor(styles: Styles, signs: Signs) {
    this.#styles = styles;
    this.#signs = signs;
  }

  set(status: ChatStatus): void {
    this.#status = status;
  }

  /** @param turn holds the states of a running turn */
  rows({ steering, queued }: WaitingTexts, turn: readonly string[], columns: number): readonly string[] {
    if (this.#status === null) return [];
    const states = [
      ...(steering === 0 ? [] : [`${steering} steering`]),
      ...(queued === 0 ? [] : [`${queued} queued`]),
      ...turn,
      ...(this.isChanged ? [changedElsewhere] : []),
      ...this.#status.states,
    ];
    return [this.#styles.dim(statusLine(this.#status, states, columns, this.#signs))];
  }
}

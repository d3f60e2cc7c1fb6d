import { hasErrorCode } from "@throughline/core";
import { messageRole, recordText } from "@throughline/core/internal";
import type { Turn } from "@throughline/session";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";

export interface SteeringOptions {
  /** Hands the text to the running turn. */
  readonly run: (text: string, signal: AbortSignal) => Promise<Turn>;
  /** Shows a text that a call of the running turn has, or that began a turn of its own. */
  readonly onTaken: (text: string) => void;
  /** Gives a text back to the editor, that no turn has. */
  readonly onBack: (text: string) => void;
}

interface Waiting {
  readonly text: string;
  readonly controller: AbortController;
}

/** Sends texts into a running turn. The next call of the model has them; without one, each is a turn of its own. */
export class Steering {
  readonly #options: SteeringOptions;
  #waiting: readonly Waiting[] = [];
  readonly #turns: Promise<unknown>[] = [];

  constructor(options: SteeringOptions) {
    this.#options = options;
  }

  /** Is true when a turn has each text that was sent, and there was one. */
  isTaken = false;

  /** Counts the texts that no turn has yet. */
  get count(): number {
    return this.#waiting.length;
  }

  send(text: string): void {
    const waiting: Waiting = { text, controller: new AbortController() };
    this.#waiting = [...this.#waiting, waiting];
    this.#turns.push(this.#run(waiting));
  }

  /** Takes the newest text back that no turn has. Returns false when every text has a turn. */
  takeBack(): boolean {
    const newest = this.#waiting.at(-1);
    newest?.controller.abort();
    return newest !== undefined;
  }

  /** Learns from the record of a message that a turn has it. */
  see(event: WholeTurnEvent): void {
    if (event.name !== "record.appended" || messageRole(event.record.record) !== "user") return;
    const said = recordText(event.record.record);
    // The files of a message follow its text.
    const taken = this.#waiting.find(({ text }) => said === text || said.startsWith(`${text}\n[file]`));
    if (taken === undefined) return;
    this.#forget(taken);
    this.isTaken = this.count === 0;
    this.#options.onTaken(taken.text);
  }

  /** Resolves when no turn has or waits for a text. Fails with the first of their errors. */
  async settle(): Promise<void> {
    while (this.#turns.length > 0) await this.#turns.shift();
  }

  async #run(waiting: Waiting): Promise<void> {
    try {
      await this.#options.run(waiting.text, waiting.controller.signal);
    } catch (error) {
      const isOpen = this.#waiting.includes(waiting);
      if (isOpen) this.#options.onBack(waiting.text);
      if (!hasErrorCode(error, "ABORTED")) throw error;
    } finally {
      this.#forget(waiting);
    }
  }

  #forget(waiting: Waiting): void {
    this.#waiting = this.#waiting.filter((each) => each !== waiting);
  }
}
